import type { EpochMs } from '../../core/units.js';
import type { Entry } from './entries.js';
import { decodeHolder, type ShardImage } from './items.js';
import { countsOnce, type Move } from './move.js';

/** Whether a lease has the very holder that the move would have added: nobody else knows its id. */
export function showsAdditionOf(image: ShardImage, { holders }: Move): boolean {
  return holders.some((holder) => holder.kind === 'add' && image.holders.get(holder.leaseId)?.text === holder.text);
}

/** Whether a holder is gone that the move would have removed: before its time nobody else does, but for a reset, which moves the base. */
export function showsRemovalOf(image: ShardImage, { holders }: Move, baseMs: EpochMs, nowMs: EpochMs): boolean {
  return holders.some(
    (holder) =>
      holder.kind === 'remove' &&
      image.baseMs === baseMs &&
      !image.holders.has(holder.leaseId) &&
      decodeHolder(holder.leaseId, holder.seen).expiresAtMs > nowMs,
  );
}

/** A refund that goes with its holder counts once, however often it is sent. */
export function refundsWithoutHolder(entry: Entry, { holders }: Move): boolean {
  if (entry.kind !== 'change' || !entry.level.deltas.some(({ milli }) => milli < 0)) return false;
  return !countsOnce(holders.find(({ leaseId }) => leaseId === entry.leaseId));
}
