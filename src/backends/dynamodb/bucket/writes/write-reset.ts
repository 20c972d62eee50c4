import { nextBase } from '../../../../core/bucket/bucket.js';
import { amountOf } from '../../../../core/bucket/decide.js';
import { isClosed } from '../../../../core/bucket/portable.js';
import { add, type Int, sub } from '../../../../core/int.js';
import { hasBalance, isConsumed } from '../../../../core/limit-kind.js';
import type { EpochMs } from '../../../../core/units.js';
import { ATTRIBUTE, type ShardImage } from '../../table/items.js';
import { startShardUpdate, type Update } from './record-write.js';

/**
 * Fills one shard and removes its holders, as one action of a transaction.
 * Writes: SET rf, w, tk = the share of every limit; REMOVE the h of every open lease; ADD wc, and give back in tc the
 * rates that holders carry.
 * Condition: rf = :rf and w = :seen, so that no holder was added since; w <> :id.
 * On success: nothing.   On failure: reasons.   Cost: 2 write units per started KB.
 */
export function buildReset(ns: string, image: ShardImage, nowMs: EpochMs, writeId: string): Update {
  const update = startShardUpdate(image, { own: writeId, unanswered: [] })
    .requireEqual(ATTRIBUTE.writeId, image.writeId)
    .set(ATTRIBUTE.base, nextBase(image.baseMs, nowMs));
  for (const { limit, rate } of image.limits) {
    if (hasBalance(limit.kind)) update.set(ATTRIBUTE.tokens(limit.name), rate.capacityMilli);
    // A lease would get these rates back at its expiry. It gets them now: its settle will charge the whole amount.
    if (!isConsumed(limit.kind)) continue;
    update.add(ATTRIBUTE.consumed(limit.name), sub(0, carried(image, limit.name)));
  }
  for (const [leaseId, holder] of image.holders) {
    // The holder of a lease that has ended holds nothing, and answers repeats.
    if (!isClosed(holder)) update.remove(ATTRIBUTE.holder(leaseId));
  }
  return update.of(ns, image.key);
}

function carried({ holders }: ShardImage, name: string): Int {
  let sum: Int = 0;
  for (const { rates } of holders.values()) sum = add(sum, amountOf(rates ?? [], name) ?? 0);
  return sum;
}
