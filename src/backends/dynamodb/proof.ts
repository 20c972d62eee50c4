import type { EpochMs } from '../../core/units.js';
import type { ChangeEntry, Entry } from './entries.js';
import { decodeHolder, type ShardImage } from './items.js';
import { countsOnce, type HolderMove, type Move } from './move.js';

/** Each of these could only have come about through the move itself, or through a reset of the bucket. */
export function showsHoldersOf(image: ShardImage, { holders }: Move, nowMs: EpochMs): boolean {
  return holders.some((holder) => {
    const stored = image.holders.get(holder.leaseId);
    if (holder.kind === 'add') return stored?.text === holder.text;
    if (holder.kind === 'replace') return isReplacedBy(image, holder);
    // Nobody else takes a holder away before its time.
    if (holder.kind !== 'remove' || stored !== undefined) return false;
    return decodeHolder(holder.leaseId, holder.seen).expiresAtMs > nowMs;
  });
}

/** Only the lease itself changes its holder; that one stays as it is proves nothing. */
export function showsReplacementOf(image: ShardImage, { holders }: Move): boolean {
  return holders.some((holder) => holder.kind === 'replace' && isReplacedBy(image, holder));
}

function isReplacedBy({ holders }: ShardImage, move: Extract<HolderMove, { readonly kind: 'replace' }>): boolean {
  return countsOnce(move) && holders.get(move.leaseId)?.text === move.text;
}

export function refunds(entry: Entry): entry is ChangeEntry {
  return entry.kind === 'change' && entry.level.deltas.some(({ milli }) => milli < 0);
}

/** A refund that goes with its holder counts once, however often it is sent. */
export function refundsWithoutHolder(entry: Entry, { holders }: Move): boolean {
  return refunds(entry) && !countsOnce(holders.find(({ leaseId }) => leaseId === entry.leaseId));
}
