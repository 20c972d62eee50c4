import type { NamespaceRecord } from '../../../../backend.js';
import { USAGE_WINDOWS } from '../../../../core/usage/usage.js';
import { reasonOf } from '../../../../core/reason-of.js';
import { type Deadline, deadlineIn } from '../../../../machine-time.js';
import { buildAddUsage } from '../../expressions/add-usage.js';
import { errorOf, isRefusedForEver } from '../../client/failures.js';
import { ownOrNothing } from '../../table/foreign-record.js';
import { buildNamespaceIdKey } from '../../table/keys.js';
import { decodeNamespace } from '../../table/records.js';
import { readItems } from '../../client/batches.js';
import { sendRepeatable, type Table } from '../../client/requests.js';
import type { BucketChange, Poison } from '../decode.js';
import { foldUsage, inGroupsOf, newerParts, spansOf, totalOf, type UsagePart, type UsageSum } from './usage.js';

const BATCH_MS = 30_000;
const MAX_CONCURRENT = 32;

/** Each shard takes three operators and about 50 characters of the condition; DynamoDB's limits are 300 and 4,096. */
const MAX_SHARDS_PER_WRITE = 50;

export type NamespaceStatus = NamespaceRecord['status'];

/** Changes of one bucket shard that DynamoDB permanently refuses to add to a usage record. */
export interface RefusedUsage {
  readonly sum: UsageSum;
  readonly parts: readonly UsagePart[];
  readonly error: unknown;
}

/** The result of adding sums. Failed sums are not counted, or their answer was lost; they may be added again. */
export interface AddedSums {
  readonly failed: ReadonlyMap<UsageSum, unknown>;
  /** Refused parts are skipped: a retry would never succeed. */
  readonly refused: readonly RefusedUsage[];
}

/**
 * Adds the usage of changes to the usage records. A change counts once however often it comes, if the changes of one
 * item come in order. Rejects if a record could not be written: the whole batch may then be retried.
 */
export async function writeUsage(table: Table, changes: readonly BucketChange[]): Promise<void> {
  if (changes.length === 0) return;
  const deadline = deadlineIn(BATCH_MS);
  const statuses = await readStatuses(table, new Set(changes.map(({ ns }) => ns)), deadline);
  const countable = changes.filter(({ ns }) => isCountable(statuses.get(ns)));
  const { failed, refused } = await addSums(table, foldUsage(countable), deadline);
  for (const error of failed.values()) throw error;
  for (const { error } of refused) throw error;
}

/** Adds as many sums as possible: hours, days and months unless `windows` are given. */
export async function addUsageOf(
  table: Table,
  changes: readonly BucketChange[],
  deadline: Deadline,
  windows = USAGE_WINDOWS,
): Promise<AddedSums> {
  return addSums(table, foldUsage(changes, windows), deadline);
}

/** The report of a refusal. The changes of one write are reported together, under the last of them. */
export function poisonOf({ sum, parts, error }: RefusedUsage): Poison {
  const { ns, entityId, resource, window, startMs } = sum;
  const record = `the ${window} usage of ${entityId} on ${resource} from ${new Date(startMs).toISOString()} (${ns})`;
  const cause = reasonOf(error);
  const changes = parts.length === 1 ? '1 change is' : `${parts.length} changes are`;
  return {
    kind: 'poison',
    reason: `${changes} not in ${record}: ${cause}`,
    sequence: parts.at(-1)?.sequence ?? null,
    eventId: null,
  };
}

export async function addSums(table: Table, sums: readonly UsageSum[], deadline: Deadline): Promise<AddedSums> {
  const failed = new Map<UsageSum, unknown>();
  const refused: RefusedUsage[] = [];
  for (let at = 0; at < sums.length; at += MAX_CONCURRENT) {
    // All writes end before the batch may be retried.
    await Promise.all(
      sums.slice(at, at + MAX_CONCURRENT).map(async (sum) => {
        try {
          refused.push(...(await addSum(table, sum, deadline)));
        } catch (error) {
          failed.set(sum, error);
        }
      }),
    );
  }
  return { failed, refused };
}

/** The statuses of namespaces by id. Namespaces that were never registered are missing. */
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

/** A deleted namespace may be restored, and then needs its complete usage. A purged one must stay empty. */
export function isCountable(status: NamespaceStatus | undefined): boolean {
  return status === 'active' || status === 'deleted';
}

async function addSum(table: Table, sum: UsageSum, deadline: Deadline): Promise<readonly RefusedUsage[]> {
  const refused: RefusedUsage[] = [];
  for (const parts of inGroupsOf(MAX_SHARDS_PER_WRITE, sum.parts)) {
    refused.push(...(await addParts(table, sum, parts, deadline)));
  }
  return refused;
}

/** A write whose answer was lost makes its retry fail; then nothing is left to add. */
async function addParts(
  table: Table,
  sum: UsageSum,
  parts: readonly UsagePart[],
  deadline: Deadline,
): Promise<readonly RefusedUsage[]> {
  let left = parts;
  try {
    while (left.length > 0) {
      const input = buildAddUsage({ tableName: table.name, ns: sum.ns }, { ...sum, ...totalOf(left) }, spansOf(left));
      const answer = await sendRepeatable(table, 'UpdateItem', input, deadline);
      if (answer.ok) return [];
      const { failure } = answer;
      if (failure.kind !== 'condition' || failure.item === undefined) throw errorOf(failure, 'UpdateItem');
      const { item } = failure;
      left = newerParts(left, (counted) => item[counted]?.S);
    }
    return [];
  } catch (error) {
    if (!isRefusedForEver(error)) throw error;
    return addHalves(table, { sum, parts: left, error }, deadline);
  }
}

/**
 * Halves down to single bucket shards: a record that is nearly full still accepts shards that it has an attribute for.
 */
async function addHalves(table: Table, whole: RefusedUsage, deadline: Deadline): Promise<readonly RefusedUsage[]> {
  const { sum, parts } = whole;
  const shards = new Set(parts.map(({ counted }) => counted)).size;
  if (shards === 1) return [whole];
  const refused: RefusedUsage[] = [];
  for (const half of inGroupsOf(Math.ceil(shards / 2), parts)) {
    refused.push(...(await addParts(table, sum, half, deadline)));
  }
  return refused;
}
