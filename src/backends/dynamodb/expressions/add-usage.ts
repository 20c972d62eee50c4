import type { UpdateItemInput } from '@aws-sdk/client-dynamodb';
import type { UsageRecord } from '../../../backend.js';
import { buildUsageKey, keyItem } from '../table/keys.js';
import { text } from '../table/attributes.js';
import { USAGE_ATTRIBUTE, usageConstants } from '../table/records.js';
import { Expression } from './expression.js';

/** The first and last change of one bucket shard that a write counts. */
export interface CountedSpan {
  readonly first: string;
  readonly last: string;
}

/**
 * Adds changes to a usage record, and records which changes it contains.
 * Writes: ADD u per limit, ac, un; SET q per bucket shard = its last change; ttl and index keys, always to the same values.
 * Condition: per bucket shard, q does not exist or is less than its first change.
 * On success: nothing.   On failure: ALL_OLD, whose q attributes show what is counted already.
 * Cost: 1 WCU per started KB either way; 1 more when the record is created, 2 for a month.
 */
export function buildAddUsage(
  { tableName, ns }: { readonly tableName: string; readonly ns: string },
  usage: UsageRecord,
  spans: ReadonlyMap<string, CountedSpan>,
): UpdateItemInput {
  const { entityId, resource, window, startMs } = usage;
  const expression = new Expression()
    .add(USAGE_ATTRIBUTE.acquires, usage.acquires)
    .add(USAGE_ATTRIBUTE.expired, usage.expired);
  for (const [limit, milli] of usage.consumedMilli) expression.add(USAGE_ATTRIBUTE.consumed(limit), milli);
  for (const [counted, { first, last }] of spans) {
    expression.requireAbsentOrLess(counted, text(first)).set(counted, text(last));
  }
  for (const [attribute, value] of Object.entries(usageConstants(ns, usage))) expression.set(attribute, value);
  return {
    TableName: tableName,
    Key: keyItem(buildUsageKey(ns, entityId, resource, window, startMs)),
    ...expression.build(),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}
