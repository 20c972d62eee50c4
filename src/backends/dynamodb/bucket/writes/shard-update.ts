import type { UpdateItemInput } from '@aws-sdk/client-dynamodb';
import { keyItem, number } from '../../table/attributes.js';
import { ATTRIBUTE, type ShardImage } from '../../table/items.js';
import { buildShardKey, index, type ShardKey } from '../../table/keys.js';
import type { AttributeValue, Item } from '../../client/transport.js';
import { Expression, type ExpressionInput } from '../../expressions/expression.js';

/** The table and namespace of a write. */
export interface Target {
  readonly tableName: string;
  readonly ns: string;
}

const BYTES_PER_UNIT = 1024;

/** The write units that DynamoDB bills for an item of this size. */
export function writeUnits(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / BYTES_PER_UNIT));
}

/**
 * The id of a write, and the ids of earlier writes that may have landed. The write must be refused if one of them did.
 */
export interface WriteIds {
  readonly own: string;
  readonly unanswered: readonly string[];
}

/**
 * Starts a write to an existing shard: under the base of the image, so that the rate parameters are those of the image,
 * and never twice under one id. Counts its own write units.
 */
export function startShardUpdate(image: ShardImage, { own, unanswered }: WriteIds): Expression {
  const expression = new Expression()
    .requireEqual(ATTRIBUTE.base, number(image.baseMs))
    .set(ATTRIBUTE.writeId, { S: own })
    .add(ATTRIBUTE.writeUnits, writeUnits(image.bytes));
  for (const id of [own, ...unanswered]) expression.requireOther(ATTRIBUTE.writeId, { S: id });
  return expression;
}

/** Never lowers the ttl, and adds none: a debt or a holder that the image lacks may need a longer one. */
export function raiseTtl(expression: Expression, ttlSec: number): void {
  expression.requireWithin(ATTRIBUTE.ttl, null, ttlSec).set(ATTRIBUTE.ttl, number(ttlSec));
}

export function keyOf(ns: string, key: ShardKey): Item {
  return keyItem(buildShardKey(ns, key));
}

/** An update that returns the whole item: the new one, or the one that refused it. */
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

/** The attributes that put a bucket on the sweep list. */
export const SWEEP_ATTRIBUTES = ['GSI1PK', 'GSI1SK'] as const;

/** The sweep list keys of a shard whose holders may have to be reclaimed or that may have to be merged. */
export function sweepKeys(
  ns: string,
  key: ShardKey,
): Readonly<Record<(typeof SWEEP_ATTRIBUTES)[number], AttributeValue>> {
  return { GSI1PK: { S: index.sweep(ns) }, GSI1SK: { S: buildShardKey(ns, key).PK } };
}
