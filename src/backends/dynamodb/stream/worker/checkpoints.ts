import type { UpdateItemInput } from '@aws-sdk/client-dynamodb';
import type { EpochMs } from '../../../../core/units.js';
import { buildWorkerKey, keyItem, WORKER_SHARD_PREFIX } from '../../table/keys.js';
import { number, readKey, readNumber, readText, text } from '../../table/attributes.js';
import { deadlineIn } from '../../../../machine-time.js';
import { errorOf } from '../../client/failures.js';
import { REQUEST_MS, sendRead, sendRepeatable, type Table } from '../../client/requests.js';
import type { Item } from '../../client/transport.js';

/** How far one shard of a stream was read, and which worker reads it. */
export interface Checkpoint {
  readonly shardId: string;
  /** The last record that is processed durably, in the stream's format; null: none. */
  readonly sequenceNumber: string | null;
  /** Whether the shard is closed and was read to its end. */
  readonly done: boolean;
  readonly owner: string | null;
  /** When the owner's lease expires unless it is renewed. */
  readonly untilMs: EpochMs;
}

const SECOND_MS = 1_000;
/** A stream keeps its records for a day, so older checkpoints are not needed. */
const KEEP_SEC = 30 * 86_400;

/**
 * Assigns shards to workers. The times are the workers' own, and only the assignment depends on them: two workers that
 * read one shard count nothing twice.
 */
export class Checkpoints {
  readonly #table: Table;
  readonly #streamLabel: string;
  readonly #owner: string;
  readonly #leaseMs: number;

  constructor(table: Table, streamLabel: string, owner: string, leaseMs: number) {
    this.#table = table;
    this.#streamLabel = streamLabel;
    this.#owner = owner;
    this.#leaseMs = leaseMs;
  }

  async readAll(): Promise<ReadonlyMap<string, Checkpoint>> {
    return readCheckpoints(this.#table, this.#streamLabel);
  }

  /** Claims a shard if its checkpoint did not change or does not exist; null: another worker was faster. */
  async claim(shardId: string, seen: Checkpoint | undefined, nowMs: EpochMs): Promise<Checkpoint | null> {
    const mine = { ':me': text(this.#owner), ':until': number(nowMs + this.#leaseMs), ...ttlAt(nowMs) };
    const asSeen =
      seen?.owner == null
        ? { condition: 'attribute_not_exists(#owner)', values: {} }
        : {
            condition: '((#owner = :them AND #until = :seen) OR #owner = :me)',
            values: { ':them': text(seen.owner), ':seen': number(seen.untilMs) },
          };
    const item = await this.#update(shardId, {
      UpdateExpression: 'SET #owner = :me, #until = :until, #ttl = :ttl',
      ConditionExpression: `${asSeen.condition} AND attribute_not_exists(#done)`,
      ExpressionAttributeNames: { '#owner': 'owner', '#until': 'until', '#ttl': 'ttl', '#done': 'done' },
      ExpressionAttributeValues: { ...mine, ...asSeen.values },
    });
    return item === null ? null : decodeCheckpoint(item);
  }

  /** Stores how far the shard was read, and renews the lease; false: another worker owns the shard. */
  async advance(shardId: string, sequenceNumber: string | null, nowMs: EpochMs): Promise<boolean> {
    const read = sequenceNumber === null ? '' : ', #checkpoint = :checkpoint';
    const item = await this.#update(shardId, {
      UpdateExpression: `SET #until = :until, #ttl = :ttl${read}`,
      ConditionExpression: '#owner = :me',
      ExpressionAttributeNames: { '#owner': 'owner', '#until': 'until', '#ttl': 'ttl', ...checkpointName(read) },
      ExpressionAttributeValues: {
        ':me': text(this.#owner),
        ':until': number(nowMs + this.#leaseMs),
        ...ttlAt(nowMs),
        ...(sequenceNumber === null ? {} : { ':checkpoint': text(sequenceNumber) }),
      },
    });
    return item !== null;
  }

  /** Stores how far the shard was read, or that it was read to its end, and releases it. */
  async leave(shardId: string, sequenceNumber: string | null, done: boolean, nowMs: EpochMs): Promise<boolean> {
    const read = sequenceNumber === null ? '' : ', #checkpoint = :checkpoint';
    const item = await this.#update(shardId, {
      UpdateExpression: `SET #ttl = :ttl${read}${done ? ', #done = :done' : ''} REMOVE #owner, #until`,
      ConditionExpression: '#owner = :me',
      ExpressionAttributeNames: {
        '#owner': 'owner',
        '#until': 'until',
        '#ttl': 'ttl',
        ...checkpointName(read),
        ...(done ? { '#done': 'done' } : {}),
      },
      ExpressionAttributeValues: {
        ':me': text(this.#owner),
        ...ttlAt(nowMs),
        ...(sequenceNumber === null ? {} : { ':checkpoint': text(sequenceNumber) }),
        ...(done ? { ':done': { BOOL: true } } : {}),
      },
    });
    return item !== null;
  }

  /** May be sent twice: the condition also allows the result of the first request. */
  async #update(shardId: string, write: Omit<UpdateItemInput, 'TableName' | 'Key'>): Promise<Item | null> {
    const Key = keyItem(buildWorkerKey(this.#streamLabel, shardId));
    const input = { TableName: this.#table.name, Key, ...write, ReturnValues: 'ALL_NEW' as const };
    const answer = await sendRepeatable(this.#table, 'UpdateItem', input, deadlineIn(REQUEST_MS));
    if (answer.ok) return answer.output.Attributes ?? {};
    if (answer.failure.kind === 'condition') return null;
    throw errorOf(answer.failure, 'UpdateItem');
  }
}

/** The checkpoints of all shards that a worker ever read, by shard id. */
export async function readCheckpoints(table: Table, streamLabel: string): Promise<ReadonlyMap<string, Checkpoint>> {
  const checkpoints = new Map<string, Checkpoint>();
  for (let start: Item | undefined; ;) {
    const input = {
      TableName: table.name,
      ConsistentRead: true,
      KeyConditionExpression: 'PK = :pk',
      ExpressionAttributeValues: { ':pk': text(buildWorkerKey(streamLabel, '').PK) },
      ...(start === undefined ? {} : { ExclusiveStartKey: start }),
    };
    const output = await sendRead(table, 'Query', input, deadlineIn(REQUEST_MS));
    for (const item of output.Items ?? []) {
      const checkpoint = decodeCheckpoint(item);
      checkpoints.set(checkpoint.shardId, checkpoint);
    }
    start = output.LastEvaluatedKey;
    if (start === undefined) return checkpoints;
  }
}

function decodeCheckpoint(item: Item): Checkpoint {
  return {
    shardId: readKey(item).SK.slice(WORKER_SHARD_PREFIX.length),
    sequenceNumber: readText(item, 'checkpoint') ?? null,
    done: item['done']?.BOOL === true,
    owner: readText(item, 'owner') ?? null,
    untilMs: readNumber(item, 'until') ?? 0,
  };
}

function checkpointName(read: string): Record<string, string> {
  return read === '' ? {} : { '#checkpoint': 'checkpoint' };
}

function ttlAt(nowMs: EpochMs): Item {
  return { ':ttl': number(Math.ceil(nowMs / SECOND_MS) + KEEP_SEC) };
}
