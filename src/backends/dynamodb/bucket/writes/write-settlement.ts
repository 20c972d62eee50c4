import type { ConfigVersion } from '../../../../core/config/config.js';
import { ATTRIBUTE, printVersion, type ShardImage, UNLIMITED_PERIOD } from '../../table/items.js';
import type { SettledLimit, Settlement } from '../settle/settle.js';
import type { WholeSettlement } from '../settle/settle-all.js';
import { raiseTtl, type RecordUpdate, startShardUpdate, type Update, type WriteIds } from './record-write.js';

/**
 * Settles a shard to new rules, or only to a new base. Every limit is credited at the old rate up to the new base.
 * Writes: SET rf, cv, and per limit cp, ra, rp and ADD or SET tk; REMOVE the limits that were removed, except their tc;
 * ttl; wc, w.
 * Condition: rf = :rf; per limit that stays, the bounds of its form; per limit that is added, tk does not exist; w <> :id,
 * and w = :seen where free slots were computed from the holders, or where a ttl is added; the stored ttl is not later.
 * On success: the new record.   On failure: the record, null if there is none.   Cost: 1 write unit per started KB
 * either way.
 */
export function buildSettlement(
  ns: string,
  image: ShardImage,
  settlement: Settlement,
  version: ConfigVersion,
  ttlSec: number | null,
  ids: WriteIds,
): Update {
  const update = startShardUpdate(image, ids)
    .set(ATTRIBUTE.base, settlement.nextBaseMs)
    .set(ATTRIBUTE.version, printVersion(version));
  if (settlement.countsHolders) update.requireEqual(ATTRIBUTE.writeId, image.writeId);
  for (const limit of settlement.limits) settleLimit(update, limit);
  for (const name of settlement.removed) removeLimit(update, name);
  if (ttlSec !== null) setTtl(update, image, ttlSec);
  else if (image.ttlSec !== null) update.remove(ATTRIBUTE.ttl);
  return update.of(ns, image.key);
}

/**
 * Settles all shards of a bucket to the same rules in one transaction, and makes free and held slots add up to the capacity.
 * Writes, of every shard: as above.   Condition, of every shard: as above. Takes and releases keep the sum of a
 * shard's free and held slots and do not move rf. Splits, merges, settlements, resets and this write move rf. So the sum is
 * the one that was seen.
 * On success: nothing.   On failure: reasons.   Cost: 2 write units per started KB of every shard.
 */
export function buildSettlementOfAll(
  ns: string,
  shards: readonly ShardImage[],
  { settlements, version }: WholeSettlement,
  idsOf: (image: ShardImage) => WriteIds,
): readonly Update[] {
  return shards.flatMap((image, at) => {
    const settlement = settlements[at];
    return settlement === undefined ? [] : [buildSettlement(ns, image, settlement, version, null, idsOf(image))];
  });
}

/**
 * Without a ttl, writes did not check their debt against one, so the new ttl is right only for the item that was seen.
 */
function setTtl(update: RecordUpdate, image: ShardImage, ttlSec: number): void {
  if (image.ttlSec !== null) raiseTtl(update, ttlSec);
  else update.requireEqual(ATTRIBUTE.writeId, image.writeId).set(ATTRIBUTE.ttl, ttlSec);
}

export function settleLimit(update: RecordUpdate, settled: SettledLimit): void {
  const { name } = settled.limit;
  const tokens = ATTRIBUTE.tokens(name);
  if (settled.kind === 'unlimited') {
    if (settled.isNew) setUnlimited(update, name);
    return;
  }
  if (settled.kind === 'starts') {
    if (settled.isNew) update.requireAbsent(tokens);
    update.set(tokens, settled.tokensMilli);
  } else if (settled.write.write === 'set') {
    update.requireWithin(tokens, settled.write.atLeastMilli, null).set(tokens, settled.write.tokensMilli);
  } else {
    const { atLeastMilli, atMostMilli, deltaMilli } = settled.write;
    update.requireWithin(tokens, atLeastMilli, atMostMilli).add(tokens, deltaMilli);
  }
  update
    .set(ATTRIBUTE.capacity(name), settled.limit.capacityMilli)
    .set(ATTRIBUTE.refillAmount(name), settled.limit.refillMilli)
    .set(ATTRIBUTE.refillPeriod(name), settled.limit.refillPeriodMs);
}

/** The balance goes, and the numbers of the rule that was there before. */
function setUnlimited(update: RecordUpdate, name: string): void {
  update
    .remove(ATTRIBUTE.tokens(name))
    .remove(ATTRIBUTE.capacity(name))
    .remove(ATTRIBUTE.refillAmount(name))
    .set(ATTRIBUTE.refillPeriod(name), UNLIMITED_PERIOD);
}

function removeLimit(update: RecordUpdate, name: string): void {
  update
    .remove(ATTRIBUTE.tokens(name))
    .remove(ATTRIBUTE.capacity(name))
    .remove(ATTRIBUTE.refillAmount(name))
    .remove(ATTRIBUTE.refillPeriod(name));
}
