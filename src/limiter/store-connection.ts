import type { Awaitable, Backend, NamespaceStore, RegistryCall, RegistryChange, Tuning } from '../backend.js';
import { memory } from '../backends/embedded/memory.js';
import type { ResidentBuckets } from '../core/bucket/resident-buckets.js';
import { type Clock, startTimer, systemClock } from '../clock.js';
import { NamespaceNotFound } from '../core/errors.js';
import { checkKnownFields } from '../core/known-fields.js';
import { checkWhole } from '../core/limit.js';
import { createAuditId } from './api/audit-id.js';
import { closedError } from './outage/closed-error.js';
import type { Context } from './context.js';
import { emit } from './events/emit.js';
import type { LimiterEvent } from './events/limiter-event.js';
import { report, type StoreContext } from './store-context.js';
import { Guard } from './outage/guard.js';
import { NamespaceContexts } from './namespace-contexts.js';
import { checkOneOf, type ResolvedOptions } from './options.js';
import type { WaitingStatus } from './waiting/waiting-status.js';

/** Whether the store answers, and how fast. */
export type PingResult =
  | { readonly ok: true; readonly latencyMs: number }
  | { readonly ok: false; readonly error: unknown };

/** Options of `close`. */
export interface CloseOptions {
  /** Whether the slots of open leases are given back now (`release`) or kept until they expire (`keep`). Default: `release`. */
  readonly leases?: 'release' | 'keep';
  /** The longest time for giving slots back. Default: 5,000. */
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

/** One store and the namespaces that this process uses in it. */
export class StoreConnection {
  readonly #store: StoreContext;
  readonly #contexts: NamespaceContexts;
  #opening: Promise<void> | null = null;

  constructor(backend: Backend, options: ResolvedOptions) {
    const clock = sharedClock(backend, options.clock);
    const tuning = {
      ...tuningOf(options),
      ...(options.onEvent === null ? {} : { onReshard: this.#onReshard(options) }),
    };
    this.#store = {
      backend,
      resident: residentOf(backend),
      guard: new Guard(clock, options.onEvent === null ? null : (error) => emit(options, outageEvent(error))),
      clock,
      random: Math.random,
      options: { ...options, clock },
      tuning,
    };
    this.#contexts = new NamespaceContexts(this.#store, (namespace) => fallbackStore(this.#store, namespace));
  }

  /** The parts that need neither a namespace nor an open store. */
  get runtime(): Pick<StoreContext, 'clock' | 'options'> {
    return this.#store;
  }

  /** Opens the store if it is not open. Throws if the namespace is missing or not active. `leave` ends its use. */
  async contextOf(
    namespace: string,
    limiter: object,
    timeoutMs: number = this.#store.options.timeouts.callMs,
  ): Promise<Context> {
    const where = 'looking up the namespace';
    const record = await this.callRegistry(where, (store, call) => store.read(call, namespace), timeoutMs);
    if (record === undefined) throw new NamespaceNotFound(namespace);
    return this.#contexts.opened(namespace, record.id, limiter);
  }

  leave({ namespaceId }: Context, limiter: object): void {
    this.#contexts.leave(namespaceId, limiter);
  }

  /** For decisions by the outage policy before the store has answered once. It makes no calls to the store. */
  unopenedContextOf(namespace: string): Context {
    return this.#contexts.unopened(namespace);
  }

  /** The calls that wait in a namespace, also in one that could not be looked up yet. Makes no call to the store. */
  waitingIn(namespace: string): readonly WaitingStatus[] {
    const contexts = this.#contexts.all().filter((one) => one.namespace === namespace);
    return contexts.flatMap(({ lines }) => lines.list());
  }

  /** Calls the registry. This works without a namespace, because the last one may have been deleted. */
  async callRegistry<T>(
    where: string,
    start: (store: NamespaceStore, call: RegistryCall) => Awaitable<T>,
    callTimeoutMs: number | null = this.#store.options.timeouts.callMs,
  ): Promise<T> {
    const { backend, guard, options, clock, tuning } = this.#store;
    const timeoutMs = callTimeoutMs ?? options.timeouts.callMs;
    await this.#open(timeoutMs);
    return guard.call({ where, timeoutMs: callTimeoutMs }, () =>
      start(backend.namespaces, { nowMs: clock.now(), timeoutMs, tuning }),
    );
  }

  async changeRegistry<T>(
    where: string,
    start: (store: NamespaceStore, call: RegistryChange) => Awaitable<T>,
    options: { readonly timeoutMs?: number | null | undefined; readonly principal?: string | undefined } = {},
  ): Promise<T> {
    const auditId = await createAuditId(this.#store.clock.now());
    const { timeoutMs, principal = this.#store.options.principal } = options;
    return this.callRegistry(where, (store, call) => start(store, { ...call, principal, auditId }), timeoutMs);
  }

  async ping(namespace: string, timeoutMs: number = this.#store.options.timeouts.callMs): Promise<PingResult> {
    const { backend, clock } = this.#store;
    const startMs = clock.now();
    try {
      await this.#open(timeoutMs);
      // A separate guard, so that a ping reaches the store even while the breaker is open.
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
   * Ends the waits of every namespace, and gives back the slots of open leases unless `leases` is `keep`. Does not close a
   * store that was never opened.
   */
  async close({ leases = 'release', timeoutMs = CLOSE_MS }: CloseOptions = {}, endedWaits = 0): Promise<void> {
    let givesBack = endedWaits;
    this.#store.guard.beginClose();
    for (const { lines, heldLeases } of this.#contexts.all()) {
      givesBack += lines.close(closedError());
      if (leases === 'release') givesBack += heldLeases.releaseAll();
    }
    // An ask of an ended wait may still be granted. Its slots are given back too.
    if (givesBack > 0) await this.#untilIdle(timeoutMs);
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

  #onReshard(options: ResolvedOptions): NonNullable<Tuning['onReshard']> {
    return ({ kind, namespaceId, entityId, resource }) => {
      const namespace = this.#contexts.nameOf(namespaceId) ?? namespaceId;
      emit(options, { type: kind, namespace, entityId, resource });
    };
  }
}

/** null: the store has answered again. */
function outageEvent(error: unknown): LimiterEvent {
  return error === null ? { type: 'outage-end' } : { type: 'outage-begin', error };
}

/** The time of the store, because all processes that share it must use the same time. A clock from the caller is not changed. */
function sharedClock(backend: Backend, clock: Required<Clock>): Required<Clock> {
  if (clock !== systemClock || backend.storeTimeMs === undefined) return clock;
  return { now: () => backend.storeTimeMs?.() ?? systemClock.now(), sleep: systemClock.sleep };
}

/** Limits in memory, for the outage policy `local`. */
function fallbackStore(store: StoreContext, namespace: string): StoreContext {
  const backend = memory({ namespaces: [namespace] });
  return { ...store, backend, resident: residentOf(backend), guard: new Guard(store.clock) };
}

function residentOf({ resident, consume }: Backend): ResidentBuckets | null {
  return resident !== undefined && resident.consume === consume ? resident : null;
}

function tuningOf(options: ResolvedOptions): Tuning {
  const { maxRetries, denyCacheMs, bucketLifeFactor, configCacheMs } = options;
  const onError = (error: unknown, where: string): void => report(options, error, where);
  return { maxRetries, denyCacheMs, bucketLifeFactor, configCacheMs, onError };
}
