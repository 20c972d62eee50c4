import {
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  QueryCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { Backend, Call, LevelAsk } from '../../../src/backend.js';
import { createTable } from '../../../src/backends/dynamodb/index.js';
import { deadlineIn } from '../../../src/machine-time.js';
import { createDynamoDBBackend } from '../../../src/backends/dynamodb/dynamodb.js';
import { buildSettlement } from '../dynamodb/write-inputs.js';
import { buildSplit } from '../dynamodb/write-inputs.js';
import { createWriteId } from '../../../src/backends/dynamodb/bucket/writes/record-write.js';
import type { ShardImage } from '../../../src/backends/dynamodb/table/items.js';
import { buildShardKey, index } from '../../../src/backends/dynamodb/table/keys.js';
import { readBuckets } from '../../../src/backends/dynamodb/table/read-buckets.js';
import { send, type Table } from '../../../src/backends/dynamodb/client/requests.js';
import { sdkTransport } from '../../../src/backends/dynamodb/client/sdk-transport.js';
import { planSettle } from '../../../src/backends/dynamodb/bucket/settle/settle.js';
import { planSplit } from '../../../src/backends/dynamodb/bucket/split.js';
import type { Item } from '../../../src/backends/dynamodb/client/transport.js';
import type { Amount } from '../../../src/core/bucket/decide.js';
import { buildLeaseId } from '../../../src/core/identifiers.js';
import type { Limit } from '../../../src/core/limit.js';
import type { ReconcilerReport } from '../../../src/backends/dynamodb/reconciler/report.js';
import { sweep } from '../../../src/backends/dynamodb/reconciler/sweep.js';
import type { Engine } from '../../../src/testing/dynamodb/index.js';

export const START_MS = 1_800_000_000_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
const RESOURCE = 'gpt-4';

let tables = 0;
let leases = 0;

/** The slots and rates of one holder, and its expiry. */
export interface Hold {
  readonly asks: readonly Amount[];
  readonly untilMs: number;
  readonly nowMs?: number;
  /** Whether the rates are given back at the expiry. */
  readonly refunds?: boolean;
}

/** A new table with the namespace `default`, and functions to use and read it. */
export class ReconcilerWorld {
  readonly table: Table;
  readonly client: DynamoDBClient;
  readonly ns: string;
  readonly limits: readonly Limit[];
  readonly backend: Backend;

  private constructor(table: Table, client: DynamoDBClient, ns: string, limits: readonly Limit[]) {
    this.table = table;
    this.client = client;
    this.ns = ns;
    this.limits = limits;
    this.backend = this.openBackend(table);
  }

  static async create(engine: Engine, limits: readonly Limit[]): Promise<ReconcilerWorld> {
    const client = clientOf(engine, engine.endpoint);
    tables += 1;
    const name = `reconciler-${tables}`;
    await createTable({ tableName: name, client });
    const table = tableOf(name, client);
    const backend = createDynamoDBBackend({ table: name }, { transport: table.transport });
    const found = await backend.namespaces.read({ nowMs: START_MS, timeoutMs: 10_000 }, 'default');
    return new ReconcilerWorld(table, client, found!.id, limits);
  }

  /** A store with its own caches, like a separate process. */
  openBackend(table: Table = this.table): Backend {
    return createDynamoDBBackend({ table: table.name }, { transport: table.transport });
  }

  /** The table through a proxy. */
  through(engine: Engine, endpoint: string): Table {
    return tableOf(this.table.name, clientOf(engine, endpoint));
  }

  call(nowMs: number, namespaceId: string = this.ns): Call {
    return { namespaceId, nowMs, timeoutMs: 10_000 };
  }

  /** Takes and keeps. Returns the id of the lease and its level. */
  async hold(entityId: string, { asks, untilMs, nowMs = START_MS, refunds }: Hold, backend = this.backend) {
    leases += 1;
    const leaseId = buildLeaseId(nowMs, (leases % 262_144) / 262_144);
    const isSlots = ({ name }: Amount): boolean => this.limits.some((l) => l.name === name && l.kind === 'concurrent');
    const level: LevelAsk = {
      ...this.level(entityId),
      asks,
      holder: {
        expiresAtMs: untilMs,
        acquiredAtMs: nowMs,
        slots: asks.filter(isSlots),
        rates: refunds === true ? asks.filter((ask) => !isSlots(ask)) : null,
        caller: null,
      },
    };
    const outcome = await backend.consume(this.call(nowMs), { leaseId, levels: [level] });
    if (outcome.kind !== 'granted') throw new Error(`expected a grant, got ${JSON.stringify(outcome)}`);
    return { leaseId, level: { ...this.level(entityId), place: outcome.levels[0]?.place } };
  }

  level(entityId: string, limits: readonly Limit[] = this.limits, sequence = 1) {
    return { entityId, resource: RESOURCE, limits, version: { sequence, openedAtMs: 0 } };
  }

  async shards(entityId: string): Promise<readonly ShardImage[]> {
    const refs = [{ entityId, resource: RESOURCE, limits: this.limits }];
    const [shards = []] = await readBuckets(this.table, this.ns, refs, deadlineIn(10_000));
    return shards;
  }

  /** The only shard of a bucket. */
  async bucket(entityId: string): Promise<ShardImage> {
    const [only, ...others] = await this.shards(entityId);
    if (only === undefined || others.length > 0) throw new Error(`${entityId} has ${others.length + 1} shards`);
    return only;
  }

  /** Splits one shard of a bucket, also if it is not busy. */
  async split(entityId: string, shard: number, nowMs = START_MS): Promise<void> {
    const image = (await this.shards(entityId)).find(({ key }) => key.shard === shard)!;
    const input = buildSplit(this.target, image, planSplit(image, nowMs), createWriteId(nowMs, Math.random));
    const answer = await send(this.table, 'TransactWriteItems', input, deadlineIn(10_000));
    if (!answer.ok) throw new Error(`the split of ${entityId} ${shard} failed: ${JSON.stringify(answer.failure)}`);
  }

  /** Settles one shard of a bucket to other rules, like a take with newer rules. */
  async settle(entityId: string, shard: number, limits: readonly Limit[], nowMs: number): Promise<void> {
    const image = (await this.shards(entityId)).find(({ key }) => key.shard === shard)!;
    const ids = { own: createWriteId(nowMs, Math.random), unanswered: [] };
    const version = { sequence: image.version.sequence + 1, openedAtMs: 0 };
    const input = buildSettlement(this.target, image, planSettle(image, { limits }, nowMs), version, null, ids);
    const answer = await send(this.table, 'UpdateItem', input, deadlineIn(10_000));
    if (!answer.ok) throw new Error(`shard ${shard} of ${entityId} was not settled`);
  }

  /** Changes an item directly, unlike any client. */
  async tamper(entityId: string, attributes: Item, shard = 0): Promise<void> {
    const entries = Object.entries(attributes);
    const input = {
      TableName: this.table.name,
      Key: this.#key(entityId, shard),
      UpdateExpression: `SET ${entries.map((_, at) => `#n${at} = :v${at}`).join(', ')}`,
      ExpressionAttributeNames: Object.fromEntries(entries.map(([name], at) => [`#n${at}`, name])),
      ExpressionAttributeValues: Object.fromEntries(entries.map(([, value], at) => [`:v${at}`, value])),
    };
    await this.client.send(new UpdateItemCommand(input));
  }

  async item(entityId: string, shard = 0): Promise<Item | undefined> {
    const input = { TableName: this.table.name, Key: this.#key(entityId, shard), ConsistentRead: true };
    return (await this.client.send(new GetItemCommand(input))).Item;
  }

  async remove(entityId: string, shard = 0): Promise<void> {
    await this.client.send(new DeleteItemCommand({ TableName: this.table.name, Key: this.#key(entityId, shard) }));
  }

  /** The keys of the buckets on the sweep list. */
  async listed(ns: string = this.ns): Promise<readonly string[]> {
    const { Items = [] } = await this.client.send(
      new QueryCommand({
        TableName: this.table.name,
        IndexName: 'GSI1',
        KeyConditionExpression: 'GSI1PK = :p',
        ExpressionAttributeValues: { ':p': { S: index.sweep(ns) } },
      }),
    );
    return Items.map((item) => item['PK']?.S ?? '');
  }

  async sweep(nowMs: number, table: Table = this.table): Promise<ReconcilerReport> {
    return sweep(table, { now: () => nowMs, timeoutMs: 10_000 });
  }

  get target() {
    return { tableName: this.table.name, ns: this.ns };
  }

  #key(entityId: string, shard: number): Item {
    const { PK, SK } = buildShardKey(this.ns, { entityId, resource: RESOURCE, shard });
    return { PK: { S: PK }, SK: { S: SK } };
  }
}

export function slots(count: number): readonly Amount[] {
  return [{ name: 'slots', milli: count * 1_000 }];
}

/** The stored free slots or tokens of a limit. */
export function tokensOf({ limits }: ShardImage, name: string): number {
  return Number(limits.find(({ limit }) => limit.name === name)?.tokensMilli) / 1_000;
}

function clientOf({ region, credentials }: Engine, endpoint: string): DynamoDBClient {
  return new DynamoDBClient({ endpoint, region, credentials, maxAttempts: 1 });
}

function tableOf(name: string, client: DynamoDBClient): Table {
  return { name, transport: sdkTransport({ client }), random: Math.random };
}
