import { isHeadgateError } from '../core/errors.js';
import { buildFirstNamespaceId } from '../core/identifiers.js';
import type { EpochMs } from '../core/units.js';
import { ConfigResolver } from './config/config-resolver.js';
import type { Context } from './context.js';
import { HeldLeases } from './lease/held-leases.js';
import { KnownPauses } from './outage/known-pauses.js';
import { report, type StoreContext } from './store-context.js';
import { WaitingLines } from './waiting/waiting-lines.js';

/** An id that no namespace can have. */
const UNOPENED = '?';

/** How many contexts without a limiter are kept, for the caches that they have. */
const MAX_UNUSED = 1_000;
/** How many of them one more makes this process check. */
const CHECKED = 2;

interface Entry {
  readonly context: Context;
  /** Open limiters, which the process may drop without closing them. */
  readonly limiters: WeakSet<object>;
  count: number;
}

/** The contexts of the namespaces that this process uses in one store. */
export class NamespaceContexts {
  readonly #store: StoreContext;
  /** In store time, so null until the store has answered. */
  #openedAtMs: EpochMs | null = null;
  /** By the id of the namespace. */
  readonly #entries = new Map<string, Entry>();
  /** Those without a limiter. The first one lost its last limiter first. */
  readonly #unused = new Set<Entry>();
  readonly #dropped = new FinalizationRegistry<Entry>((entry) => this.#loseOne(entry));
  /** Limits in memory for the outage policy `local`. By the name of the namespace, because its id may not be known yet. */
  readonly #fallbacks = new Map<string, Context>();
  readonly #createFallback: (namespace: string) => StoreContext;

  /** `createFallback`: makes the store in memory that replaces `store` for one namespace while `store` does not answer. */
  constructor(store: StoreContext, createFallback: (namespace: string) => StoreContext) {
    this.#store = store;
    this.#createFallback = createFallback;
  }

  /**
   * The context of a namespace that was read from the store. By id, because another namespace may get the name later. It is
   * kept until `leave`, or until the process drops the limiter.
   */
  opened(namespace: string, namespaceId: string, limiter: object): Context {
    this.#openedAtMs ??= this.#store.clock.now();
    const entry = this.#at(namespaceId, namespace, namespaceId);
    if (!entry.limiters.has(limiter)) {
      entry.limiters.add(limiter);
      entry.count += 1;
      this.#unused.delete(entry);
      this.#dropped.register(limiter, entry, limiter);
    }
    return entry.context;
  }

  /** The limiter is closed. */
  leave(namespaceId: string, limiter: object): void {
    const entry = this.#entries.get(namespaceId);
    if (entry?.limiters.delete(limiter) !== true) return;
    this.#dropped.unregister(limiter);
    this.#loseOne(entry);
  }

  /** For decisions by the outage policy before the store has answered once. It makes no calls to the store. */
  unopened(namespace: string): Context {
    return this.#at(UNOPENED + namespace, namespace, UNOPENED).context;
  }

  /** undefined: this process does not use the namespace. */
  nameOf(namespaceId: string): string | undefined {
    return this.#entries.get(namespaceId)?.context.namespace;
  }

  all(): readonly Context[] {
    return Array.from(this.#entries.values(), ({ context }) => context);
  }

  #at(key: string, namespace: string, namespaceId: string): Entry {
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const entry = { context: this.#create(this.#store, namespace, namespaceId), limiters: new WeakSet(), count: 0 };
    this.#entries.set(key, entry);
    this.#addUnused(entry);
    return entry;
  }

  #loseOne(entry: Entry): void {
    entry.count -= 1;
    if (entry.count === 0) this.#addUnused(entry);
  }

  #addUnused(added: Entry): void {
    this.#unused.add(added);
    // In an outage, what the contexts know of limits and pauses cannot be read again.
    if (!this.#store.guard.isClear) return;
    let left = CHECKED;
    for (const entry of this.#unused) {
      if (this.#unused.size <= MAX_UNUSED || left === 0) return;
      left -= 1;
      this.#unused.delete(entry);
      if (isBusy(entry.context)) this.#unused.add(entry);
      else this.#forget(entry.context);
    }
  }

  #forget({ namespace, namespaceId }: Context): void {
    this.#entries.delete(namespaceId === UNOPENED ? UNOPENED + namespace : namespaceId);
    if (!this.all().some((other) => other.namespace === namespace)) this.#fallbacks.delete(namespace);
  }

  #create(store: StoreContext, namespace: string, namespaceId: string): Context {
    const openedAtMs = this.#openedAtMs ?? store.clock.now();
    const code = { limits: store.options.limits, openedAtMs };
    return {
      ...store,
      namespace,
      namespaceId,
      resolver: new ConfigResolver(store, { namespace, namespaceId }, code),
      lines: new WaitingLines(store.clock, store.random),
      firstPlainLease: null,
      firstStoredLease: null,
      heldLeases: new HeldLeases(store.clock, (error) => {
        // A deleted namespace has no leases to release.
        if (!isHeadgateError(error, 'namespace.missing')) report(store.options, error, 'closing with open leases');
      }),
      knownPauses: new KnownPauses(),
      fallback: () => this.#fallbackOf(namespace),
    };
  }

  #fallbackOf(namespace: string): Context {
    const known = this.#fallbacks.get(namespace);
    if (known !== undefined) return known;
    const store = this.#createFallback(namespace);
    const fallback = this.#create(store, namespace, buildFirstNamespaceId(namespace));
    this.#fallbacks.set(namespace, fallback);
    return fallback;
  }
}

/** Whether a call waits, or a lease has slots that `close` gives back. */
function isBusy({ lines, heldLeases }: Context): boolean {
  return lines.hasCalls || !heldLeases.isEmpty;
}
