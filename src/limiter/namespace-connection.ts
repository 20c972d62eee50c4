import type { Awaitable, Backend } from '../backend.js';
import { checkNamespace } from '../core/identifiers.js';
import type { Context } from './context.js';
import { emit } from './events/emit.js';
import type { ProviderThrottled } from './events/limiter-event.js';
import { checkText, type LimiterOptions, resolveOptions } from './options.js';
import { closedError } from './outage/closed-error.js';
import { openByPolicy } from './outage/opening.js';
import { checkCloseOptions, type CloseOptions, type PingResult, StoreConnection } from './store-connection.js';
import { report } from './store-context.js';
import type { WaitingStatus } from './waiting/waiting-status.js';
import { checkOptionsObject, isBackend, namespaceIn, storeFrom, storeOrAddress } from './store-url.js';

/** The namespace of one limiter. It is opened by the first call, or when the process starts. */
export class NamespaceConnection {
  readonly store: StoreConnection;
  /** Who makes the changes of the limiter; undefined: the principal of the options. */
  readonly principal: string | undefined;
  readonly #namespace: string;
  readonly #ownsStore: boolean;
  #context: Context | null = null;
  #outage: unknown = null;
  #isClosed = false;

  /** `ownsStore`: whether `close` closes the store too. */
  constructor(store: StoreConnection, namespace: string, principal: string | undefined, ownsStore: boolean) {
    this.store = store;
    this.principal = principal;
    this.#namespace = namespace;
    this.#ownsStore = ownsStore;
  }

  /** null: not open. */
  get context(): Context | null {
    return this.#context;
  }

  /** Why the store could not be opened, while the attempts continue in the background; null otherwise. */
  get outage(): unknown {
    return this.#outage;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  opened(): Awaitable<Context> {
    return this.#context ?? this.open();
  }

  async open(timeoutMs?: number): Promise<Context> {
    if (this.#isClosed) throw closedError();
    const shared = await this.store.contextOf(this.#namespace, this, timeoutMs);
    const { principal } = this;
    const context = principal === undefined ? shared : { ...shared, options: { ...shared.options, principal } };
    if (this.#isClosed) this.store.leave(context, this);
    else this.#context = context;
    return context;
  }

  /** For decisions by the outage policy before the store has answered once. */
  unopenedContext(): Context {
    return this.store.unopenedContextOf(this.#namespace);
  }

  /** Opens by the outage policy: see `openByPolicy`. */
  async openAtStart(): Promise<void> {
    const { options, clock } = this.store.runtime;
    const pending = await openByPolicy({
      attempt: (timeoutMs) => this.open(timeoutMs),
      options,
      clock,
      isClosed: () => this.#isClosed,
      report: (error, where) => report(options, error, where),
    });
    if (pending === null) return;
    this.#outage = pending.outage;
    void pending.ended.finally(() => {
      this.#outage = null;
    });
  }

  /** Another namespace of the same store, not opened yet. Closed if this connection is. */
  other(namespace: string, principal: string | undefined = this.principal): NamespaceConnection {
    checkNamespace(namespace);
    checkText('principal', principal ?? null);
    const other = new NamespaceConnection(this.store, namespace, principal, false);
    other.#isClosed = this.#isClosed;
    return other;
  }

  waiting(): readonly WaitingStatus[] {
    return this.#isClosed ? [] : this.store.waitingIn(this.#namespace);
  }

  /** Tells `onEvent` that the provider of a resource refused a call. */
  noteThrottle(throttle: Omit<ProviderThrottled, 'type' | 'namespace'>): void {
    const { options } = this.store.runtime;
    if (options.onEvent === null) return;
    emit(options, { ...throttle, type: 'provider-throttle', namespace: this.#namespace });
  }

  async ping(timeoutMs: number | undefined): Promise<PingResult> {
    if (this.#isClosed) return { ok: false, error: closedError() };
    return this.store.ping(this.#namespace, timeoutMs);
  }

  /** Ends the waits that have this connection as their owner, and closes the store if it belongs to this connection. */
  async close(options: CloseOptions): Promise<void> {
    checkCloseOptions(options);
    if (this.#isClosed) return;
    this.#isClosed = true;
    const endedWaits = this.#context?.lines.close(closedError(), this);
    if (this.#context !== null) this.store.leave(this.#context, this);
    this.#context = null;
    if (this.#ownsStore) await this.store.close(options, endedWaits);
  }
}

/** Makes the connection of a new limiter from the arguments of its constructor. Makes no call to the store. */
export function connect(
  first: string | Backend | LimiterOptions | undefined,
  second: LimiterOptions | undefined,
): NamespaceConnection {
  const given = typeof first === 'string' || first === undefined || isBackend(first);
  if (!given) checkOptionsObject(first);
  const { env } = process;
  const store = storeOrAddress(given ? first : undefined, env);
  const asked = (given ? second : first) ?? {};
  const options = resolveOptions(asked, env, namespaceIn(store));
  return new NamespaceConnection(
    new StoreConnection(storeFrom(store, options, env), options),
    options.namespace,
    undefined,
    true,
  );
}
