import { type Engine, startEngine } from 'headgate/testing/dynamodb';
import { BucketShards } from '../src/backends/dynamodb/acquire/bucket-shards.js';
import { deadlineIn } from '../src/machine-time.js';
import { openTransport } from '../src/backends/dynamodb/client/open-transport.js';
import { createDynamoDBBackend } from '../src/backends/dynamodb/dynamodb.js';
import { DynamoDBExecutor } from '../src/backends/dynamodb/expressions/dynamodb-executor.js';
import { RateLimiter } from '../src/limiter/rate-limiter.js';
import { clientOf, createTables, leanReach, TABLE } from './dynamodb-peers.js';
import { acquirer, fill, holderPoints, keysOf, levelPoints, limitPoints, type Open, plenty } from './growth-points.js';
import { heapGrowth } from './heap.js';
import { sized } from './settings.js';
import { type Point, printSeries } from './series.js';

const PATIENCE_MS = 30_000;
/** No pauses and no splits, and every acquire picks a random shard, as in a bucket that is busy. */
const NEVER_PACED = { paceAbove: -1, splitAbove: Infinity };
const ALWAYS_SPLIT = { paceAbove: 0, splitAbove: -1 };
/** The images of 20,000 buckets are cached. */
const BUCKETS = [1_000, 10_000, 15_000, 30_000].map(sized);

/** CPU of this process, which sends one request per acquire and level to the engine. */
export async function growthOnDynamoDB(): Promise<void> {
  await using engine = await startEngine('dynoxide');
  const client = clientOf(engine, engine.endpoint);
  await createTables(client);
  client.destroy();
  const reach = leanReach(engine);
  const open: Open = async (limits) =>
    RateLimiter.open(createDynamoDBBackend({ table: TABLE, ...reach }, { pressure: NEVER_PACED }), {
      limits,
      timeouts: { callMs: PATIENCE_MS, acquireMs: PATIENCE_MS },
    });
  await printSeries('DynamoDB, limits', await limitPoints(open));
  await printSeries('DynamoDB, levels', await levelPoints(open));
  await printSeries('DynamoDB, holders', await holderPoints(open));
  await printSeries('DynamoDB, shards', await shardPoints(engine, open));
  await printSeries('DynamoDB, buckets with images in the cache', await bucketPoints(open));
}

async function shardPoints(engine: Engine, open: Open): Promise<readonly Point[]> {
  const points: Point[] = [];
  for (const count of [1, 8, 64]) {
    const entityId = `in-${count}-shards`;
    const limiter = await open([plenty('rpd')]);
    const call = acquirer(limiter, { rpd: 1 }, [entityId]);
    await call();
    const namespace = await limiter.namespaces.get('default');
    await splitInto(count, engine, namespace?.id ?? '', { entityId, resource: 'gpt-4' });
    points.push({ label: String(count), call });
  }
  return points;
}

/** Splits a bucket like a process that has seen its shards too busy for two seconds. */
async function splitInto(
  count: number,
  { endpoint, region }: Engine,
  ns: string,
  bucket: { readonly entityId: string; readonly resource: string },
): Promise<void> {
  const transport = openTransport({ endpoint, region });
  const executor = new DynamoDBExecutor({ name: TABLE, transport, random: Math.random }, ns);
  for (let half = 1; half < count; half *= 2) {
    for (let number = 0; number < half; number++) {
      const shards = new BucketShards(executor, bucket, ALWAYS_SPLIT);
      const shard = shards.shard(number);
      const nowMs = Date.now();
      const image = await shard.read(nowMs, deadlineIn(PATIENCE_MS));
      if (image === null) throw new Error(`Expected shard ${number} of ${half} to exist`);
      for (const agoMs of [2_000, 1_000, 0]) shard.pressure.observe(image, nowMs - agoMs);
      const done = await shards.tender.tend(shard, nowMs, deadlineIn(PATIENCE_MS));
      if (done !== 'split') throw new Error(`Expected shard ${number} of ${half} to be split, got ${done}`);
    }
  }
  transport.close();
}

async function bucketPoints(open: Open): Promise<readonly Point[]> {
  const points: Point[] = [];
  for (const count of BUCKETS) {
    const limiter = await open([plenty('rpd')]);
    let filled = 0;
    const { bytes } = await heapGrowth(async () => {
      filled = await fill(limiter, count);
      return limiter;
    });
    const call = acquirer(limiter, { rpd: 1 }, keysOf(filled));
    points.push({ label: String(filled), call, bytes: bytes / filled });
  }
  return points;
}
