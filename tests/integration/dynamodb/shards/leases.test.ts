import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import { shapeOf, splitInto, splitShard, spreading, sumOf } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const ASK = { ...BUCKET, consume: { rpm: 1 } };

describe.skipIf(ENGINE.missing)(`leases and config on a bucket of several shards${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** A bucket with this many shards, and a process that takes from any of them. */
  const sharded = async (count: number, limits: readonly Limit[], take = ASK.consume as Record<string, number>) => {
    const space = await world.space();
    const admin = await space.open();
    await admin.config.setResource('gpt-4', { limits });
    await (await space.open()).acquire({ ...BUCKET, consume: take });
    await splitInto(count, world, space, BUCKET);
    return { space, admin, limiter: await space.open({}, spreading()) };
  };
  const shards = (space: Space, entityId = 'user-1') => space.shards(entityId, 'gpt-4');
  /** The consumed and the stored tokens of one limit in each shard. */
  const perShard = async (space: Space, name = 'rpm') =>
    (await shards(space)).map(({ limits }) => {
      const account = limits.find(({ limit }) => limit.name === name);
      return { consumed: Number(account?.consumedMilli) / 1_000, tokens: Number(account?.tokensMilli) / 1_000 };
    });
  const changedShards = <T>(before: readonly T[], after: readonly T[]): number[] =>
    after.flatMap((state, at) => (JSON.stringify(state) === JSON.stringify(before[at]) ? [] : [at]));

  describe('leases of a shard', () => {
    test('a lease is corrected on the shard that granted it', async () => {
      const { space, limiter } = await sharded(4, [Limit.perDay('rpm', 4_000), Limit.perDay('tpm', 8_000)]);
      const granting = new Set<number>();
      for (let round = 0; round < 14; round++) {
        const states = [await perShard(space)];
        const note = async () => states.push(await perShard(space));
        const lease = await limiter.acquire({ ...BUCKET, consume: { rpm: 10, tpm: 1 } });
        await note();
        await lease.adjust({ rpm: 5 });
        await note();
        await lease.settle({ rpm: 7 });
        await note();
        if (round % 2 === 0) await lease.rollback();
        else await lease.commit({ rpm: 0 });
        await note();
        const touched = states.slice(1).map((state, at) => changedShards(states[at] ?? [], state));
        const [granted] = touched[0] ?? [];
        expect(touched).toEqual([[granted], [granted], [granted], [granted]]);
        expect(states.at(-1)).toEqual(states[0]);
        granting.add(granted ?? -1);
      }
      expect(granting).toEqual(new Set([0, 1, 2, 3]));
    });

    test('a lease with a slot is extended and released on the shard that granted it', async () => {
      const { space, limiter } = await sharded(4, [Limit.concurrent('slots', 32)], { slots: 1 });
      const ask = { ...BUCKET, consume: { slots: 1 } };
      const granting = new Set<number>();
      for (let round = 0; round < 10; round++) {
        const before = await perShard(space, 'slots');
        const lease = await limiter.acquire(ask);
        const [at = -1] = changedShards(before, await perShard(space, 'slots'));
        await lease.extend(90_000);
        const holder = (await shards(space))[at]?.holders.get(lease.id);
        expect(holder?.expiresAtMs).toBe(space.clock.now() + 90_000);
        await lease.release();
        expect(await perShard(space, 'slots')).toEqual(before);
        granting.add(at);
      }
      expect(granting.size).toBeGreaterThan(2);
    });

    test('a lease is corrected on the shard that its own shard was merged into', async () => {
      const { space, limiter } = await sharded(2, [Limit.perDay('rpm', 4_000)]);
      const leases = await Promise.all(Array.from({ length: 8 }, () => limiter.acquire(ASK)));
      for (const lease of leases) await lease.adjust({ rpm: 1 });
      const calm = await space.open();
      for (let look = 0; look < 4; look++) {
        await space.clock.advance(1_200_000);
        await calm.acquire({ ...BUCKET, consume: { rpm: 0 } });
      }
      const look = async (): Promise<string> => {
        await space.clock.advance(60_000);
        await calm.acquire({ ...BUCKET, consume: { rpm: 0 } });
        return shapeOf(await shards(space));
      };
      await expect.poll(look, { timeout: 10_000 }).toBe('0/1');
      for (const lease of leases) await lease.rollback();
      expect(sumOf(await shards(space), 'rpm', space.clock.now()).consumed).toBe(1_000);
    });
  });

  describe('asks larger than one share', () => {
    test('an ask larger than one share takes from several shards, and gives back to each of them', async () => {
      const { space, limiter } = await sharded(4, [Limit.perDay('rpm', 401)]);
      const before = await perShard(space);
      const lease = await limiter.acquire({ ...BUCKET, consume: { rpm: 350 } });
      const taken = await perShard(space);
      expect(changedShards(before, taken)).toEqual([0, 1, 2, 3]);
      expect(sumOf(await shards(space), 'rpm', space.clock.now())).toMatchObject({
        effective: 50_000,
        consumed: 351_000,
      });
      expect((await shards(space)).reduce((sum, { acquires }) => sum + acquires, 0)).toBe(2);
      await lease.settle({ rpm: 100 });
      expect(sumOf(await shards(space), 'rpm', space.clock.now())).toMatchObject({
        effective: 300_000,
        consumed: 101_000,
      });
      await lease.rollback();
      expect(sumOf(await shards(space), 'rpm', space.clock.now())).toMatchObject({
        effective: 400_000,
        consumed: 1_000,
      });
      expect((await perShard(space)).every(({ tokens }) => tokens <= 101)).toBe(true);
    });

    test('an ask larger than one share holds slots on several shards, and they are released together', async () => {
      const { space, limiter } = await sharded(2, [Limit.concurrent('slots', 9)], { slots: 1 });
      const lease = await limiter.acquire({ ...BUCKET, consume: { slots: 7 } });
      expect((await shards(space)).map(({ holders }) => holders.has(lease.id))).toEqual([true, true]);
      expect(await limiter.available(BUCKET)).toEqual({ slots: 1 });
      await lease.extend(90_000);
      const expiries = (await shards(space)).map(({ holders }) => holders.get(lease.id)?.expiresAtMs);
      expect(expiries).toEqual([space.clock.now() + 90_000, space.clock.now() + 90_000]);
      await lease.commit();
      expect(await limiter.available(BUCKET)).toEqual({ slots: 8 });
    });

    test('an ask that all shards together cannot serve takes nothing, and has an exact wait', async () => {
      const { space, limiter } = await sharded(4, [Limit.perHour('rpm', 360)]);
      await limiter.acquire({ ...BUCKET, consume: { rpm: 200 } });
      const before = await perShard(space);
      const ask = { ...BUCKET, consume: { rpm: 260 } };
      const decision = await limiter.tryAcquire(ask);
      expect(decision).toMatchObject({
        granted: false,
        reason: 'exhausted',
        retryAfterMs: expect.any(Number) as number,
      });
      expect(await perShard(space)).toEqual(before);
      const waitMs = Number(decision.granted ? null : decision.retryAfterMs);
      await space.clock.advance(waitMs - 1);
      expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, retryAfterMs: 1 });
      await space.clock.advance(1);
      await limiter.acquire(ask);
    });

    test('an ask that is larger than the whole bucket is impossible', async () => {
      const { limiter } = await sharded(4, [Limit.perHour('rpm', 360)]);
      const decision = await limiter.tryAcquire({ ...BUCKET, consume: { rpm: 361 } });
      expect(decision).toMatchObject({ granted: false, reason: 'impossible', retryAfterMs: null });
    });
  });

  describe('new limits of a bucket of several shards', () => {
    test('new limits reach every shard, and their shares add up to the whole', async () => {
      const { space, admin, limiter } = await sharded(4, [Limit.perDay('rpm', 1_000), Limit.perDay('old', 100)]);
      await admin.config.setResource('gpt-4', { limits: [Limit.perDay('rpm', 2_000), Limit.perDay('new', 102)] });
      for (let round = 0; round < 24; round++) await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
      const settled = await shards(space);
      for (const { limits } of settled) {
        expect(limits.map(({ limit }) => String(limit)).toSorted()).toEqual(['new:102/day', 'rpm:2000/day']);
      }
      // A raise adds no tokens, and an added limit starts full.
      expect(sumOf(settled, 'rpm', space.clock.now()).effective).toBe(975_000);
      expect(sumOf(settled, 'new', space.clock.now()).effective).toBe(102_000);
      await admin.config.setResource('gpt-4', { limits: [Limit.perDay('rpm', 400)] });
      limiter.config.cache.clear();
      for (let round = 0; round < 24; round++) await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
      expect(sumOf(await shards(space), 'rpm', space.clock.now()).effective).toBeLessThanOrEqual(400_000);
    });

    test.each([
      [10, 12],
      [12, 10],
      [8, 20],
      [21, 7],
    ])('a change from %i to %i slots leaves every new slot usable, and held slots stay held', async (before, after) => {
      const { space, admin, limiter } = await sharded(4, [Limit.concurrent('slots', before)], { slots: 1 });
      await admin.config.setResource('gpt-4', { limits: [Limit.concurrent('slots', after)] });
      let granted = 0;
      for (let denied = 0; denied < 8;) {
        if ((await limiter.tryAcquire({ ...BUCKET, consume: { slots: 1 } })).granted) granted += 1;
        else denied += 1;
      }
      expect(granted).toBe(after - 1);
      expect(sumOf(await shards(space), 'slots', space.clock.now())).toMatchObject({
        effective: 0,
        held: after * 1_000,
      });
    });
  });

  test('a cascade from a bucket of several shards charges each parent once', async () => {
    const { space, admin } = await sharded(4, [Limit.perDay('rpm', 4_000), Limit.concurrent('slots', 40)]);
    await admin.entities.create({ id: 'proj-1' });
    await admin.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
    const limiter = await space.open({}, spreading());
    const leases = [];
    for (let round = 0; round < 12; round++) {
      leases.push(await limiter.acquire({ ...BUCKET, consume: { rpm: 10, slots: 1 } }));
      // From here on the parent has two shards.
      if (round === 5) await splitShard(world, space, { entityId: 'proj-1', resource: 'gpt-4' }, 0);
    }
    const sums = async () => {
      const nowMs = space.clock.now();
      const [own, parent] = [await shards(space), await shards(space, 'proj-1')];
      return {
        own: sumOf(own, 'rpm', nowMs).consumed,
        parent: sumOf(parent, 'rpm', nowMs).consumed,
        held: [sumOf(own, 'slots', nowMs).held, sumOf(parent, 'slots', nowMs).held],
      };
    };
    expect(await sums()).toEqual({ own: 121_000, parent: 120_000, held: [12_000, 12_000] });
    for (const lease of leases.slice(0, 6)) await lease.commit({ rpm: 3 });
    for (const lease of leases.slice(6)) await lease.rollback();
    expect(await sums()).toEqual({ own: 19_000, parent: 18_000, held: [0, 0] });
  });

  test('a denial asks at most three shards, and none while their images are young', async () => {
    const { limiter, space } = await sharded(8, [Limit.perDay('rpm', 64)]);
    const taker = await space.open({}, spreading(2));
    for (let denied = 0; denied < 30;) if (!(await taker.tryAcquire(ASK)).granted) denied += 1;
    // The process learns of all shards.
    await limiter.tryAcquire({ ...BUCKET, consume: { rpm: 60 } });
    await space.clock.advance(1_000);
    world.proxy.requests.clear();
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: false, decidedBy: 'store' });
    expect(world.proxy.requests.byOperation()).toEqual({ UpdateItem: 3 });
    for (let round = 0; round < 20; round++) expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: false });
    expect(world.proxy.requests.count()).toBeLessThanOrEqual(8);
  });
});
