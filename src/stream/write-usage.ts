import { type Deadline, deadlineIn } from '../backends/dynamodb/deadline.js';
import { buildAddUsage } from '../backends/dynamodb/expressions/add-usage.js';
import { errorOf } from '../backends/dynamodb/failures.js';
import { buildNamespaceIdKey } from '../backends/dynamodb/keys.js';
import { decodeNamespace } from '../backends/dynamodb/records.js';
import { readItems, sendRepeatable, type Table } from '../backends/dynamodb/requests.js';
import type { BucketChange } from './decode.js';
import { foldUsage, inGroupsOf, newerParts, spansOf, totalOf, type UsagePart, type UsageSum } from './usage.js';

const REQUEST_MS = 10_000;
const MOST_AT_ONCE = 32;

/** Each takes three operators and some 50 characters of the condition; DynamoDB ends at 300 and 4,096. */
const MOST_SHARDS_PER_WRITE = 50;

/**
 * Adds what changes have used to the usage records, each change once however often it comes, as long as those of one
 * item come in their order. Rejects if a record could not be written: the whole batch may then be given again.
 */
export async function writeUsage(table: Table, changes: readonly BucketChange[]): Promise<void> {
  if (changes.length === 0) return;
  const countable = await readCountable(table, new Set(changes.map(({ ns }) => ns)));
  const sums = foldUsage(changes.filter(({ ns }) => countable.has(ns)));
  for (let at = 0; at < sums.length; at += MOST_AT_ONCE) {
    // All of them come to their end before the batch may be given again.
    const written = await Promise.allSettled(sums.slice(at, at + MOST_AT_ONCE).map(async (sum) => addSum(table, sum)));
    for (const result of written) if (result.status === 'rejected') throw result.reason;
  }
}

/** A namespace that was deleted may come back, and wants its usage whole; one that is purged must stay empty. */
async function readCountable(table: Table, ids: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  const items = await readItems(table, [...ids].map(buildNamespaceIdKey), deadlineIn(REQUEST_MS));
  const namespaces = items.filter((item) => item !== undefined).map(decodeNamespace);
  return new Set(namespaces.filter(({ status }) => status !== 'purging').map(({ id }) => id));
}

async function addSum(table: Table, sum: UsageSum): Promise<void> {
  const deadline = deadlineIn(REQUEST_MS);
  for (const parts of inGroupsOf(MOST_SHARDS_PER_WRITE, sum.parts)) await addParts(table, sum, parts, deadline);
}

/** A write that landed without an answer refuses its own repetition: then nothing is left to add. */
async function addParts(table: Table, sum: UsageSum, parts: readonly UsagePart[], deadline: Deadline): Promise<void> {
  let left = parts;
  while (left.length > 0) {
    const input = buildAddUsage({ tableName: table.name, ns: sum.ns }, { ...sum, ...totalOf(left) }, spansOf(left));
    const answer = await sendRepeatable(table, 'UpdateItem', input, deadline);
    if (answer.ok) return;
    const { failure } = answer;
    if (failure.kind !== 'condition' || failure.item === undefined) throw errorOf(failure, 'UpdateItem');
    const { item } = failure;
    left = newerParts(left, (counted) => item[counted]?.S);
  }
}
