import type { NamespaceRecord } from '../backend.js';
import { USAGE_WINDOWS } from '../core/usage.js';
import { type Deadline, deadlineIn } from '../backends/dynamodb/deadline.js';
import { buildAddUsage } from '../backends/dynamodb/expressions/add-usage.js';
import { errorOf } from '../backends/dynamodb/failures.js';
import { ownOrNothing } from '../backends/dynamodb/foreign.js';
import { buildNamespaceIdKey } from '../backends/dynamodb/keys.js';
import { decodeNamespace } from '../backends/dynamodb/records.js';
import { readItems, sendRepeatable, type Table } from '../backends/dynamodb/requests.js';
import type { BucketChange } from './decode.js';
import { foldUsage, inGroupsOf, newerParts, spansOf, totalOf, type UsagePart, type UsageSum } from './usage.js';

const BATCH_MS = 30_000;
const MOST_AT_ONCE = 32;

/** Each takes three operators and some 50 characters of the condition; DynamoDB ends at 300 and 4,096. */
const MOST_SHARDS_PER_WRITE = 50;

export type NamespaceStatus = NamespaceRecord['status'];

/**
 * Adds what changes have used to the usage records, each change once however often it comes, as long as those of one
 * item come in their order. Rejects if a record could not be written: the whole batch may then be given again.
 */
export async function writeUsage(table: Table, changes: readonly BucketChange[]): Promise<void> {
  if (changes.length === 0) return;
  const deadline = deadlineIn(BATCH_MS);
  const statuses = await readStatuses(table, new Set(changes.map(({ ns }) => ns)), deadline);
  const failed = await addUsageOf(
    table,
    changes.filter(({ ns }) => isCountable(statuses.get(ns))),
    deadline,
  );
  for (const error of failed.values()) throw error;
}

/** Adds what it can, and gives the sequences of the changes that some usage record does not count yet, with the reason. */
export async function addUsageOf(
  table: Table,
  changes: readonly BucketChange[],
  deadline: Deadline,
  windows = USAGE_WINDOWS,
): Promise<ReadonlyMap<string, unknown>> {
  const failed = new Map<string, unknown>();
  for (const [sum, error] of await addSums(table, foldUsage(changes, windows), deadline)) {
    for (const { sequence } of sum.parts) failed.set(sequence, error);
  }
  return failed;
}

/** Adds what it can, and gives the sums that are not counted, or not for certain, with the reason. */
export async function addSums(
  table: Table,
  sums: readonly UsageSum[],
  deadline: Deadline,
): Promise<ReadonlyMap<UsageSum, unknown>> {
  const failed = new Map<UsageSum, unknown>();
  for (let at = 0; at < sums.length; at += MOST_AT_ONCE) {
    // All of them come to their end before the batch may be given again.
    await Promise.all(
      sums.slice(at, at + MOST_AT_ONCE).map(async (sum) => {
        try {
          await addSum(table, sum, deadline);
        } catch (error) {
          failed.set(sum, error);
        }
      }),
    );
  }
  return failed;
}

/** Of namespaces by their ids; those that nobody ever registered are not in it. */
export async function readStatuses(
  table: Table,
  ids: ReadonlySet<string>,
  deadline: Deadline,
): Promise<ReadonlyMap<string, NamespaceStatus>> {
  if (ids.size === 0) return new Map();
  const items = await readItems(table, [...ids].map(buildNamespaceIdKey), deadline);
  const namespaces = items
    .map(ownOrNothing)
    .filter((item) => item !== undefined)
    .map(decodeNamespace);
  return new Map(namespaces.map(({ id, status }) => [id, status]));
}

/** A namespace that was deleted may come back, and wants its usage whole; one that is purged must stay empty. */
export function isCountable(status: NamespaceStatus | undefined): boolean {
  return status === 'active' || status === 'deleted';
}

async function addSum(table: Table, sum: UsageSum, deadline: Deadline): Promise<void> {
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
