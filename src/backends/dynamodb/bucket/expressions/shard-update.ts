import type { UpdateItemInput } from '@aws-sdk/client-dynamodb';
import { keyItem, number } from '../../table/attributes.js';
import { ATTRIBUTE, type ShardImage } from '../../table/items.js';
import { buildShardKey, index, type ShardKey } from '../../table/keys.js';
import type { AttributeValue, Item } from '../../client/transport.js';
import { Expression, type ExpressionInput } from './expression.js';

/** Where a write goes: the table and the namespace. */
export interface Target {
  readonly tableName: string;
  readonly ns: string;
}

const BYTES_PER_UNIT = 1024;

/** What a write of an item of that size is billed for. */
export function writeUnits(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / BYTES_PER_UNIT));
}

/** A write's own id, and those of earlier ones that may have landed: it must not follow upon any of them. */
export interface WriteIds {
  readonly own: string;
  readonly unanswered: readonly string[];
}

/**
 * A write to a shard that exists: under the base that the image has, so that the parameters are as seen, and never twice
 * under one id. Counts its own units.
 */
export function startShardUpdate(image: ShardImage, { own, unanswered }: WriteIds): Expression {
  const expression = new Expression()
    .requireEqual(ATTRIBUTE.base, number(image.baseMs))
    .set(ATTRIBUTE.writeId, { S: own })
    .add(ATTRIBUTE.writeUnits, writeUnits(image.bytes));
  for (const id of [own, ...unanswered]) expression.requireOther(ATTRIBUTE.writeId, { S: id });
  return expression;
}

/** Never lowers it, and gives none to a bucket that lost its own: a debt or a holder that was not seen may need more. */
export function raiseTtl(expression: Expression, ttlSec: number): void {
  expression.requireWithin(ATTRIBUTE.ttl, null, ttlSec).set(ATTRIBUTE.ttl, number(ttlSec));
}

export function keyOf(ns: string, key: ShardKey): Item {
  return keyItem(buildShardKey(ns, key));
}

/** One write that answers with all there is: the new item, or the one that refused it. */
export function buildShardUpdate(
  { tableName, ns }: Target,
  key: ShardKey,
  expression: ExpressionInput,
): UpdateItemInput {
  return {
    TableName: tableName,
    Key: keyOf(ns, key),
    ...expression,
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}

/** What puts a bucket on the list of the reconciler. */
export const SWEEP_ATTRIBUTES = ['GSI1PK', 'GSI1SK'] as const;

/** On the list of the reconciler: holders may have to be taken back, or shards merged. */
export function sweepKeys(
  ns: string,
  key: ShardKey,
): Readonly<Record<(typeof SWEEP_ATTRIBUTES)[number], AttributeValue>> {
  return { GSI1PK: { S: index.sweep(ns) }, GSI1SK: { S: buildShardKey(ns, key).PK } };
}
