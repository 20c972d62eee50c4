import type { Backend } from '../../src/backend.js';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { createDynamoDBBackend } from '../../src/backends/dynamodb/dynamodb.js';
import { deadlineIn } from '../../src/backends/dynamodb/client/deadline.js';
import type { ShardImage } from '../../src/backends/dynamodb/table/items.js';
import { readBuckets } from '../../src/backends/dynamodb/acquire/peek.js';
import { buildMerge, buildSplit } from '../../src/backends/dynamodb/bucket/expressions/write-split.js';
import { createWriteId } from '../../src/backends/dynamodb/bucket/write-id.js';
import { send, type Table } from '../../src/backends/dynamodb/client/requests.js';
import { openTransport } from '../../src/backends/dynamodb/client/open-transport.js';
import { planMerge, planSplit } from '../../src/backends/dynamodb/bucket/split.js';
import { tableDefinition } from '../../src/backends/dynamodb/table/table-definition.js';
import { credit, effectiveTokens } from '../../src/core/bucket/bucket.js';
import type { EpochMs } from '../../src/core/units.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import type { Random } from '../../src/testing/conformance/kit/random.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';
import { LIMIT, RESOURCE } from './bucket-work.js';

const TABLE_NAME = 'headgate-chaos';
const PATIENCE_MS = 10_000;

/** An engine with one table, and a way past every fault to what is really stored. */
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
    // Without a stream: each record makes the next one slower on this engine.
    const { StreamSpecification: _, ...definition } = tableDefinition(TABLE_NAME);
    await arena.#table.transport.send('CreateTable', definition, deadlineIn(PATIENCE_MS));
    await createTable({ tableName: TABLE_NAME, endpoint: engine.endpoint, region: engine.region });
    return arena;
  }

  backend(): Backend {
    return createDynamoDBBackend({ table: TABLE_NAME, endpoint: this.engine.endpoint, region: this.engine.region }, {});
  }

  /** A namespace of its own, with what `prepare` sets in it. */
  async namespace(nowMs: EpochMs, prepare: (limiter: RateLimiter) => Promise<void>): Promise<Namespace> {
    const name = `case-${++this.#namespaces}`;
    await using registrar = await RateLimiter.open(this.backend(), { clock: { now: () => nowMs } });
    const { id } = await registrar.namespaces.register(name);
    await prepare(await registrar.in(name));
    return { name, id };
  }

  /** Every shard of a bucket, as the store has it. */
  async shards({ id }: Namespace, entityId: string): Promise<readonly ShardImage[]> {
    const [shards = []] = await readBuckets(
      this.#table,
      id,
      [{ entityId, resource: RESOURCE }],
      deadlineIn(PATIENCE_MS),
    );
    return shards;
  }

  /** Splits every shard in two, until there are so many. */
  async splitInto(count: number, namespace: Namespace, entityId: string, nowMs: EpochMs): Promise<void> {
    for (let shards = 1; shards < count; shards *= 2) {
      for (const image of await this.shards(namespace, entityId)) {
        const input = buildSplit(targetIn(namespace), image, planSplit(image, nowMs), writeIdAt(nowMs));
        const answer = await send(this.#table, 'TransactWriteItems', input, deadlineIn(PATIENCE_MS));
        if (!answer.ok) throw new Error(`No split: ${JSON.stringify(answer.failure)}`);
      }
    }
  }

  /** Merges a pair of shards, if there is one that stands still for long enough. Gives whether it did. */
  async mergeOne(namespace: Namespace, entityId: string, nowMs: EpochMs, pick: Random): Promise<boolean> {
    const shards = await this.shards(namespace, entityId);
    const pairs = shards.flatMap((stays) => shards.map((leaves) => ({ stays, leaves })));
    const merges = pairs.flatMap(({ stays, leaves }) => {
      const merge = planMerge(stays, leaves, nowMs);
      return merge === null ? [] : [buildMerge(targetIn(namespace), stays, leaves, merge, writeIdAt(nowMs))];
    });
    if (merges.length === 0) return false;
    const input = pick.pick(merges);
    return (await send(this.#table, 'TransactWriteItems', input, deadlineIn(PATIENCE_MS))).ok;
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

/** What the shards of a bucket say together of the limit that is taken from. */
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
