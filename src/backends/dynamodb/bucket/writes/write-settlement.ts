import type { TransactWriteItemsInput, UpdateItemInput } from '@aws-sdk/client-dynamodb';
import type { ConfigVersion } from '../../../../core/config/config.js';
import { number } from '../../table/attributes.js';
import { ATTRIBUTE, printVersion, type ShardImage, UNLIMITED_PERIOD } from '../../table/items.js';
import type { SettledLimit, Settlement } from '../settle.js';
import type { WholeSettlement } from '../settle-all.js';
import type { Expression } from '../../expressions/expression.js';
import { startShardUpdate, keyOf, raiseTtl, type Target, buildShardUpdate, type WriteIds } from './shard-update.js';

/**
 * Settles a shard to new rules, or only to a new base. Every limit is credited at the old rate up to the new base.
 * Writes: SET rf, cv, and per limit cp, ra, rp and ADD or SET tk; REMOVE the limits that were removed, except their tc; ttl; wc, w.
 * Condition: rf = :rf; per limit that stays, the bounds of its form; per limit that is added, tk does not exist; w <> :id,
 * and w = :seen where free slots were computed from the holders, or where a ttl is added; the stored ttl is not later.
 * On success: ALL_NEW.   On failure: ALL_OLD, absent when the item does not exist.   Cost: 1 WCU per started KB either way.
 */
export function buildSettlement(
  target: Target,
  image: ShardImage,
  settlement: Settlement,
  version: ConfigVersion,
  ttlSec: number | null,
  ids: WriteIds,
): UpdateItemInput {
  return buildShardUpdate(target, image.key, settlementExpression(image, settlement, version, ttlSec, ids).build());
}

/**
 * Settles all shards of a bucket to the same rules in one transaction, and makes free and held slots add up to the capacity.
 * Writes, of every shard: as above.   Condition, of every shard: as above. Takes and releases keep the sum of a
 * shard's free and held slots and do not move rf. Splits, merges, settlements, resets and this write move rf. So the sum is
 * the one that was seen.
 * On success: nothing.   On failure: reasons.   Cost: 2 WCU per started KB of every shard.
 */
export function buildSettlementOfAll(
  { tableName, ns }: Target,
  shards: readonly ShardImage[],
  { settlements, version }: WholeSettlement,
  idsOf: (image: ShardImage) => WriteIds,
): TransactWriteItemsInput {
  return {
    TransactItems: shards.flatMap((image, at) => {
      const settlement = settlements[at];
      if (settlement === undefined) return [];
      const expression = settlementExpression(image, settlement, version, null, idsOf(image));
      return [{ Update: { TableName: tableName, Key: keyOf(ns, image.key), ...expression.buildUpdate() } }];
    }),
  };
}

function settlementExpression(
  image: ShardImage,
  settlement: Settlement,
  version: ConfigVersion,
  ttlSec: number | null,
  ids: WriteIds,
): Expression {
  const expression = startShardUpdate(image, ids)
    .set(ATTRIBUTE.base, number(settlement.nextBaseMs))
    .set(ATTRIBUTE.version, { S: printVersion(version) });
  if (settlement.countsHolders) expression.requireEqual(ATTRIBUTE.writeId, { S: image.writeId });
  for (const limit of settlement.limits) settleLimit(expression, limit);
  for (const name of settlement.removed) removeLimit(expression, name);
  if (ttlSec !== null) setTtl(expression, image, ttlSec);
  else if (image.ttlSec !== null) expression.remove(ATTRIBUTE.ttl);
  return expression;
}

/**
 * Without a ttl, writes did not check their debt against one, so the new ttl is right only for the item that was seen.
 */
function setTtl(expression: Expression, image: ShardImage, ttlSec: number): void {
  if (image.ttlSec !== null) raiseTtl(expression, ttlSec);
  else expression.requireEqual(ATTRIBUTE.writeId, { S: image.writeId }).set(ATTRIBUTE.ttl, number(ttlSec));
}

export function settleLimit(expression: Expression, settled: SettledLimit): void {
  const { name } = settled.limit;
  const tokens = ATTRIBUTE.tokens(name);
  if (settled.kind === 'unlimited') {
    if (settled.isNew) setUnlimited(expression, name);
    return;
  }
  if (settled.kind === 'starts') {
    if (settled.isNew) expression.requireAbsent(tokens);
    expression.set(tokens, number(settled.tokensMilli));
  } else if (settled.write.write === 'set') {
    expression.requireWithin(tokens, settled.write.atLeastMilli, null).set(tokens, number(settled.write.tokensMilli));
  } else {
    const { atLeastMilli, atMostMilli, deltaMilli } = settled.write;
    expression.requireWithin(tokens, atLeastMilli, atMostMilli).add(tokens, deltaMilli);
  }
  expression
    .set(ATTRIBUTE.capacity(name), number(settled.limit.capacityMilli))
    .set(ATTRIBUTE.refillAmount(name), number(settled.limit.refillMilli))
    .set(ATTRIBUTE.refillPeriod(name), number(settled.limit.refillPeriodMs));
}

/** The balance goes, and the numbers of the rule that was there before. */
function setUnlimited(expression: Expression, name: string): void {
  expression
    .remove(ATTRIBUTE.tokens(name))
    .remove(ATTRIBUTE.capacity(name))
    .remove(ATTRIBUTE.refillAmount(name))
    .set(ATTRIBUTE.refillPeriod(name), number(UNLIMITED_PERIOD));
}

function removeLimit(expression: Expression, name: string): void {
  expression
    .remove(ATTRIBUTE.tokens(name))
    .remove(ATTRIBUTE.capacity(name))
    .remove(ATTRIBUTE.refillAmount(name))
    .remove(ATTRIBUTE.refillPeriod(name));
}
