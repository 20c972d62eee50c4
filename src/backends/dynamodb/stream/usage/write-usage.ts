import type { NamespaceRecord } from '../../../../backend.js';
import { USAGE_WINDOWS } from '../../../../core/usage/usage.js';
import { type Deadline, deadlineIn } from '../../client/deadline.js';
import { buildAddUsage } from '../../bucket/expressions/add-usage.js';
import { errorOf, isRefusedForEver } from '../../client/failures.js';
import { ownOrNothing } from '../../table/foreign-record.js';
import { buildNamespaceIdKey } from '../../table/keys.js';
import { decodeNamespace } from '../../table/records.js';
import { readItems, sendRepeatable, type Table } from '../../client/requests.js';
import type { BucketChange, Poison } from '../decode.js';
import { foldUsage, inGroupsOf, newerParts, spansOf, totalOf, type UsagePart, type UsageSum } from './usage.js';

const BATCH_MS = 30_000;
const MAX_AT_ONCE = 32;

/** Each takes three operators and some 50 characters of the condition; DynamoDB ends at 300 and 4,096. */
const MAX_SHARDS_PER_WRITE = 50;

export type NamespaceStatus = NamespaceRecord['status'];

/** Changes of one bucket shard that a usage record cannot take: DynamoDB refuses the write, however often it is sent. */
export interface RefusedUsage {
  readonly sum: UsageSum;
  readonly parts: readonly UsagePart[];
  readonly error: unknown;
}

/** What became of sums. Those that failed are not counted, or not for certain, and may be given again. */
export interface AddedSums {
  readonly failed: ReadonlyMap<UsageSum, unknown>;
  /** These are passed over: whoever waited for them would wait for ever. */
  readonly refused: readonly RefusedUsage[];
}

/**
 * Adds what changes have used to the usage records, each change once however often it comes, as long as those of one
 * item come in their order. Rejects if a record could not be written: the whole batch may then be given again. What
 * DynamoDB refuses for ever goes to `onRefused`; without it, that rejects too.
 */
export async function writeUsage(
  table: Table,
  changes: readonly BucketChange[],
  onRefused?: (refused: RefusedUsage) => void,
): Promise<void> {
  if (changes.length === 0) return;
  const deadline = deadlineIn(BATCH_MS);
  const statuses = await readStatuses(table, new Set(changes.map(({ ns }) => ns)), deadline);
  const countable = changes.filter(({ ns }) => isCountable(statuses.get(ns)));
  const { failed, refused } = await addSums(table, foldUsage(countable), deadline);
  for (const error of failed.values()) throw error;
  for (const one of refused) {
    if (onRefused === undefined) throw one.error;
    onRefused(one);
  }
}

/** Adds what it can: hours, days and months unless other windows are named. */
export async function addUsageOf(
  table: Table,
  changes: readonly BucketChange[],
  deadline: Deadline,
  windows = USAGE_WINDOWS,
): Promise<AddedSums> {
  return addSums(table, foldUsage(changes, windows), deadline);
}

/** What a refusal is told as. The changes of one write are told together, under the last of them. */
export function poisonOf({ sum, parts, error }: RefusedUsage): Poison {
  const { ns, entityId, resource, window, startMs } = sum;
  const record = `the ${window} usage of ${entityId} on ${resource} from ${new Date(startMs).toISOString()} (${ns})`;
  const cause = error instanceof Error ? error.message : String(error);
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
  for (let at = 0; at < sums.length; at += MAX_AT_ONCE) {
    // All of them come to their end before the batch may be given again.
    await Promise.all(
      sums.slice(at, at + MAX_AT_ONCE).map(async (sum) => {
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

async function addSum(table: Table, sum: UsageSum, deadline: Deadline): Promise<readonly RefusedUsage[]> {
  const refused: RefusedUsage[] = [];
  for (const parts of inGroupsOf(MAX_SHARDS_PER_WRITE, sum.parts)) {
    refused.push(...(await addParts(table, sum, parts, deadline)));
  }
  return refused;
}

/** A write that landed without an answer refuses its own repetition: then nothing is left to add. */
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

/** Down to single bucket shards: a record that is nearly full still takes those that it has an attribute for. */
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
