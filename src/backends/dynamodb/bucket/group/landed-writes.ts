import { type ChangeEntry, type Entry, refundsRates } from './entries.js';
import type { ShardImage } from '../../table/items.js';
import { countsOnce, type ShardWrite } from '../shard-write.js';

/**
 * Whether the image has an exact holder that the write would have added. Other writers rarely draw the same lease id, and
 * one that did before the write was planned is in the image `seen`. `except`: leases that another write may have added.
 */
export function showsAdditionOf(
  image: ShardImage,
  { holders }: ShardWrite,
  seen: ShardImage | null,
  except: ReadonlySet<string>,
): boolean {
  return holders.some(
    (holder) =>
      holder.kind === 'add' &&
      !except.has(holder.leaseId) &&
      seen?.holders.has(holder.leaseId) !== true &&
      image.holders.get(holder.leaseId)?.text === holder.text,
  );
}

/**
 * Whether the holder that the write would have removed for this entry is missing. Other writers remove a holder only if
 * it has expired, which is counted, or in a reset, which moves the base.
 */
export function showsReleaseOf(
  image: ShardImage,
  entry: Entry,
  { holders }: ShardWrite,
  seen: ShardImage | null,
): entry is ChangeEntry {
  if (entry.kind !== 'change' || image.baseMs !== seen?.baseMs || image.expired !== seen.expired) return false;
  const removes = holders.some(({ kind, leaseId }) => kind === 'remove' && leaseId === entry.leaseId);
  return removes && !image.holders.has(entry.leaseId);
}

export function refunds(entry: Entry): entry is ChangeEntry {
  return entry.kind === 'change' && refundsRates(entry.level);
}

/** Whether a refund could count twice if it is sent again. A refund whose write changes its holder counts once. */
export function refundsWithoutHolder(entry: Entry, { holders }: ShardWrite): boolean {
  return refunds(entry) && !countsOnce(holders.find(({ leaseId }) => leaseId === entry.leaseId));
}
