import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DynamoDBInternals } from '../../../../src/backends/dynamodb/dynamodb.js';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { sweep } from '../../../../src/backends/dynamodb/reconciler/sweep.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { splitInto, spreading, sumOf } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const CAPACITY = 64;
const RPM = Limit.perHour('rpm', 1_000_000);
const WITHOUT = { limits: [RPM] };
const WITH = { limits: [RPM, Limit.concurrent('slots', CAPACITY)] };

/** A process that asks this one of two shards first, once it knows both. */
function asking(shard: 0 | 1): DynamoDBInternals {
  const { pressure, random } = spreading(7);
  return { ...(pressure === undefined ? {} : { pressure }), random: () => (shard + (random?.() ?? 0)) / 2 };
}

describe.skipIf(ENGINE.missing)(`slots of a bucket of several shards${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** Two shards with 62 and 2 free slots, and a process that asks the given shard first. */
  const uneven = async (shard: 0 | 1) => {
    const space = await world.space();
    const limiter = await space.open({}, asking(shard));
    await limiter.config.setResource('gpt-4', WITH);
    const lease = await limiter.acquire({ ...BUCKET, consume: { rpm: 1, slots: 60 } });
    await splitInto(2, world, space, BUCKET);
    await lease.release();
    await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
    return { space, limiter };
  };

  /** Removes the limit and adds it again. In between, only the first shard of this process is used. */
  const removeAndPutBack = async (limiter: RateLimiter): Promise<void> => {
    for (const config of [WITHOUT, WITH]) {
      await limiter.config.setResource('gpt-4', config);
      await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
    }
  };

  /** How many leases of one slot a process can hold at once that asks every shard. */
  const mostAlive = async (space: Space): Promise<number> => {
    const limiter = await space.open({}, spreading(3));
    for (let alive = 0; ; alive++) {
      const decision = await limiter.tryAcquire({ ...BUCKET, consume: { slots: 1 }, leaseTtlMs: 3_600_000 });
      if (!decision.granted) return alive;
    }
  };

  const total = async (space: Space): Promise<number> => {
    const { effective, held } = sumOf(await space.shards('user-1', 'gpt-4'), 'slots', space.clock.now());
    return (effective + held) / 1_000;
  };

  const reconcile = async (space: Space) => sweep(world.table, { now: () => space.clock.now(), timeoutMs: 10_000 });

  test.each([0, 1] as const)(
    'a concurrent limit of 64 that was removed and added again while only shard %i was used grants 64 at once',
    async (shard) => {
      const { space, limiter } = await uneven(shard);
      await removeAndPutBack(limiter);
      expect(await total(space)).toBe(CAPACITY);
      expect(await mostAlive(space)).toBe(CAPACITY);
    },
  );

  test.each([0, 1] as const)(
    'a concurrent limit that is added to shard %i alone, because the transaction is refused, never grants more than 64, and all 64 after a sweep',
    async (shard) => {
      const { space, limiter } = await uneven(shard);
      await limiter.config.setResource('gpt-4', WITHOUT);
      await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
      await limiter.config.setResource('gpt-4', WITH);
      const conflict = world.proxy.inject(fault.transactionConflict(), { operations: ['TransactWriteItems'] });
      await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
      conflict.release();
      expect(conflict.fired).toBeGreaterThan(0);
      expect(await total(space)).toBeLessThanOrEqual(CAPACITY);
      expect(await reconcile(space)).toMatchObject({ failed: 0, busy: 0 });
      expect(await total(space)).toBe(CAPACITY);
      expect(await mostAlive(space)).toBe(CAPACITY);
    },
  );

  test('the slots of a concurrent limit that is added to a bucket of four shards are free at once', async () => {
    const space = await world.space();
    const limiter = await space.open({}, spreading());
    await limiter.config.setResource('gpt-4', WITHOUT);
    await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
    await splitInto(4, world, space, BUCKET);
    await limiter.config.setResource('gpt-4', WITH);
    await limiter.acquire({ ...BUCKET, consume: { rpm: 1, slots: 50 } });
    expect(await total(space)).toBe(CAPACITY);
    expect(await limiter.available(BUCKET)).toMatchObject({ slots: 14 });
  });

  test('a cut to 10 slots leaves 10, although one of two shards has nearly all free slots', async () => {
    const { space, limiter } = await uneven(1);
    const limits = [RPM, Limit.concurrent('slots', 10)];
    await limiter.config.setResource('gpt-4', { limits });
    await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
    expect(await mostAlive(space)).toBe(10);
  });

  test('reading a bucket with unsettled limits shows what settling would leave free', async () => {
    const { limiter } = await uneven(1);
    await limiter.config.setResource('gpt-4', { limits: [RPM, Limit.concurrent('slots', 100)] });
    expect(await limiter.available(BUCKET)).toMatchObject({ slots: 100 });
  });
});
