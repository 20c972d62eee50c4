import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../../clock.js';
import { isHeadgateError, ValidationError } from '../../../../core/errors.js';
import { parsePlainResource } from '../../../../core/identifiers.js';
import { type Int, sub } from '../../../../core/int.js';
import { addUsage, NO_USAGE, USAGE_WINDOWS, type UsageCounts, windowStart } from '../../../../core/usage/usage.js';
import {
  buildEntityKey,
  buildShardKey,
  buildUsageKey,
  buildUsagePrefix,
  index,
  keyItem,
  parseShardKey,
} from '../../table/keys.js';
import { number, text } from '../../table/attributes.js';
import { deadlineIn, sleep } from '../../../../machine-time.js';
import { Expression } from '../../expressions/expression.js';
import { errorOf } from '../../client/failures.js';
import { decodeCounters, type ShardCounters } from '../../table/items.js';
import { decodeUsage, USAGE_ATTRIBUTE, usageConstants } from '../../table/records.js';
import { readItems } from '../../client/batches.js';
import { REQUEST_MS, sendRead, sendRepeatable, type Table } from '../../client/requests.js';
import type { Item } from '../../client/transport.js';
import { readCheckpoints } from '../worker/checkpoints.js';
import { type BucketChange, decodeChange } from '../decode.js';
import { sequenceNumberOf } from '../process-batch.js';
import type { StreamApi } from '../worker/stream-api.js';
import { writeUsage } from '../usage/write-usage.js';

const MAX_ATTEMPTS = 8;
/** This many empty pages in a row mark the end of an open shard. */
const MAX_EMPTY_PAGES = 5;
const WAIT_MS = 1_000;
/** A change may appear in the stream a little after it was made. */
const STREAM_DELAY_MS = 5_000;

interface Repair {
  readonly table: Table;
  readonly stream: StreamApi;
  readonly ns: string;
  readonly entityId: string;
  readonly resource: string;
  readonly clock: Clock;
}

/** The repair on an open stream. */
export async function repairUsage(job: Repair): Promise<UsageCounts> {
  for (let attempt = 1; ; attempt++) {
    // The order matters: what the shards counted before the stream was read to its end is either counted or lost.
    const shards = await readShards(job);
    const seen = await countStream(job);
    const records = await readMonths(job);
    const counted = [...new Map([...shards, ...seen]).values()].reduce(addUsage, NO_USAGE);
    const held = records.map(decodeUsage).reduce<UsageCounts>(addUsage, NO_USAGE);
    const missing = excessOf(counted, held);
    if (isNothing(missing)) return missing;
    const isPending = [...shards].some(([id, shard]) => !seen.has(id) && isYoung(shard, job.clock.now()));
    if (!isPending && (await addMissing(job, missing, records))) return missing;
    // Another process counted meanwhile, or will count changes that the stream does not show yet.
    if (attempt === MAX_ATTEMPTS) {
      throw new ValidationError('entity', 'an entity without concurrent use: try again later', job.entityId);
    }
    await sleep(WAIT_MS);
  }
}

function isYoung({ writtenAtMs }: ShardCounters, nowMs: number): boolean {
  return writtenAtMs !== null && Math.abs(nowMs - writtenAtMs) < STREAM_DELAY_MS;
}

/** What each shard has counted since its creation, by shard. */
async function readShards({ table, ns, entityId, resource }: Repair): Promise<ReadonlyMap<string, ShardCounters>> {
  const counters = new Map<string, ShardCounters>();
  for (let start: Item | undefined; ;) {
    const input = {
      TableName: table.name,
      IndexName: 'GSI3',
      KeyConditionExpression: 'GSI3PK = :pk',
      ExpressionAttributeValues: { ':pk': text(index.bucketsOfEntity(ns, entityId)) },
      ...(start === undefined ? {} : { ExclusiveStartKey: start }),
    };
    const output = await sendRead(table, 'Query', input, deadlineIn(REQUEST_MS));
    const keys = (output.Items ?? []).flatMap((row) => {
      const key = parseShardKey(row['PK']?.S ?? '');
      return key !== null && parsePlainResource(key.resource) === resource ? [buildShardKey(ns, key)] : [];
    });
    for (const item of await readItems(table, keys, deadlineIn(REQUEST_MS))) {
      if (item !== undefined) counters.set(item['PK']?.S ?? '', decodeCounters(item));
    }
    start = output.LastEvaluatedKey;
    if (start === undefined) return counters;
  }
}

/** Counts the entity's changes that the stream still has. Returns the counters of each shard after its last change. */
async function countStream(job: Repair): Promise<ReadonlyMap<string, ShardCounters>> {
  const { table, stream, ns, entityId, resource } = job;
  const seen = new Map<string, ShardCounters>();
  const checkpoints = await readCheckpoints(table, stream.label);
  const shards = await stream.listShards();
  // Parents come before their children, in whatever order they are listed.
  const depthOf = (id: string | null): number => {
    const shard = shards.find((candidate) => candidate.id === id);
    return shard === undefined ? 0 : 1 + depthOf(shard.parentId);
  };
  for (const { id } of shards.toSorted((a, b) => depthOf(a.id) - depthOf(b.id))) {
    const checkpoint = checkpoints.get(id);
    if (checkpoint?.done === true) continue;
    let last = checkpoint?.sequenceNumber ?? null;
    let empty = 0;
    for (let place = await locate(stream, id, last); place !== null && empty < MAX_EMPTY_PAGES;) {
      const page = await stream.read(place);
      if (page === null) {
        // The iterator has expired.
        place = await locate(stream, id, last);
        empty += 1;
        continue;
      }
      // A page may be empty although more records follow.
      empty = page.records.length === 0 ? empty + 1 : 0;
      last = sequenceNumberOf(page.records.at(-1)) ?? last;
      const changes = page.records
        .map((record) => decodeChange(record, stream.label))
        .filter((change): change is BucketChange => change.kind === 'bucket')
        .filter(({ ns: its, key }) => its === ns && key.entityId === entityId)
        .filter(({ key }) => parsePlainResource(key.resource) === resource);
      await writeUsage(table, changes);
      for (const { key, after } of changes) {
        const { PK } = buildShardKey(ns, key);
        if (after === null) seen.set(PK, NOTHING);
        else seen.set(PK, after);
      }
      place = page.next;
    }
  }
  return seen;
}

/** Starts after the checkpoint, or at the oldest change: lost changes are the reason for the rebuild. */
async function locate(stream: StreamApi, shardId: string, sequenceNumber: string | null): Promise<string | null> {
  try {
    return await stream.locate(shardId, sequenceNumber);
  } catch (error) {
    if (sequenceNumber === null || !isHeadgateError(error, 'infrastructure.stream-trimmed')) throw error;
    return stream.locate(shardId, null);
  }
}

const NOTHING: ShardCounters = { ...NO_USAGE, shardCount: 1, writtenAtMs: null };

async function readMonths({ table, ns, entityId, resource }: Repair): Promise<readonly Item[]> {
  const items: Item[] = [];
  for (let start: Item | undefined; ;) {
    const input = {
      TableName: table.name,
      ConsistentRead: true,
      KeyConditionExpression: 'PK = :pk AND begins_with(SK, :prefix)',
      ExpressionAttributeValues: {
        ':pk': text(buildEntityKey(ns, entityId).PK),
        ':prefix': text(buildUsagePrefix(resource, 'monthly')),
      },
      ...(start === undefined ? {} : { ExclusiveStartKey: start }),
    };
    const output = await sendRead(table, 'Query', input, deadlineIn(REQUEST_MS));
    items.push(...(output.Items ?? []));
    start = output.LastEvaluatedKey;
    if (start === undefined) return items;
  }
}

/**
 * What is counted and not recorded. If more is recorded than counted, the bucket was created again and nothing can be
 * concluded.
 */
function excessOf(counted: UsageCounts, held: UsageCounts): UsageCounts {
  const consumedMilli = new Map<string, Int>();
  for (const [limit, milli] of counted.consumedMilli) {
    const excess = sub(milli, held.consumedMilli.get(limit) ?? 0);
    if (excess > 0) consumedMilli.set(limit, excess);
  }
  return {
    consumedMilli,
    acquires: Math.max(0, counted.acquires - held.acquires),
    expired: Math.max(0, counted.expired - held.expired),
  };
}

function isNothing({ consumedMilli, acquires, expired }: UsageCounts): boolean {
  return consumedMilli.size === 0 && acquires === 0 && expired === 0;
}

/**
 * Adds to the three current windows.
 * Writes: ADD u per limit, ac, un; SET ttl and index keys, always to the same values.
 * Condition: the month has every q as it was read, so that nothing was counted since; or it does not exist.
 * On failure: false, and nothing is written.   Cost: 2 WCU for each of the three.
 */
async function addMissing(job: Repair, missing: UsageCounts, records: readonly Item[]): Promise<boolean> {
  const { table, ns, entityId, resource, clock } = job;
  const nowMs = clock.now();
  const TransactItems = USAGE_WINDOWS.map((window) => {
    const startMs = windowStart(window, nowMs);
    const key = buildUsageKey(ns, entityId, resource, window, startMs);
    const usage = { entityId, resource, window, startMs };
    const expression = new Expression()
      .add(USAGE_ATTRIBUTE.acquires, missing.acquires)
      .add(USAGE_ATTRIBUTE.expired, missing.expired);
    for (const [limit, milli] of missing.consumedMilli) expression.add(USAGE_ATTRIBUTE.consumed(limit), milli);
    for (const [attribute, value] of Object.entries(usageConstants(ns, usage))) expression.set(attribute, value);
    const seen = records.find((item) => item['SK']?.S === key.SK);
    if (window === 'monthly') {
      if (seen === undefined) expression.requireAbsent('PK');
      else requireAsSeen(expression, seen, countsOf(missing));
    } else {
      // True for every item: the condition of the month decides for all three.
      expression.requireOther('PK', number(0));
    }
    return { Update: { TableName: table.name, Key: keyItem(key), ...expression.buildUpdate() } };
  });
  const answer = await sendRepeatable(
    table,
    'TransactWriteItems',
    { TransactItems, ClientRequestToken: tokenOf() },
    deadlineIn(REQUEST_MS),
  );
  if (answer.ok) return true;
  if (answer.failure.kind === 'cancelled' || answer.failure.kind === 'condition') return false;
  throw errorOf(answer.failure, 'TransactWriteItems');
}

function requireAsSeen(expression: Expression, item: Item, added: readonly string[]): void {
  const counts = Object.entries(item).filter(([attribute]) => /^(?:q_|u_|ac$|un$)/.test(attribute));
  for (const [attribute, value] of counts) expression.requireEqual(attribute, value);
  for (const attribute of added) if (item[attribute] === undefined) expression.requireAbsent(attribute);
}

function countsOf({ consumedMilli, acquires, expired }: UsageCounts): readonly string[] {
  return [
    ...(acquires === 0 ? [] : [USAGE_ATTRIBUTE.acquires]),
    ...(expired === 0 ? [] : [USAGE_ATTRIBUTE.expired]),
    ...[...consumedMilli.keys()].map(USAGE_ATTRIBUTE.consumed),
  ];
}

/** DynamoDB runs a transaction with the same token once within ten minutes, even when its answer was lost. */
function tokenOf(): string {
  return randomUUID();
}
