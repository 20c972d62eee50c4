import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { splitInto, spreading, sumOf } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';
import { quickRandom } from '../../../support/dynamodb/quick-random.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const TEAM = { ...BUCKET, entityId: 'team' };
const CUT = { ...BUCKET, consume: { rpd: 1, tpd: 60 }, atMost: 'tpd' } as const;
const OWN = [Limit.perDay('rpd', 1_000), Limit.perDay('tpd', 100)];
const QUICK = { random: quickRandom };

describe.skipIf(ENGINE.missing)(`asks that may be cut${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true, askForCapacity: true });
  });
  afterEach(() => world?.proxy.heal());
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const costOf = async (work: () => Promise<unknown>) => {
    const { requests } = world.proxy;
    requests.clear();
    await work();
    return { requests: requests.count(), ...requests.consumed() };
  };
  /** The user and its team, which has less. */
  const inTeam = async (team: number): Promise<Space> => {
    const space = await world.space();
    const admin = await space.open();
    await admin.entities.create({ id: 'team' });
    await admin.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
    await admin.config.setEntityDefault('team', { limits: [Limit.perDay('tpd', team)] });
    await admin.config.setEntityDefault('user-1', { limits: OWN });
    return space;
  };
  /** What is missing of `tpd` in a bucket, in tokens. */
  const missing = async (space: Space, { entityId, resource }: typeof BUCKET, capacity: number) => {
    const shards = await space.shards(entityId, resource);
    return capacity - sumOf(shards, 'tpd', space.clock.now()).effective / 1_000;
  };
  const takenBy = async (limiter: RateLimiter, count: number): Promise<number> => {
    const decisions = await Promise.all(Array.from({ length: count }, async () => limiter.tryAcquire(CUT)));
    return decisions.reduce((sum, one) => sum + (one.granted ? (one.lease.consumed['tpd'] ?? 0) : 0), 0);
  };

  test('a warm ask that is cut is one write of one unit, and a cascade one for each level', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: OWN });
    await limiter.acquire(CUT);
    const one = await costOf(async () => expect((await limiter.acquire(CUT)).consumed).toEqual({ rpd: 1, tpd: 40 }));
    expect(one).toEqual({ requests: 1, readUnits: 0, writeUnits: 1 });
    const chain = await inTeam(70);
    const child = await chain.open();
    await child.acquire(CUT);
    const two = await costOf(async () => expect((await child.acquire(CUT)).consumed).toEqual({ rpd: 1, tpd: 10 }));
    expect(two).toEqual({ requests: 2, readUnits: 0, writeUnits: 2 });
  });

  test('an atomic ask that needs several shards takes the same amount at every level', async () => {
    const space = await inTeam(0);
    const limiter = await space.open({}, spreading(3));
    const rpd = Limit.perDay('rpd', 100);
    await limiter.config.setEntityDefault('user-1', { limits: [rpd, Limit.perDay('tpd', 600)] });
    await limiter.config.setEntityDefault('team', { limits: [rpd, Limit.perDay('tpd', 1_000)] });
    await limiter.acquire({ ...BUCKET, consume: { rpd: 1, tpd: 1 } });
    for (const bucket of [BUCKET, TEAM]) await splitInto(2, world, space, bucket);
    const lease = await limiter.acquire({ ...BUCKET, consume: { rpd: 60, tpd: 900 }, atMost: 'tpd', atomic: true });
    const taken = { rpd: 60, tpd: 299 };
    expect(lease.consumed).toEqual(taken);
    expect([await missing(space, BUCKET, 600), await missing(space, TEAM, 1_000)]).toEqual([300, 300]);
    await lease.rollback();
    expect([await missing(space, BUCKET, 600), await missing(space, TEAM, 1_000)]).toEqual([1, 1]);
  });

  test('asks of one group are cut after the whole asks, in one write', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: OWN });
    await limiter.acquire({ ...BUCKET, consume: { tpd: 1 } });
    const whole = { ...BUCKET, consume: { tpd: 50 } };
    let taken: unknown;
    const cost = await costOf(async () => {
      const leases = await Promise.all([limiter.acquire(CUT), limiter.acquire(whole)]);
      taken = leases.map(({ consumed }) => consumed['tpd']);
    });
    expect(taken).toEqual([49, 50]);
    expect(cost).toEqual({ requests: 1, readUnits: 0, writeUnits: 1 });
  });

  test('four processes take from a bucket of four shards all that there is, and no more', async () => {
    const space = await world.space();
    await (await space.open({ limits: OWN })).acquire({ ...BUCKET, consume: { tpd: 1 } });
    await splitInto(4, world, space, BUCKET);
    const limiters = await Promise.all([1, 2, 3, 4].map((seed) => space.open({ limits: OWN }, spreading(seed))));
    let sum = 1;
    for (let round = 0; round < 8; round++) {
      const taken = await Promise.all(limiters.map((limiter) => takenBy(limiter, 2)));
      sum += taken.reduce((all, tpd) => all + tpd, 0);
      expect(await missing(space, BUCKET, 100)).toBe(sum);
    }
    // Each shard may keep less than one token.
    expect(sum).toBeGreaterThan(96);
  });

  test('processes of a cascade, one level in shards, take the same at both levels', async () => {
    const space = await inTeam(90);
    await (await space.open()).acquire({ ...CUT, consume: { rpd: 1, tpd: 1 } });
    await splitInto(2, world, space, TEAM);
    const limiters = await Promise.all([1, 2].map((seed) => space.open({}, { ...spreading(seed), ...QUICK })));
    let sum = 1;
    for (let round = 0; round < 6; round++) {
      const taken = await Promise.all(limiters.map((limiter) => takenBy(limiter, 2)));
      sum += taken.reduce((all, tpd) => all + tpd, 0);
    }
    expect(await missing(space, BUCKET, 100)).toBe(sum);
    expect(await missing(space, TEAM, 90)).toBe(sum);
    expect(sum).toBeGreaterThan(45);
    expect(space.errors).toEqual([]);
  });

  test.each([
    ['a write', { ...CUT, leaseTtlMs: 3_600_000 }, ['UpdateItem']],
    ['a transaction', { ...CUT, leaseTtlMs: 3_600_000, atomic: true }, ['TransactWriteItems']],
  ] as const)(
    '%s whose answer is lost, beside another process, gives back what it took',
    async (_, ask, operations) => {
      const space = await inTeam(70);
      const [limiter, other] = [await space.open({}, QUICK), await space.open()];
      for (const one of [limiter, other]) await (await one.acquire({ ...CUT, consume: { rpd: 1, tpd: 5 } })).rollback();
      // What was spent before shows a refund that is too large: a full bucket would hide it.
      await other.acquire({ ...CUT, consume: { rpd: 1, tpd: 30 } });
      // The other process takes between the lost write and its repetition, so that another amount would be there.
      const lost = world.proxy.inject(fault.loseAnswer(), { operations: [...operations], times: 1 });
      const asked = limiter.tryAcquire(ask);
      await expect.poll(() => lost.fired).toBe(1);
      const beside = await other.tryAcquire({ ...CUT, consume: { rpd: 1, tpd: 7 } });
      const decision = await asked;
      for (const one of [decision, beside]) if (one.granted) await one.lease.rollback();
      await expect.poll(async () => missing(space, TEAM, 70)).toBe(30);
      expect(await missing(space, BUCKET, 100)).toBe(30);
    },
  );
});
