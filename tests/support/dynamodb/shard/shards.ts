import { BucketShards } from '../../../../src/backends/dynamodb/acquire/bucket-shards.js';
import { deadlineIn } from '../../../../src/machine-time.js';
import type { DynamoDBInternals } from '../../../../src/backends/dynamodb/dynamodb.js';
import { DynamoDBExecutor } from '../../../../src/backends/dynamodb/expressions/dynamodb-executor.js';
import type { ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { credit, effectiveTokens } from '../../../../src/core/bucket/bucket.js';
import { amountOf } from '../../../../src/core/bucket/decide.js';
import { Random } from '../../../../src/testing/conformance/kit/random.js';
import type { DynamoWorld, Space } from '../world.js';

const TIMEOUT_MS = 10_000;

interface Bucket {
  readonly entityId: string;
  readonly resource: string;
}

/** The sums of one limit over all shards of a bucket, in millitokens. */
export function sumOf(shards: readonly ShardImage[], name: string, nowMs: number) {
  const sum = { effective: 0, held: 0, consumed: 0 };
  for (const { limits, baseMs, holders } of shards) {
    for (const { limit, rate, tokensMilli, consumedMilli } of limits) {
      if (limit.name !== name) continue;
      sum.effective += Number(effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs)));
      sum.consumed += Number(consumedMilli);
    }
    for (const { slots } of holders.values()) sum.held += Number(amountOf(slots, name) ?? 0);
  }
  return sum;
}

/** `0/4 1/2 2/4`: the number of each shard, and its shard count. */
export function shapeOf(shards: readonly ShardImage[]): string {
  return shards.map(({ key, shardCount }) => `${key.shard}/${shardCount}`).join(' ');
}

/** Every acquire chooses a random shard, and only a throttled key is split. */
export function spreading(seed = 1): DynamoDBInternals {
  const random = new Random(seed);
  return {
    pressure: { paceAbove: 0, splitAbove: Infinity },
    random: () => random.whole(0, 2 ** 32 - 1) / 2 ** 32,
  };
}

const EAGER = { paceAbove: 0, splitAbove: -1 };

/** Splits one shard like a process whose key is too busy for two seconds. */
export async function splitShard(world: DynamoWorld, space: Space, bucket: Bucket, shard: number) {
  const shards = new BucketShards(new DynamoDBExecutor(world.table, space.ns), bucket, EAGER);
  const busy = shards.shard(shard);
  const nowMs = space.clock.now();
  const image = (await busy.read(nowMs, deadlineIn(TIMEOUT_MS)))!;
  for (const agoMs of [2_000, 1_000, 0]) busy.pressure.observe(image, nowMs - agoMs);
  return shards.tender.tend(busy, nowMs, deadlineIn(TIMEOUT_MS));
}

/** Splits an existing bucket into this many shards of the same size. */
export async function splitInto(count: number, world: DynamoWorld, space: Space, bucket: Bucket): Promise<void> {
  for (let half = 1; half < count; half *= 2) {
    for (let shard = 0; shard < half; shard++) {
      const outcome = await splitShard(world, space, bucket, shard);
      if (outcome !== 'split') throw new Error(`shard ${shard} of ${half} cannot be split`);
    }
  }
}

/** Merges shard 1 of two into shard 0, like a process that has looked for cold shards. */
export async function mergeShards(world: DynamoWorld, space: Space, bucket: Bucket) {
  const calm = { paceAbove: Infinity, splitAbove: Infinity };
  const shards = new BucketShards(new DynamoDBExecutor(world.table, space.ns), bucket, calm);
  const first = shards.shard(0);
  const nowMs = space.clock.now();
  await first.read(nowMs, deadlineIn(TIMEOUT_MS));
  return shards.tender.tend(first, nowMs, deadlineIn(TIMEOUT_MS));
}
