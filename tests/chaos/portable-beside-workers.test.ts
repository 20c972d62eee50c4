import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sweep } from '../../src/backends/dynamodb/reconciler/sweep.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { reshard } from '../support/dynamodb/shard/reshard.js';
import { spreading } from '../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../support/dynamodb/world.js';
import { isOfLease, LIMITS, live, sumOfTaken, USER } from '../support/features/portable-lives.js';
import type { PortableModel } from '../support/features/portable-model.js';
import { SECRET } from '../support/features/portable-stores.js';
import { workOff } from '../support/stream/world.js';

const ROUNDS = 4;
const LEASES = 5;
/** Longer than the leases live, and than the hour after which the reconciler merges shards that are not used. */
const BREAK_MS = 2 * 3_600_000;

describe.skipIf(ENGINE.missing)(`portable leases beside the workers of a table${ENGINE.note}`, () => {
  let world: DynamoWorld;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** Splits, merges and sweeps without a break until `isDone`. Returns how many splits and merges succeeded. */
  async function disturb(space: Space, isDone: () => boolean) {
    const counts = { splits: 0, merges: 0 };
    while (!isDone()) {
      const nowMs = space.clock.now();
      const at = { table: world.table, ns: space.ns, nowMs, bucket: USER };
      if (await reshard(at, 'split')) counts.splits += 1;
      counts.merges += (await sweep(world.table, { now: () => nowMs })).merged;
      if (await reshard(at, 'merge')) counts.merges += 1;
    }
    return counts;
  }

  async function usageOf(limiter: RateLimiter): Promise<Record<string, number>> {
    const sums: Record<string, number> = {};
    for await (const { tokens } of limiter.usage.query({ ...USER, window: 'hourly' })) {
      for (const [name, count] of Object.entries(tokens)) sums[name] = (sums[name] ?? 0) + count;
    }
    return sums;
  }

  test('every step of a lease counts once, in balances and in usage, while shards split and merge, the reconciler sweeps and answers are lost', async () => {
    const space = await world.space();
    const options = { limits: LIMITS, leaseSecrets: [SECRET] as const };
    const limiters = [await space.open(options, spreading(3)), await space.open(options, spreading(4))];
    // Creates the bucket, so that every write of a lease is an update.
    await (await limiters[0]!.acquire({ ...USER, consume: { rpd: 1 } })).rollback();
    const lost = { operations: ['UpdateItem'], probability: 0.1, when: isOfLease };
    const losses = world.proxy.inject(fault.loseAnswer(), lost);
    const models: PortableModel[] = [];
    const counts = { splits: 0, merges: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      let isDone = false;
      const lives = Array.from({ length: LEASES }, async (_, lease) =>
        live(limiters, new Random(round * LEASES + lease), { ends: true }),
      );
      const living = Promise.all(lives).finally(() => (isDone = true));
      const [ended, disturbed] = await Promise.all([living, disturb(space, () => isDone), workOff(world)]);
      models.push(...ended);
      counts.splits += disturbed.splits;
      counts.merges += disturbed.merges;
      await space.clock.advance(BREAK_MS);
    }
    world.proxy.heal();
    expect(losses.fired).toBeGreaterThan(0);
    expect([counts.splits > 0, counts.merges > 0]).toEqual([true, true]);
    const { limits = [], holders } = (await limiters[0]!.buckets.get(USER)) ?? {};
    const sums = sumOfTaken(models);
    expect(Object.fromEntries(limits.map(({ limit, consumed }) => [limit.name, consumed]))).toEqual(sums);
    expect([holders, sums.slots]).toEqual([0, 0]);
    await workOff(world);
    expect(await usageOf(limiters[0]!)).toEqual({ rpd: sums.rpd, tpd: sums.tpd });
    expect(space.errors).toEqual([]);
  });
});
