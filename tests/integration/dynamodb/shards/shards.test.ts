import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { shapeOf, splitInto, splitShard, spreading, sumOf } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const ASK = { ...BUCKET, consume: { rpm: 1 } };
/** A hundredth of the defaults. */
const PRESSURE = { paceAbove: 5, splitAbove: 10 };
const LIMITS = [Limit.perHour('rpm', 3_600_000)];

describe.skipIf(ENGINE.missing)(`the shards of a bucket${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const shape = async (space: Space) => shapeOf(await space.shards('user-1', 'gpt-4'));
  const amountIn = ({ limits }: ShardImage, name: string) =>
    limits.find(({ limit }) => limit.name === name)?.tokensMilli;

  describe('write pressure', () => {
    /** Writes at an even rate, in fake time. */
    const pressed = async (perSec: number, seconds: number, internals = { pressure: PRESSURE }) => {
      const space = await world.space();
      const limiter = await space.open({ limits: LIMITS, configCacheMs: 3_600_000 }, internals);
      for (let write = 0; write < perSec * seconds; write++) {
        await limiter.acquire(ASK);
        space.clock.set(space.clock.now() + 1_000 / perSec);
      }
      return { space, limiter };
    };
    test('pacing delays writers, so that one write has more of their asks', async () => {
      const requestsOf = async (limiter: RateLimiter) => {
        world.proxy.requests.clear();
        const first = limiter.acquire(ASK);
        // The other asks start in another turn of the event loop.
        await new Promise((resolve) => setImmediate(resolve));
        await Promise.all([first, ...Array.from({ length: 19 }, () => limiter.acquire(ASK))]);
        return world.proxy.requests.count('UpdateItem');
      };
      // Without pacing the first ask is written at once, and the others in a second write.
      expect(await requestsOf((await pressed(4, 2)).limiter)).toBe(2);
      expect(await requestsOf((await pressed(8, 2)).limiter)).toBe(1);
    });

    test('a key that pacing keeps below the threshold is not split', async () => {
      const { space } = await pressed(8, 6);
      expect(await shape(space)).toBe('0/1');
    });

    test('a key that stays above the threshold for two seconds is split, not earlier', async () => {
      const { space, limiter } = await pressed(20, 2);
      expect(await shape(space)).toBe('0/1');
      await limiter.acquire(ASK);
      await expect.poll(() => shape(space)).toBe('0/2 1/2');
    });

    test('a bucket with 40 writes a second stays at one shard', async () => {
      const { space } = await pressed(40, 5, { pressure: { paceAbove: 500, splitAbove: 1_000 } });
      expect(await shape(space)).toBe('0/1');
      const [shard] = await space.shards('user-1', 'gpt-4');
      expect(shard).toMatchObject({ acquires: 200, writeUnits: 200 });
    });

    test('the writes of all processes count for the pressure', async () => {
      const space = await world.space();
      const processes = await Promise.all(
        [0, 1, 2, 3].map(() => space.open({ limits: LIMITS }, { pressure: PRESSURE })),
      );
      // Five writes a second per process, which is too few for a split.
      for (let write = 0; write < 4 * 5 * 3; write++) {
        await processes[write % 4]?.acquire(ASK);
        await space.clock.advance(50);
      }
      await expect.poll(() => shape(space)).toBe('0/2 1/2');
      expect(sumOf(await space.shards('user-1', 'gpt-4'), 'rpm', space.clock.now()).consumed).toBe(60_000);
    });
  });

  describe('splits', () => {
    test('a split moves half of the tokens and of the free slots, and the sums stay the same', async () => {
      const space = await world.space();
      const limits = [Limit.perHour('rpm', 1_600), Limit.perDay('tpm', 999), Limit.concurrent('slots', 21)];
      const limiter = await space.open({ limits });
      await limiter.acquire({ ...BUCKET, consume: { rpm: 123, tpm: 456, slots: 4 } });
      await space.clock.advance(12_345);
      const before = await space.shards('user-1', 'gpt-4');
      await splitInto(4, world, space, BUCKET);
      const after = await space.shards('user-1', 'gpt-4');
      const nowMs = space.clock.now();
      for (const { name } of limits) expect(sumOf(after, name, nowMs)).toEqual(sumOf(before, name, nowMs));
      expect(sumOf(after, 'slots', nowMs)).toMatchObject({ effective: 17_000, held: 4_000 });
      expect(after.map((shard) => Number(amountIn(shard, 'slots')) / 1_000)).toEqual([5, 4, 4, 4]);
      expect(after.map(({ holders }) => holders.size)).toEqual([1, 0, 0, 0]);
      expect(after.map(({ acquires }) => acquires)).toEqual([1, 0, 0, 0]);
      expect(after.map(({ ttlSec }) => ttlSec)).toEqual([null, null, null, null]);
    });

    test('a split of a bucket in debt moves half of the debt', async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: [Limit.perHour('rpm', 1_000)] });
      const lease = await limiter.acquire(ASK);
      await lease.adjust({ rpm: 2_000 });
      await splitInto(2, world, space, BUCKET);
      const shards = await space.shards('user-1', 'gpt-4');
      expect(shards.map((shard) => Number(amountIn(shard, 'rpm')))).toEqual([-500_500, -500_500]);
      expect(await limiter.available(BUCKET)).toEqual({ rpm: -1_001 });
    });

    test('an uneven split grants exactly what one shard would have granted', async () => {
      const space = await world.space();
      const limits = [Limit.perHour('rpm', 100), Limit.concurrent('slots', 13)];
      const limiter = await space.open({ limits }, spreading());
      await limiter.acquire({ ...BUCKET, consume: { rpm: 1, slots: 1 } });
      for (const shard of [0, 1, 3]) await splitShard(world, space, BUCKET, shard);
      expect(shapeOf(await space.shards('user-1', 'gpt-4'))).toBe('0/2 1/4 3/8 7/8');
      expect(await limiter.available(BUCKET)).toEqual({ rpm: 99, slots: 12 });
      let granted = 0;
      for (let denied = 0; denied < 12;) {
        const decision = await limiter.tryAcquire({ ...BUCKET, consume: { slots: 1 } });
        if (decision.granted) granted += 1;
        else denied += 1;
      }
      expect(granted).toBe(12);
      expect(sumOf(await space.shards('user-1', 'gpt-4'), 'slots', space.clock.now())).toMatchObject({
        effective: 0,
        held: 13_000,
      });
    });

    test('a key that the store reports as hot is split at once, and not again for the same report', async () => {
      const space = await world.space();
      const processes = [await space.open({ limits: LIMITS }), await space.open({ limits: LIMITS })];
      for (const limiter of processes) await limiter.acquire(ASK);
      const hot = world.proxy.inject(fault.throttle(), { operations: ['UpdateItem'], times: 2 });
      await Promise.all(processes.map((limiter) => limiter.acquire(ASK)));
      expect(hot.fired).toBe(2);
      await expect.poll(() => shape(space)).toBe('0/2 1/2');
      for (let round = 0; round < 5; round++) for (const limiter of processes) await limiter.acquire(ASK);
      expect(await shape(space)).toBe('0/2 1/2');
    });

    test('a split stops at 64 shards', async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: [Limit.perDay('rpm', 640)] });
      await limiter.acquire(ASK);
      await splitInto(64, world, space, BUCKET);
      const shards = await space.shards('user-1', 'gpt-4');
      expect(shards.map(({ key }) => key.shard)).toEqual(Array.from({ length: 64 }, (_, shard) => shard));
      expect(sumOf(shards, 'rpm', space.clock.now()).effective).toBe(639_000);
      expect(await splitShard(world, space, BUCKET, 63)).toBe(null);
      await limiter.acquire(ASK);
    });

    test.each([
      ['one token', [Limit.perHour('rpm', 3)]],
      ['one slot', [Limit.perHour('rpm', 1_000), Limit.concurrent('slots', 3)]],
    ] as const)('a split never leaves a share of less than %s', async (_, limits) => {
      const space = await world.space();
      await (await space.open({ limits })).acquire(ASK);
      expect(await splitShard(world, space, BUCKET, 0)).toBe('split');
      expect(await splitShard(world, space, BUCKET, 0)).toBe(null);
      expect(await splitShard(world, space, BUCKET, 1)).toBe(null);
    });

    test('a split never leaves a share of less than four times the largest recent ask', async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: [Limit.perHour('rpm', 100)] });
      const heat = async (rpm: number): Promise<void> => {
        const hot = world.proxy.inject(fault.throttle(), { operations: ['UpdateItem'], times: 1 });
        await limiter.acquire({ ...BUCKET, consume: { rpm } });
        hot.release();
      };
      await limiter.acquire(ASK);
      await heat(13);
      await space.clock.advance(60_000);
      expect(await shape(space)).toBe('0/1');
      // After a minute the large ask no longer counts.
      await heat(12);
      await expect.poll(() => shape(space)).toBe('0/2 1/2');
    });
  });
});
