import type { EpochMs } from '../units.js';
import type { Holder } from './decide.js';
import { countOpen, isClosed } from './portable.js';

/** A write that leaves more traces of ended leases than this drops the oldest: they make every write of the item larger. */
export const MAX_TRACES = 100;
/** Half are dropped at once, so that not every further end of a lease must drop one. */
const KEPT_TRACES = MAX_TRACES / 2;

/** The leases that may hold a bucket, or one shard of it, before it denies asks whose number nothing else bounds. */
export const MAX_OPEN_LEASES = 1_000;

/**
 * Whether the bucket, or the shard, has no room for this holder. Traces take no room. A lease with slots that is not
 * portable is bounded by the slots.
 */
export function isCrowded(holders: ReadonlyMap<string, Holder>, { portable, slots }: Holder): boolean {
  if (portable === undefined && slots.some(({ milli }) => milli > 0)) return false;
  return holders.size >= MAX_OPEN_LEASES && countOpen(holders) >= MAX_OPEN_LEASES;
}

/**
 * The ids of the traces to drop: those that would be removed first anyway. A repeat that comes later finds no holder,
 * as after an expiry: it may charge again, and gives nothing back.
 */
export function tracesToDrop(holders: ReadonlyMap<string, Holder>): readonly string[] {
  if (holders.size <= MAX_TRACES) return [];
  const traces: { readonly leaseId: string; readonly untilMs: EpochMs }[] = [];
  for (const [leaseId, holder] of holders) {
    if (isClosed(holder)) traces.push({ leaseId, untilMs: holder.expiresAtMs });
  }
  if (traces.length <= MAX_TRACES) return [];
  const oldestFirst = traces.toSorted((a, b) => a.untilMs - b.untilMs);
  return oldestFirst.slice(0, traces.length - KEPT_TRACES).map(({ leaseId }) => leaseId);
}
