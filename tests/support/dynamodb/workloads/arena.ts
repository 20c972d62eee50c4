import type { Backend } from '../../../../src/backend.js';
import { createTable } from '../../../../src/backends/dynamodb/index.js';
import { createDynamoDBBackend } from '../../../../src/backends/dynamodb/dynamodb.js';
import { deadlineIn } from '../../../../src/machine-time.js';
import type { ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { readBuckets } from '../../../../src/backends/dynamodb/table/read-buckets.js';
import { buildMerge, buildSplit } from '../write-inputs.js';
import { createWriteId } from '../../../../src/backends/dynamodb/bucket/writes/record-write.js';
import { send, type Table } from '../../../../src/backends/dynamodb/client/requests.js';
import { openTransport } from '../../../../src/backends/dynamodb/client/open-transport.js';
import { planMerge, planSplit } from '../../../../src/backends/dynamodb/bucket/split.js';
import { tableDefinition } from '../../../../src/backends/dynamodb/table/table-definition.js';
import { credit, effectiveTokens } from '../../../../src/core/bucket/bucket.js';
import type { EpochMs } from '../../../../src/core/units.js';
import { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import type { Random } from '../../../../src/testing/conformance/kit/random.js';
import { type Engine, startEngine } from '../../../../src/testing/dynamodb/index.js';
import { LIMIT, RESOURCE } from './bucket-work.js';

const TABLE_NAME = 'headgate-chaos';
const TIMEOUT_MS = 10_000;

/** An engine with one table, and functions that read and change it without faults. */
export class Arena implements AsyncDisposable {
  readonly engine: Engine;
  readonly tableName = TABLE_NAME;
  readonly #table: Table;
  #namespaces = 0;

  private constructor(engine: Engine) {
    this.engine = engine;
    const { endpoint, region } = engine;
    this.#table = { name: TABLE_NAME, transport: openTransport({ endpoint, region }), random: Math.random };
  }

  static async start(): Promise<Arena> {
    const engine = await startEngine('dynoxide');
    process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
    process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
    const arena = new Arena(engine);
    // Without a stream, because each record of a stream slows this engine down.
    const { StreamSpecification: _, ...definition } = tableDefinition(TABLE_NAME);
    await arena.#table.transport.send('CreateTable', definition, deadlineIn(TIMEOUT_MS));
    await createTable({ tableName: TABLE_NAME, endpoint: engine.endpoint, region: engine.region });
    return arena;
  }

  backend(): Backend {
    return createDynamoDBBackend({ table: TABLE_NAME, endpoint: this.engine.endpoint, region: this.engine.region }, {});
  }

  /** Creates a namespace, and lets `prepare` configure it. */
  async namespace(nowMs: EpochMs, prepare: (limiter: RateLimiter) => Promise<void>): Promise<Namespace> {
    const name = `case-${++this.#namespaces}`;
    await using registrar = await RateLimiter.open(this.backend(), { clock: { now: () => nowMs } });
    const { id } = await registrar.namespaces.register(name);
    await prepare(await registrar.in(name));
    return { name, id };
  }

  /** Every shard of a bucket as it is stored. */
  async shards({ id }: Namespace, entityId: string): Promise<readonly ShardImage[]> {
    const [shards = []] = await readBuckets(
      this.#table,
      id,
      [{ entityId, resource: RESOURCE }],
      deadlineIn(TIMEOUT_MS),
    );
    return shards;
  }

  /** Splits every shard in two, until the bucket has this many. */
  async splitInto(count: number, namespace: Namespace, entityId: string, nowMs: EpochMs): Promise<void> {
    for (let shards = 1; shards < count; shards *= 2) {
      for (const image of await this.shards(namespace, entityId)) {
        const input = buildSplit(targetIn(namespace), image, planSplit(image, nowMs), writeIdAt(nowMs));
        const answer = await send(this.#table, 'TransactWriteItems', input, deadlineIn(TIMEOUT_MS));
        if (!answer.ok) throw new Error(`No split: ${JSON.stringify(answer.failure)}`);
      }
    }
  }

  /** Tries to merge a random pair of shards, and returns whether that succeeded. A concurrent write refuses it. */
  async mergeOne(namespace: Namespace, entityId: string, nowMs: EpochMs, pick: Random): Promise<boolean> {
    const shards = await this.shards(namespace, entityId);
    const pairs = shards.flatMap((stays) => shards.map((leaves) => ({ stays, leaves })));
    const merges = pairs.flatMap(({ stays, leaves }) => {
      const merge = planMerge(stays, leaves, nowMs);
      return merge === null ? [] : [buildMerge(targetIn(namespace), stays, leaves, merge, writeIdAt(nowMs))];
    });
    if (merges.length === 0) return false;
    const input = pick.pick(merges);
    return (await send(this.#table, 'TransactWriteItems', input, deadlineIn(TIMEOUT_MS))).ok;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#table.transport.close();
    await this.engine.stop();
  }
}

export interface Namespace {
  readonly name: string;
  readonly id: string;
}

function targetIn({ id: ns }: Namespace) {
  return { tableName: TABLE_NAME, ns };
}

function writeIdAt(nowMs: EpochMs): string {
  return createWriteId(nowMs, Math.random);
}

/** The sums of one limit over the shards of a bucket. */
export function sumShards(shards: readonly ShardImage[], nowMs: EpochMs, limitName: string = LIMIT) {
  const sums = { shards: shards.length, tokens: 0, consumed: 0, acquires: 0, holders: 0, held: 0 };
  for (const { limits, baseMs, acquires, holders } of shards) {
    const account = limits.find(({ limit }) => limit.name === limitName);
    if (account === undefined) throw new RangeError(`No limit ${limitName}`);
    const { rate, tokensMilli, consumedMilli } = account;
    sums.tokens += Number(effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs)));
    sums.consumed += Number(consumedMilli);
    sums.acquires += acquires;
    sums.holders += holders.size;
    for (const { slots } of holders.values()) {
      for (const { name, milli } of slots) if (name === limitName) sums.held += Number(milli);
    }
  }
  return sums;
}
