import type { Int } from '../../../../core/int.js';
import { ATTRIBUTE, type ShardImage } from '../../table/items.js';
import type { Settlement } from '../settle/settle.js';
import { startShardUpdate, type Update, type WriteIds } from './record-write.js';
import { settleLimit } from './write-settlement.js';

/** The correction of the free slots of one shard. */
export interface SlotCorrection {
  readonly image: ShardImage;
  readonly limits: readonly { readonly name: string; readonly deltaMilli: Int }[];
}

/**
 * Corrects the free slots of a bucket that has one shard.
 * Writes: ADD tk per limit, wc; SET w.   Condition: w = :seen, so that the holders are those that were counted; rf =
 * :rf, w <> :id.
 * On success: the new record.   On failure: the record.   Cost: 1 write unit per started KB either way.
 */
export function buildHeal(ns: string, { image, limits }: SlotCorrection, ids: WriteIds): Update {
  const update = startShardUpdate(image, ids).requireEqual(ATTRIBUTE.writeId, image.writeId);
  for (const { name, deltaMilli } of limits) update.add(ATTRIBUTE.tokens(name), deltaMilli);
  return update.of(ns, image.key);
}

/**
 * Takes a bucket off the sweep list and moves its base. A process whose image says that the bucket is listed would add a
 * holder without listing it; its condition on the base refuses that write, and the returned item shows the change.
 * Writes: SET rf, w, and per limit ADD or SET tk as in a settlement to the same rules; ADD wc; takes it off the sweep list.
 * Condition: w = :seen, so that no holder was added since; rf = :rf, w <> :id.
 * On success: the new record.   On failure: the record.   Cost: 1 write unit per started KB, and 1 for the index.
 */
export function buildUnmark(ns: string, image: ShardImage, settlement: Settlement, ids: WriteIds): Update {
  const update = startShardUpdate(image, ids)
    .requireEqual(ATTRIBUTE.writeId, image.writeId)
    .set(ATTRIBUTE.base, settlement.nextBaseMs);
  for (const limit of settlement.limits) settleLimit(update, limit);
  return update.unlist().of(ns, image.key);
}
