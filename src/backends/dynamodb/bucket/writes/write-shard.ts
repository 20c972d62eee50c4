import type { UpdateItemInput } from '@aws-sdk/client-dynamodb';
import { number } from '../../table/attributes.js';
import { ATTRIBUTE, printVersion, type ShardImage } from '../../table/items.js';
import type { HolderChange, LimitChange, ShardWrite } from '../shard-write.js';
import type { Expression } from '../../expressions/expression.js';
import { startShardUpdate, raiseTtl, sweepKeys, type Target, buildShardUpdate, type WriteIds } from './shard-update.js';

/**
 * Takes, debits, refunds, holds, extends, releases and reclaims, in any combination: one write for a whole group.
 * Writes: per limit ADD tk (room) or SET tk (full), ADD tc; ADD ac, un, wc; SET or REMOVE h; SET w; cv, ttl, GSI1 as needed.
 * Condition: rf = :rf; per limit the bounds of its form; per holder h = :seen, or h does not exist; cv = :seen if adopted; ttl <= :ttl
 * if it is set; w <> :id.
 * On success: ALL_NEW.   On failure: ALL_OLD, absent when the item does not exist.   Cost: 1 WCU per started KB either way.
 */
export function buildShardWrite(target: Target, image: ShardImage, write: ShardWrite, ids: WriteIds): UpdateItemInput {
  return buildShardUpdate(target, image.key, shardWriteExpression(target.ns, image, write, ids).build());
}

export function shardWriteExpression(ns: string, image: ShardImage, write: ShardWrite, ids: WriteIds): Expression {
  const expression = startShardUpdate(image, ids)
    .add(ATTRIBUTE.acquires, write.acquires)
    .add(ATTRIBUTE.expired, write.expired);
  for (const limit of write.limits) changeLimit(expression, limit);
  for (const holder of write.holders) changeHolder(expression, holder);
  if (!image.onSweepList && write.holders.some(({ kind }) => kind === 'add')) {
    for (const [attribute, value] of Object.entries(sweepKeys(ns, image.key))) expression.set(attribute, value);
  }
  if (write.adopts !== null) {
    // If two writers adopt a version at once, the older version must not be written last.
    expression
      .requireEqual(ATTRIBUTE.version, { S: printVersion(image.version) })
      .set(ATTRIBUTE.version, { S: printVersion(write.adopts) });
  }
  if (write.ttlSec === null) expression.remove(ATTRIBUTE.ttl);
  else if (write.ttlSec !== undefined) raiseTtl(expression, write.ttlSec);
  return expression;
}

function changeLimit(expression: Expression, { name, write, consumedMilli }: LimitChange): void {
  const tokens = ATTRIBUTE.tokens(name);
  if (write.write === 'set') {
    expression.requireWithin(tokens, write.atLeastMilli, null).set(tokens, number(write.tokensMilli));
  } else {
    expression.requireWithin(tokens, write.atLeastMilli, write.atMostMilli).add(tokens, write.deltaMilli);
  }
  expression.add(ATTRIBUTE.consumed(name), consumedMilli);
}

function changeHolder(expression: Expression, change: HolderChange): void {
  const attribute = ATTRIBUTE.holder(change.leaseId);
  switch (change.kind) {
    case 'add':
      expression.requireAbsent(attribute).set(attribute, { S: change.text });
      break;
    case 'replace':
      expression.requireEqual(attribute, { S: change.seen }).set(attribute, { S: change.text });
      break;
    case 'remove':
      expression.requireEqual(attribute, { S: change.seen }).remove(attribute);
      break;
    case 'absent':
      expression.requireAbsent(attribute);
      break;
  }
}
