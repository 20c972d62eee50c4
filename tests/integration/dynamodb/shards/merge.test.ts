import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { shapeOf, splitInto, splitShard, spreading, sumOf } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const ASK = { ...BUCKET, consume: { rpm: 1 } };
const LOOK = { ...BUCKET, consume: { rpm: 0 } };
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** A token in nine seconds, so that the bucket needs days to refill. */
const LIMITS = [Limit.perDay('rpm', 10_000, { burst: 100_000 }), Limit.concurrent('slots', 40)];

describe.skipIf(ENGINE.missing)(`cold shards${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const shards = (space: Space) => space.shards('user-1', 'gpt-4');
  const shape = async (space: Space) => shapeOf(await shards(space));
  /** A bucket with this many shards, all of which were written. */
  const sharded = async (count: number, limits: readonly Limit[] = LIMITS) => {
    const space = await world.space();
    const busy = await space.open({ limits }, spreading());
    await busy.acquire({ ...BUCKET, consume: { rpm: 40_000 } });
    // The largest recent ask is that of the last minute.
    await space.clock.advance(MINUTE_MS);
    await splitInto(count, world, space, BUCKET);
    for (let taken = 0; taken < 4 * count; taken++) await busy.acquire(ASK);
    return { space, busy, calm: await space.open({ limits }) };
  };
  /** Takes 0 tokens from time to time, and every minute near the end, when a merge may be due. */
  const rest = async (space: Space, limiter: RateLimiter, ms: number): Promise<void> => {
    for (let left = ms; left > 0;) {
      const step = Math.min(left, Math.max(MINUTE_MS, Math.min(10 * MINUTE_MS, left - 6 * MINUTE_MS)));
      await space.clock.advance(step);
      await limiter.acquire(LOOK);
      left -= step;
    }
  };
  /** The last take may find a merge in progress. The next take then starts the next merge. */
  const becomes = async (space: Space, limiter: RateLimiter, expected: string): Promise<void> => {
    const look = async (): Promise<string> => {
      if ((await shape(space)) === expected) return expected;
      await space.clock.advance(MINUTE_MS);
      await limiter.acquire(LOOK);
      return shape(space);
    };
    await expect.poll(look, { timeout: 10_000 }).toBe(expected);
  };
  /** The sums that splits and merges must not change. */
  const account = async (space: Space, nowMs = space.clock.now()) => {
    const all = await shards(space);
    const { effective, consumed } = sumOf(all, 'rpm', nowMs);
    const { effective: free, held } = sumOf(all, 'slots', nowMs);
    return { effective, consumed, free, held, acquires: all.reduce((sum, shard) => sum + shard.acquires, 0) };
  };

  test('two shards without writes for an hour merge, not earlier, and the sums stay the same', async () => {
    const { space, calm } = await sharded(2);
    await calm.acquire({ ...BUCKET, consume: { slots: 3 } });
    await rest(space, calm, HOUR_MS - MINUTE_MS);
    expect(await shape(space)).toBe('0/2 1/2');
    const laterMs = space.clock.now() + HOUR_MS;
    const before = await account(space, laterMs);
    await rest(space, calm, 2 * MINUTE_MS);
    await becomes(space, calm, '0/1');
    const after = await account(space, laterMs);
    const looked = after.acquires - before.acquires;
    // Each shard rounds its refill down to millitokens, so the moment of the merge decides about one millitoken.
    expect(Math.abs(after.effective - before.effective)).toBeLessThanOrEqual(1);
    expect(after).toEqual({ ...before, effective: after.effective, acquires: before.acquires + looked });
    expect(looked).toBeGreaterThan(1);
    expect(after).toMatchObject({ consumed: 40_008_000, free: 37_000, held: 3_000 });
  });

  test('eight cold shards merge into four, two and one, hour after hour', async () => {
    const { space, calm } = await sharded(8);
    for (const expected of ['0/4 1/8 2/4 3/8 5/8 7/8', '0/2 1/4 3/4', '0/2 1/2', '0/1']) {
      await rest(space, calm, HOUR_MS + 4 * MINUTE_MS);
      await becomes(space, calm, expected);
    }
    expect(await account(space)).toMatchObject({ consumed: 40_032_000, free: 40_000, held: 0 });
  });

  test('a bucket of one merged shard gets an expiry', async () => {
    const { space, calm } = await sharded(2);
    await rest(space, calm, HOUR_MS + 2 * MINUTE_MS);
    await becomes(space, calm, '0/1');
    await calm.acquire(LOOK);
    const [shard] = await shards(space);
    expect(shard?.ttlSec).toBeGreaterThan(space.clock.now() / 1_000);
  });

  test('shards do not merge while one of them has a holder or is used', async () => {
    const { space, busy, calm } = await sharded(2);
    const leases = await Promise.all(
      Array.from({ length: 8 }, () => busy.acquire({ ...BUCKET, consume: { slots: 1 }, leaseTtlMs: 10 * HOUR_MS })),
    );
    expect((await shards(space)).every(({ holders }) => holders.size > 0)).toBe(true);
    await rest(space, calm, HOUR_MS + 2 * MINUTE_MS);
    expect(await shape(space)).toBe('0/2 1/2');
    for (const lease of leases) await lease.release();
    await rest(space, calm, HOUR_MS - MINUTE_MS);
    expect(await shape(space)).toBe('0/2 1/2');
    await rest(space, calm, 3 * MINUTE_MS);
    await becomes(space, calm, '0/1');
  });

  test('cold shards merge by the new limits if the limits have changed since', async () => {
    const { space, busy } = await sharded(2);
    const limits = [
      Limit.perDay('rpm', 10_000, { burst: 30_000 }),
      Limit.concurrent('slots', 10),
      Limit.perDay('tpm', 7),
    ];
    const calm = await space.open({ limits });
    await rest(space, calm, HOUR_MS + 2 * MINUTE_MS);
    await becomes(space, calm, '0/1');
    expect(await calm.available(BUCKET)).toEqual({ rpm: 30_000, slots: 10, tpm: 7 });
    expect(await account(space)).toMatchObject({ consumed: 40_008_000, free: 10_000 });
    await busy.acquire(ASK);
  });

  describe('processes with a stale list of shards', () => {
    const taken = async (space: Space, name = 'rpm') =>
      (await shards(space)).map(({ limits }) => Number(limits.find(({ limit }) => limit.name === name)?.consumedMilli));

    test('a process takes from the existing shards after other processes have merged them', async () => {
      const { space, busy, calm } = await sharded(4);
      for (let hour = 0; hour < 2; hour++) await rest(space, calm, HOUR_MS + 4 * MINUTE_MS);
      await becomes(space, calm, '0/1');
      const before = await account(space);
      for (let round = 0; round < 8; round++) await busy.acquire(ASK);
      expect(await account(space)).toMatchObject({
        consumed: before.consumed + 8_000,
        acquires: before.acquires + 8,
        effective: before.effective - 8_000,
      });
    });

    test('a process takes from new shards after other processes have merged and split again', async () => {
      const { space, busy, calm } = await sharded(2);
      await rest(space, calm, HOUR_MS + 2 * MINUTE_MS);
      await becomes(space, calm, '0/1');
      for (let round = 0; round < 4; round++) await busy.acquire(ASK);
      await splitInto(2, world, space, BUCKET);
      for (let round = 0; round < 20; round++) await busy.acquire(ASK);
      const [, ofSecond = 0] = await taken(space);
      expect(ofSecond).toBeGreaterThan(0);
    });

    test('a process takes from a shard that other processes have split off unevenly', async () => {
      const { space, busy } = await sharded(2);
      await splitShard(world, space, BUCKET, 0);
      // The process tries shard 3, which does not exist yet.
      for (let round = 0; round < 12; round++) await busy.acquire(ASK);
      await splitShard(world, space, BUCKET, 1);
      expect(await shape(space)).toBe('0/4 1/4 2/4 3/4');
      for (let round = 0; round < 40; round++) await busy.acquire(ASK);
      const [, , , ofLast = 0] = await taken(space);
      expect(ofLast).toBeGreaterThan(0);
    });
  });
});
