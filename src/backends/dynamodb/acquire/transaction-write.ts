import type { Call } from '../../../backend.js';
import type { AskEntry, ChangeEntry, EntryResult } from '../bucket/group/entries.js';
import { planGroup } from '../bucket/group/plan-group.js';
import { addedHolder } from '../bucket/group/revocation.js';
import { newBucketImage } from '../bucket/new-bucket.js';
import { applyShardWrite, buildShardWrite } from '../bucket/shard-write.js';
import { buildCreate } from '../bucket/writes/create.js';
import type { RecordWrite } from '../bucket/writes/record-write.js';
import { tuningOf } from './bucket-shards.js';
import type { Shard } from './shard.js';

/** The write of one shard in a transaction. */
type TransactionWrite =
  | {
      readonly kind: 'write';
      readonly write: RecordWrite;
      readonly result: EntryResult | null;
      /** The holder that the write adds for the entry's lease. */
      readonly holderText: string | null;
    }
  /** There is nothing to write. */
  | { readonly kind: 'answer'; readonly result: EntryResult | null }
  /** Another call of this process changed the shard since the dry run, which settled it and read its image. */
  | { readonly kind: 'changed' };

/** Plans an entry on the image of the dry run. */
export function planInTransaction(
  { nowMs, namespaceId: ns, ...call }: Call,
  shard: Shard,
  entry: AskEntry | ChangeEntry,
  writeId: string,
): TransactionWrite {
  // Only shard 0 is ever created. Any other shard that is absent was merged after the dry run.
  if (shard.image === null && shard.number > 0) return { kind: 'changed' };
  const image = shard.image ?? newBucketImage(shard.key, entry.level, nowMs);
  const lifeFactor = tuningOf(call).bucketLifeFactor;
  const plan = planGroup(image, [entry], { nowMs, trust: 'exact', lifeFactor, withoutRefunds: false });
  if (plan.kind !== 'write' && plan.kind !== 'answer') return { kind: 'changed' };
  const result = plan.results[0] ?? null;
  if (plan.kind === 'answer') return { kind: 'answer', result };
  const write =
    shard.image === null
      ? buildCreate(ns, { ...applyShardWrite(image, plan.write, writeId), writeUnits: 2 })
      : buildShardWrite(ns, image, plan.write, { own: writeId, unanswered: [] });
  return { kind: 'write', write, result, holderText: addedHolder(plan.write, entry.leaseId) };
}
