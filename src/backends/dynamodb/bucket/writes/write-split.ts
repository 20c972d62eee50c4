import { hasBalance } from '../../../../core/limit-kind.js';
import { ATTRIBUTE, type ShardImage } from '../../table/items.js';
import type { Merge, Split } from '../split.js';
import { buildCreate } from './create.js';
import { RecordUpdate, type RecordWrite, startShardUpdate } from './record-write.js';
import { samePause } from '../../../../core/pause.js';
import { latestPause } from '../shard-pauses.js';
import { setPause } from './write-pause.js';

/**
 * Splits one shard into two, in one transaction.
 * Writes: to the old shard, SET rf, shard_count, w, the sweep list, and ADD or SET tk of every limit, ADD wc, REMOVE
 * ttl; the whole new shard.
 * Condition: rf = :rf, shard_count = :n, pz as seen, the bounds of every limit; the new shard does not exist.
 * On success: nothing.   On failure: reasons.   Cost: 2 write units per started KB, for each; the indexes of the new shard.
 */
export function buildSplit(ns: string, image: ShardImage, split: Split, writeId: string): readonly RecordWrite[] {
  const update = startShardUpdate(image, { own: writeId, unanswered: [] })
    .requireEqual(ATTRIBUTE.shardCount, image.shardCount)
    .set(ATTRIBUTE.shardCount, split.count)
    .set(ATTRIBUTE.base, split.nextBaseMs);
  // The new shard gets the pause of the image. Who pauses the old shard next finds the new count in the answer.
  if (image.pause === undefined) update.requireAbsent(ATTRIBUTE.pauseEnd);
  else update.requireEqual(ATTRIBUTE.pauseEnd, image.pause.endMs);
  update.listForSweep();
  if (image.ttlSec !== null) update.remove(ATTRIBUTE.ttl);
  for (const { account, keeps } of split.limits) {
    const tokens = ATTRIBUTE.tokens(account.limit.name);
    if (keeps.write === 'set') {
      update.requireWithin(tokens, keeps.atLeastMilli, null).set(tokens, keeps.tokensMilli);
    } else {
      update.requireWithin(tokens, keeps.atLeastMilli, keeps.atMostMilli).add(tokens, keeps.deltaMilli);
    }
  }
  const added: ShardImage = {
    ...image,
    key: { ...image.key, shard: split.newShard },
    baseMs: split.nextBaseMs,
    shardCount: split.count,
    ttlSec: null,
    writeId,
    writeUnits: 1,
    acquires: 0,
    expired: 0,
    limits: split.limits.map(({ account, movedMilli }) => ({ ...account, tokensMilli: movedMilli, consumedMilli: 0 })),
    retired: new Map(),
    holders: new Map(),
    onSweepList: true,
  };
  return [update.of(ns, image.key), buildCreate(ns, added)];
}

/**
 * Merges a pair of shards into one, in one transaction.
 * Writes: to the remaining shard, SET rf, shard_count, w, tk of every limit, the pause that ends later, ttl if it is
 * the last; ADD the other shard's tc, ac, un, wc; deletes the other shard.
 * Condition: w = :seen of both, so that neither was written since.
 * On success: nothing.   On failure: reasons.   Cost: 2 write units per started KB, for each; the indexes of the
 * deleted shard.
 */
export function buildMerge(
  ns: string,
  stays: ShardImage,
  leaves: ShardImage,
  merge: Merge,
  writeId: string,
): readonly RecordWrite[] {
  const update = new RecordUpdate()
    .requireEqual(ATTRIBUTE.writeId, stays.writeId)
    .set(ATTRIBUTE.writeId, writeId)
    .set(ATTRIBUTE.base, merge.nextBaseMs)
    .set(ATTRIBUTE.shardCount, merge.count)
    .add(ATTRIBUTE.acquires, leaves.acquires)
    .add(ATTRIBUTE.expired, leaves.expired)
    .add(ATTRIBUTE.writeUnits, leaves.writeUnits + 1);
  for (const { account, tokensMilli } of merge.limits) {
    if (hasBalance(account.limit.kind)) update.set(ATTRIBUTE.tokens(account.limit.name), tokensMilli);
  }
  const pause = latestPause([stays, leaves]);
  if (pause !== null && !samePause(pause, stays.pause)) setPause(update, pause);
  if (merge.ttlSec !== null) update.set(ATTRIBUTE.ttl, merge.ttlSec);
  // Also for removed limits: usage subtracts all counters of the deleted shard, so the remaining one must have them.
  for (const { limit, consumedMilli } of leaves.limits) update.add(ATTRIBUTE.consumed(limit.name), consumedMilli);
  for (const [name, milli] of leaves.retired) update.add(ATTRIBUTE.consumed(name), milli);
  const deletion = new RecordUpdate().requireEqual(ATTRIBUTE.writeId, leaves.writeId);
  return [update.of(ns, stays.key), deletion.deleteOf(ns, leaves.key)];
}
