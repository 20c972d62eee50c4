import type { AdminCall, Awaitable, Call } from '../backend.js';
import { BackendUnavailable } from '../core/errors.js';
import type { EpochMs } from '../core/units.js';
import { createAuditId } from './api/audit-id.js';
import type { ConfigResolver } from './config/config-resolver.js';
import type { HeldLeases } from './lease/held-leases.js';
import type { KnownPauses } from './outage/known-pauses.js';
import type { StoreContext } from './store-context.js';
import type { WaitingLines } from './waiting/waiting-lines.js';

/** One namespace of an open limiter: everything that a call needs. */
export interface Context extends StoreContext {
  readonly namespace: string;
  readonly namespaceId: string;
  readonly resolver: ConfigResolver;
  readonly lines: WaitingLines;
  readonly heldLeases: HeldLeases;
  readonly knownPauses: KnownPauses;
  /**
   * The first lease of the short way and of the ordinary way, never used again. V8 drops the code that it compiled for a
   * class when a full garbage collection finds no object of that class, and most leases exist for microseconds.
   */
  firstPlainLease: object | null;
  firstStoredLease: object | null;
  /** Limits in memory, for the outage policy `local`. Created at first use. */
  readonly fallback: () => Context;
}

/** Makes one call to the store for a namespace, through the guard. Reads the clock unless the caller passes `nowMs`. */
export function callStore<T>(
  context: Context,
  where: string,
  start: (call: Call) => Awaitable<T>,
  nowMs: EpochMs = context.clock.now(),
  timeoutMs: number = context.options.timeouts.callMs,
): Awaitable<T> {
  const { namespaceId, guard, tuning } = context;
  return guard.call({ where, timeoutMs }, () => start({ namespaceId, nowMs, timeoutMs, tuning }));
}

interface LevelPart {
  readonly kind: string;
  readonly error?: unknown;
}

/** Settles a lease, whose levels succeed or fail separately. The failure of a level counts for the breaker. */
export function settleStore<T extends LevelPart>(
  context: Context,
  start: (call: Call) => Awaitable<readonly T[]>,
): Awaitable<readonly T[]> {
  const { namespaceId, guard, tuning, clock, options } = context;
  const { callMs: timeoutMs } = options.timeouts;
  const nowMs = clock.now();
  return guard.call({ where: 'settling a lease', timeoutMs, failureIn: failureOfLevel }, () =>
    start({ namespaceId, nowMs, timeoutMs, tuning }),
  );
}

function failureOfLevel(results: readonly LevelPart[]): unknown {
  return results.find(({ kind }) => kind === 'failed')?.error;
}

/** The deadline of a public call that began at `startMs`, however many calls it makes to the store. */
export function endOfCall({ options }: Pick<StoreContext, 'options'>, startMs: EpochMs): EpochMs {
  return startMs + options.timeouts.acquireMs;
}

/** How long the next call to the store may take. Throws after the deadline: a write that starts then would time out at once. */
export function timeLeft({ clock, options }: StoreContext, endMs: EpochMs, where: string): number {
  const leftMs = endMs - clock.now();
  if (leftMs > 0) return Math.min(options.timeouts.callMs, leftMs);
  throw new BackendUnavailable(`${where}: no time left within ${options.timeouts.acquireMs} ms`, 'timeout');
}

/** Makes an administrative change, with the principal and the id for its audit record. */
export async function changeStore<T>(
  context: Context,
  where: string,
  start: (call: AdminCall) => Awaitable<T>,
): Promise<T> {
  const auditId = await createAuditId(context.clock.now());
  const { principal } = context.options;
  return callStore(context, where, (call) => start({ ...call, principal, auditId }));
}
