import type { Awaitable, Backend, NamespaceStore, RegistryCall, RegistryChange, Tuning } from '../backend.js';
import { memory } from '../backends/embedded/memory.js';
import { type Clock, startTimer, systemClock } from '../clock.js';
import { isHeadgateError, NamespaceNotFound } from '../core/errors.js';
import { buildFirstNamespaceId } from '../core/identifiers.js';
import { checkKnownFields } from '../core/known-fields.js';
import { checkWhole } from '../core/limit.js';
import type { EpochMs } from '../core/units.js';
import { createAuditId } from './api/audit-id.js';
import { closedError } from './outage/closed-error.js';
import { ConfigResolver } from './config/config-resolver.js';
import type { Context } from './context.js';
import { report, type StoreContext } from './store-context.js';
import { Guard } from './outage/guard.js';
import { HeldLeases } from './lease/held-leases.js';
import { checkOneOf, type ResolvedOptions } from './options.js';
import { WaitingLines } from './waiting/waiting-lines.js';

export type PingResult =
  | { readonly ok: true; readonly latencyMs: number }
  | { readonly ok: false; readonly error: unknown };

export interface CloseOptions {
  /** What becomes of the slots of leases that are still open: given back now (default), or kept until they expire. */
  readonly leases?: 'release' | 'keep';
  /** Longest time for giving slots back: 5 000. */
  readonly timeoutMs?: number;
}

const CLOSE_MS = 5_000;
const MAX_CLOSE_MS = 86_400_000;
const CLOSE_FIELDS: ReadonlySet<string> = new Set(['leases', 'timeoutMs']);

export function checkCloseOptions(options: CloseOptions): void {
  checkKnownFields('options', options, CLOSE_FIELDS);
  if (options.leases !== undefined) checkOneOf('leases', options.leases, ['release', 'keep']);
  if (options.timeoutMs !== undefined) checkWhole('timeoutMs', options.timeoutMs, 0, MAX_CLOSE_MS);
}

/** No namespace has such an id. */
const UNOPENED = '?';

/** A store with the namespaces that this process uses of it. */
export class StoreConnection {
  readonly #store: StoreContext;
  /** By the store's time, so that it is not known before the store has answered. */
  #openedAtMs: EpochMs | null = null;
  /** By the id of the namespace. */
  readonly #contexts = new Map<string, Context>();
  /** Limits in memory for the outage policy `local`, by the name of the namespace: also before it could be looked up. */
  readonly #fallbacks = new Map<string, Context>();
  #opening: Promise<void> | null = null;

  constructor(backend: Backend, options: ResolvedOptions) {
    const clock = sharedClock(backend, options.clock);
    const tuning = tuningOf(options);
    this.#store = {
      backend,
      guard: new Guard(clock),
      clock,
      random: Math.random,
      options: { ...options, clock },
      tuning,
    };
  }

  /** What does not depend on a namespace, nor on whether the store is open. */
  get runtime(): Pick<StoreContext, 'clock' | 'options'> {
    return this.#store;
  }

  /** Opens the store if need be. Throws if the namespace is unknown or not active. */
  async contextOf(namespace: string, timeoutMs: number = this.#store.options.timeouts.callMs): Promise<Context> {
    const where = 'looking up the namespace';
    const record = await this.callRegistry(where, (store, call) => store.read(call, namespace), timeoutMs);
    if (record === undefined) throw new NamespaceNotFound(namespace);
    this.#openedAtMs ??= this.#store.clock.now();
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

  /** A call of the registry, which needs no namespace: the last one may just have been deleted. */
  async callRegistry<T>(
    where: string,
    start: (store: NamespaceStore, call: RegistryCall) => Awaitable<T>,
    patienceMs: number | null = this.#store.options.timeouts.callMs,
  ): Promise<T> {
    const { backend, guard, options, clock, tuning } = this.#store;
    const timeoutMs = patienceMs ?? options.timeouts.callMs;
    await this.#open(timeoutMs);
    return guard.call({ where, timeoutMs: patienceMs }, () =>
      start(backend.namespaces, { nowMs: clock.now(), timeoutMs, tuning }),
    );
  }

  async changeRegistry<T>(
    where: string,
    start: (store: NamespaceStore, call: RegistryChange) => Awaitable<T>,
    patienceMs?: number | null,
  ): Promise<T> {
    const auditId = await createAuditId(this.#store.clock.now());
    const { principal } = this.#store.options;
    return this.callRegistry(where, (store, call) => start(store, { ...call, principal, auditId }), patienceMs);
  }

  async ping(namespace: string, timeoutMs: number = this.#store.options.timeouts.callMs): Promise<PingResult> {
    const { backend, clock } = this.#store;
    const startMs = clock.now();
    try {
      await this.#open(timeoutMs);
      // A guard of its own: a ping asks the store even while the breaker is open.
      const answer = new Guard(clock).call({ where: 'ping', timeoutMs }, () =>
        backend.namespaces.read({ nowMs: startMs, timeoutMs }, namespace),
      );
      await answer;
      return { ok: true, latencyMs: Math.max(0, clock.now() - startMs) };
    } catch (error) {
      return { ok: false, error };
    }
  }

  /**
   * Ends the waits of every namespace, and gives back what open leases hold unless `leases` is `keep`. A store that was
   * never opened need not be closed.
   */
  async close({ leases = 'release', timeoutMs = CLOSE_MS }: CloseOptions = {}): Promise<void> {
    const contexts = [...this.#contexts.values()];
    for (const { lines } of contexts) lines.close(closedError());
    if (leases === 'release') for (const { heldLeases } of contexts) heldLeases.releaseAll();
    // What was asked for before the limiter was closed may still be granted, and goes back then.
    await this.#untilIdle(timeoutMs);
    this.#store.guard.close();
    const opening = this.#opening;
    this.#opening = null;
    if (opening === null) return;
    await opening.catch(() => {});
    await this.#store.backend.close();
  }

  async #untilIdle(timeoutMs: number): Promise<void> {
    const { guard, clock } = this.#store;
    await new Promise<void>((resolve) => {
      const stopTimer = startTimer(clock, timeoutMs, resolve);
      void guard.idle().finally(() => {
        stopTimer();
        resolve();
      });
    });
  }

  async #open(timeoutMs: number): Promise<void> {
    const { backend, guard } = this.#store;
    this.#opening ??= (async () => {
      await backend.load?.();
      await guard.call({ where: 'opening the store', timeoutMs }, () => backend.open(timeoutMs));
    })();
    const opening = this.#opening;
    try {
      await opening;
    } catch (error) {
      if (this.#opening === opening) this.#opening = null;
      throw error;
    }
  }

  #contextFor(store: StoreContext, namespace: string, namespaceId: string): Context {
    const openedAtMs = this.#openedAtMs ?? store.clock.now();
    const code = { limits: store.options.limits, openedAtMs };
    return {
      ...store,
      namespace,
      namespaceId,
      resolver: new ConfigResolver(store, namespaceId, code),
      lines: new WaitingLines(store.clock, store.random),
      heldLeases: new HeldLeases(store.clock, (error) => {
        // With a deleted namespace, its leases are gone too.
        if (!isHeadgateError(error, 'namespace.missing')) report(store.options, error, 'closing with open leases');
      }),
      fallback: () => this.#fallbackOf(namespace),
    };
  }

  #fallbackOf(namespace: string): Context {
    const known = this.#fallbacks.get(namespace);
    if (known !== undefined) return known;
    const { clock } = this.#store;
    const store = { ...this.#store, backend: memory({ namespaces: [namespace] }), guard: new Guard(clock) };
    const fallback = this.#contextFor(store, namespace, buildFirstNamespaceId(namespace));
    this.#fallbacks.set(namespace, fallback);
    return fallback;
  }
}

/** Processes that share a store must agree on the time: the store's. A clock that was passed in is taken as it is. */
function sharedClock(backend: Backend, clock: Required<Clock>): Required<Clock> {
  if (clock !== systemClock || backend.storeTimeMs === undefined) return clock;
  return { now: () => backend.storeTimeMs?.() ?? systemClock.now(), sleep: systemClock.sleep };
}

function tuningOf(options: ResolvedOptions): Tuning {
  const { maxRetries, denyCacheMs, bucketLifeFactor, configCacheMs } = options;
  const onError = (error: unknown, where: string): void => report(options, error, where);
  return { maxRetries, denyCacheMs, bucketLifeFactor, configCacheMs, onError };
}
