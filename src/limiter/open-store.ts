import type { Backend } from '../backend.js';
import { memory } from '../backends/embedded/memory.js';
import { NamespaceNotFound } from '../core/errors.js';
import { buildFirstNamespaceId } from '../core/identifiers.js';
import type { EpochMs } from '../core/units.js';
import { ConfigResolver } from './config-resolver.js';
import type { Context, StoreContext } from './context.js';
import { Guard } from './guard.js';
import type { ResolvedOptions } from './options.js';
import { WaitingLines } from './waiting-lines.js';

export type PingResult =
  | { readonly ok: true; readonly latencyMs: number }
  | { readonly ok: false; readonly error: unknown };

/** No namespace has such an id. */
const UNOPENED = '?';

/** A store with the namespaces that this process uses of it. */
export class OpenStore {
  readonly #store: StoreContext;
  readonly #openedAtMs: EpochMs;
  /** By the id of the namespace. */
  readonly #contexts = new Map<string, Context>();
  #opening: Promise<void> | null = null;

  constructor(backend: Backend, options: ResolvedOptions) {
    const { clock } = options;
    this.#store = { backend, guard: new Guard(clock), clock, random: Math.random, options };
    this.#openedAtMs = clock.now();
  }

  /** Opens the store if need be. Throws if the namespace is unknown or not active. */
  async contextOf(namespace: string): Promise<Context> {
    await this.#open();
    const { backend, guard, options, clock } = this.#store;
    const timeoutMs = options.timeouts.callMs;
    const record = await guard.call({ where: 'looking up the namespace', timeoutMs }, () =>
      backend.namespaces.read({ nowMs: clock.now(), timeoutMs }, namespace),
    );
    if (record === undefined) throw new NamespaceNotFound(namespace);
    // By id: a name may be deleted, and given to another namespace, while this process runs.
    const context = this.#contexts.get(record.id) ?? this.#contextFor(this.#store, namespace, record.id);
    this.#contexts.set(record.id, context);
    return context;
  }

  /** For deciding by the outage policy before the store has ever answered: nothing of it reaches the store. */
  unopenedContextOf(namespace: string): Context {
    const context = this.#contexts.get(UNOPENED + namespace) ?? this.#contextFor(this.#store, namespace, UNOPENED);
    this.#contexts.set(UNOPENED + namespace, context);
    return context;
  }

  async ping(namespace: string, timeoutMs: number = this.#store.options.timeouts.callMs): Promise<PingResult> {
    const { backend, clock } = this.#store;
    const startMs = clock.now();
    try {
      // A guard of its own: a ping asks the store even while the breaker is open.
      await new Guard(clock).call({ where: 'ping', timeoutMs }, () =>
        backend.namespaces.read({ nowMs: startMs, timeoutMs }, namespace),
      );
      return { ok: true, latencyMs: Math.max(0, clock.now() - startMs) };
    } catch (error) {
      return { ok: false, error };
    }
  }

  async close(): Promise<void> {
    await this.#store.backend.close();
  }

  async #open(): Promise<void> {
    const { backend, guard, options } = this.#store;
    this.#opening ??= (async () => {
      const timeoutMs = options.timeouts.callMs;
      await guard.call({ where: 'opening the store', timeoutMs }, () => backend.open(timeoutMs));
    })();
    try {
      await this.#opening;
    } catch (error) {
      this.#opening = null;
      throw error;
    }
  }

  #contextFor(store: StoreContext, namespace: string, namespaceId: string): Context {
    let fallback: Context | null = null;
    const code = { limits: store.options.limits, openedAtMs: this.#openedAtMs };
    return {
      ...store,
      namespace,
      namespaceId,
      resolver: new ConfigResolver(store, namespaceId, code),
      lines: new WaitingLines(),
      fallback: () => {
        fallback ??= this.#contextFor(
          { ...store, backend: memory({ namespaces: [namespace] }), guard: new Guard(store.clock) },
          namespace,
          buildFirstNamespaceId(namespace),
        );
        return fallback;
      },
    };
  }
}
