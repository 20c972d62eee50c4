import type { UpdateItemInput } from '@aws-sdk/client-dynamodb';
import { number } from '../../table/attributes.js';
import { ATTRIBUTE, printVersion, type ShardImage } from '../../table/items.js';
import type { HolderChange, LimitChange, ShardWrite } from '../shard-write.js';
import type { Expression } from './expression.js';
import { startShardUpdate, raiseTtl, sweepKeys, type Target, buildShardUpdate, type WriteIds } from './shard-update.js';

/**
 * Takes, debits, refunds, holds, extends, releases and reclaims, in any mixture: one write for a whole group.
 * Writes: per limit ADD tk (room) or SET tk (full), ADD tc; ADD ac, un, wc; SET or REMOVE h; SET w; cv, ttl, GSI1 as needed.
 * Condition: rf = :rf; per limit the bounds of its form; per holder h = :seen, or not existing; cv = :seen if adopted; ttl <= :ttl
 * if it is set; w <> :id.
 * On success: ALL_NEW.   On failure: ALL_OLD, absent when the item does not exist.   Cost: 1 WCU per started KB either way.
 */
export function buildShardWrite(target: Target, image: ShardImage, move: ShardWrite, ids: WriteIds): UpdateItemInput {
  return buildShardUpdate(target, image.key, shardWriteExpression(target.ns, image, move, ids).build());
}

export function shardWriteExpression(ns: string, image: ShardImage, move: ShardWrite, ids: WriteIds): Expression {
  const expression = startShardUpdate(image, ids)
    .add(ATTRIBUTE.acquires, move.acquires)
    .add(ATTRIBUTE.expired, move.expired);
  for (const limit of move.limits) moveLimit(expression, limit);
  for (const holder of move.holders) moveHolder(expression, holder);
  if (!image.onSweepList && move.holders.some(({ kind }) => kind === 'add')) {
    for (const [attribute, value] of Object.entries(sweepKeys(ns, image.key))) expression.set(attribute, value);
  }
  if (move.adopts !== null) {
    // Of two that adopt at once, the older must not be the last.
    expression
      .requireEqual(ATTRIBUTE.version, { S: printVersion(image.version) })
      .set(ATTRIBUTE.version, { S: printVersion(move.adopts) });
  }
  if (move.ttlSec === null) expression.remove(ATTRIBUTE.ttl);
  else if (move.ttlSec !== undefined) raiseTtl(expression, move.ttlSec);
  return expression;
}

function moveLimit(expression: Expression, { name, write, consumedMilli }: LimitChange): void {
  const tokens = ATTRIBUTE.tokens(name);
  if (write.write === 'set') {
    expression.requireWithin(tokens, write.atLeastMilli, null).set(tokens, number(write.tokensMilli));
  } else {
    expression.requireWithin(tokens, write.atLeastMilli, write.atMostMilli).add(tokens, write.deltaMilli);
  }
  expression.add(ATTRIBUTE.consumed(name), consumedMilli);
}

function moveHolder(expression: Expression, move: HolderChange): void {
  const attribute = ATTRIBUTE.holder(move.leaseId);
  switch (move.kind) {
    case 'add':
      expression.requireAbsent(attribute).set(attribute, { S: move.text });
      break;
    case 'replace':
      expression.requireEqual(attribute, { S: move.seen }).set(attribute, { S: move.text });
      break;
    case 'remove':
      expression.requireEqual(attribute, { S: move.seen }).remove(attribute);
      break;
    case 'absent':
      expression.requireAbsent(attribute);
      break;
  }
}
