import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import type { AcquireRequest } from '../../../../src/limiter/acquire/request.js';
import { Random } from '../../../../src/testing/conformance/kit/random.js';
import { type DynamoRequest, fault } from '../../../../src/testing/dynamodb/index.js';
import { splitInto, spreading } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const RESOURCE = 'gpt-4';
const LIMITS = { limits: [Limit.perHour('rpm', 60), Limit.concurrent('slots', 4)], leaseTtlMs: 3_600_000 };
const ASK = { entityId: 'user-1', resource: RESOURCE, consume: { rpm: 1, slots: 1 } };
/** Shortens the minutes between the attempts to give slots back to seconds. Write ids use the same source. */
const QUICK = { random: () => Math.random() / 200 };
/** Pauses that last longer than the faults of a test. */
const STEADY = { random: () => 0.03 + Math.random() / 100 };
const WRITES = { operations: ['PutItem', 'UpdateItem'] };
/** A write and its two retries. */
const SENDINGS = 3;
const UNTOUCHED = { free: 4, held: 0, taken: 0, acquires: 0 };

describe.skipIf(ENGINE.missing)(`grants with lost answers${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterEach(() => world?.proxy.heal());
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** The sums over all shards of a bucket. */
  const stored = async (space: Space, entityId = 'user-1') => {
    const sum = { free: 0, held: 0, taken: 0, acquires: 0 };
    for (const { limits, holders, acquires } of await space.shards(entityId, RESOURCE)) {
      sum.held += holders.size;
      sum.acquires += acquires;
      for (const { limit, tokensMilli, consumedMilli } of limits) {
        if (limit.name === 'slots') sum.free += Number(tokensMilli) / 1_000;
        else sum.taken += Number(consumedMilli) / 1_000;
      }
    }
    return sum;
  };
  const refused = async (limiter: RateLimiter, count: number, ask: AcquireRequest = ASK): Promise<void> => {
    const asked = await Promise.allSettled(Array.from({ length: count }, () => limiter.acquire(ask)));
    for (const outcome of asked) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'backend.unavailable' } });
    }
  };
  /** Afterwards the process has an image of the bucket, and its next write is an update. */
  const warm = async (limiter: RateLimiter): Promise<void> => (await limiter.acquire(ASK)).rollback();

  describe.each([
    ['a new bucket', false],
    ['a bucket that exists', true],
  ])('lost answers of %s', (_, exists) => {
    const before = exists ? { ...UNTOUCHED, acquires: 1 } : UNTOUCHED;

    test.each(['lose-answer', 'lose-request'] as const)(
      '4 of 4 slots are free again after %s, long before the leases expire',
      async (kind) => {
        const space = await world.space();
        const limiter = await space.open(LIMITS, STEADY);
        if (exists) await warm(limiter);
        world.proxy.inject(kind === 'lose-answer' ? fault.loseAnswer() : fault.loseRequest(), WRITES);
        await refused(limiter, 4);
        world.proxy.heal();
        await expect.poll(() => stored(space)).toEqual(before);
        const other = await space.open(LIMITS);
        for (let slot = 0; slot < 4; slot++) await other.acquire(ASK);
        expect(space.errors).toEqual([]);
      },
    );

    test('a write that lands after its revocation is refused by its condition', async () => {
      const space = await world.space();
      const limiter = await space.open({ ...LIMITS, timeouts: { callMs: 400, acquireMs: 10_000 } }, QUICK);
      if (exists) await warm(limiter);
      else await limiter.config.resolve('user-1', RESOURCE);
      world.proxy.requests.clear();
      const late = world.proxy.inject(fault.holdRequest(), { ...WRITES, times: 1 });
      await refused(limiter, 1);
      // Closing waits for the revocation.
      await limiter.close();
      const [held] = world.proxy.requests.recorded.filter(({ faults }) => faults.includes('hold-request'));
      late.release();
      await expect.poll(() => held?.forwarded).toBe(true);
      await expect.poll(() => held?.answer).toMatchObject({ status: 400 });
      expect(await stored(space)).toEqual(before);
      expect(space.errors).toEqual([]);
    });
  });

  test('every level of a cascade is free again, whether its write was answered or not', async () => {
    const space = await world.space();
    const admin = await space.open();
    await admin.entities.create({ id: 'proj-1' });
    await admin.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
    const limiter = await space.open(LIMITS, QUICK);
    await warm(limiter);
    const writesTo = (entityId: string) => (request: DynamoRequest) =>
      request.operation === 'UpdateItem' && JSON.stringify(request.body).includes(`/BUCKET#${entityId}#`);
    world.proxy.inject(fault.loseAnswer(), { when: writesTo('proj-1'), times: SENDINGS });
    let sent = 0;
    // The take of the child is answered, and its compensation is not.
    world.proxy.inject(fault.loseRequest(), {
      when: (request) => writesTo('user-1')(request) && (sent += 1) > 1 && sent <= 1 + SENDINGS,
    });
    await refused(limiter, 1);
    await expect.poll(() => stored(space)).toEqual({ ...UNTOUCHED, acquires: 1 });
    await expect.poll(() => stored(space, 'proj-1')).toEqual({ ...UNTOUCHED, acquires: 1 });
    expect(space.errors).toEqual([]);
  });

  test('a transaction without an answer leaves no slot taken at any level', async () => {
    const space = await world.space();
    const admin = await space.open();
    await admin.entities.create({ id: 'proj-1' });
    await admin.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
    const limiter = await space.open({ ...LIMITS, maxRetries: 0 }, QUICK);
    const lost = world.proxy.inject(fault.loseAnswer(), { operations: ['TransactWriteItems'], times: 1 });
    // The client cannot read either whether the transaction landed.
    const unseen = { operations: ['GetItem'], when: () => lost.fired > 0, times: 6 };
    world.proxy.inject(fault.serverError(), unseen);
    await refused(limiter, 1, { ...ASK, atomic: true });
    await expect.poll(() => stored(space)).toEqual(UNTOUCHED);
    await expect.poll(() => stored(space, 'proj-1')).toEqual(UNTOUCHED);
  });

  describe('lost answers of a bucket of 4 shards', () => {
    /** The free slots and the number of holders of each shard. */
    const perShard = async (space: Space) =>
      (await space.shards('user-1', RESOURCE)).map(({ limits, holders }) => ({
        free: Number(limits.find(({ limit }) => limit.name === 'slots')?.tokensMilli) / 1_000,
        held: holders.size,
      }));
    const sharded = async () => {
      const space = await world.space();
      const admin = await space.open(LIMITS);
      await admin.config.setResource(RESOURCE, { limits: [Limit.concurrent('slots', 32)] });
      await (await (await space.open(LIMITS)).acquire({ ...ASK, consume: { slots: 1 } })).rollback();
      await splitInto(4, world, space, { entityId: 'user-1', resource: RESOURCE });
      const limiter = await space.open({ ...LIMITS, limits: [] }, spreading());
      // The process learns the number of shards.
      await (await limiter.acquire({ ...ASK, consume: { slots: 32 } })).rollback();
      return { space, limiter, before: await perShard(space) };
    };

    test('the slots of each shard are free again after lost answers', async () => {
      const { space, limiter, before } = await sharded();
      world.proxy.inject(fault.loseAnswer(), WRITES);
      for (let ask = 0; ask < 6; ask++) await refused(limiter, 1, { ...ASK, consume: { slots: 1 } });
      world.proxy.heal();
      await limiter.close();
      expect(await perShard(space)).toEqual(before);
      expect(space.errors).toEqual([]);
    });

    test('an ask over all shards, one of which loses its answers, leaves no slot taken', async () => {
      const { space, limiter, before } = await sharded();
      const toShard2 = (request: DynamoRequest) =>
        request.operation === 'UpdateItem' && JSON.stringify(request.body).includes('#2"}');
      const lost = world.proxy.inject(fault.loseAnswer(), { when: toShard2 });
      await refused(limiter, 1, { ...ASK, consume: { slots: 32 } });
      expect(lost.fired).toBeGreaterThan(0);
      world.proxy.heal();
      await limiter.close();
      expect(await perShard(space)).toEqual(before);
      expect(space.errors).toEqual([]);
    });
  });

  test('slots are free again even if no write is ever answered', async () => {
    const space = await world.space();
    const limiter = await space.open(LIMITS, QUICK);
    world.proxy.inject(fault.loseAnswer(), WRITES);
    await refused(limiter, 3);
    await expect.poll(() => stored(space)).toEqual(UNTOUCHED);
    await limiter.close();
    expect(space.errors).toEqual([]);
  });

  test('each slot that cannot be given back is reported to onError once', async () => {
    const space = await world.space();
    const limiter = await space.open(LIMITS, QUICK);
    world.proxy.inject(fault.loseRequest(), WRITES);
    await refused(limiter, 2);
    await expect.poll(() => space.errors.length, { timeout: 10_000 }).toBe(2);
    expect(space.errors).toMatchObject([{ code: 'backend.unavailable' }, { code: 'backend.unavailable' }]);
  });

  test('closing the limiter tries once more to give slots back, and reports what it could not give back', async () => {
    const space = await world.space();
    const limiter = await space.open(LIMITS, { random: () => 0.5 + Math.random() / 2 });
    world.proxy.inject(fault.loseRequest(), WRITES);
    await refused(limiter, 1);
    expect(space.errors).toEqual([]);
    await limiter.close();
    expect(space.errors).toMatchObject([{ code: 'backend.unavailable' }]);
  });

  test('after lost requests and answers, the stored holders are leases of callers', async () => {
    for (const seed of [1, 2, 3]) {
      const space = await world.space();
      const random = new Random(seed);
      const limits = [Limit.perHour('rpm', 1_000), Limit.concurrent('slots', 20)];
      const processes = [
        await space.open({ ...LIMITS, limits }, QUICK),
        await space.open({ ...LIMITS, limits }, QUICK),
      ];
      const held: string[] = [];
      const unsure: string[] = [];
      world.proxy.inject(fault.loseAnswer(), { ...WRITES, probability: 0.35 });
      world.proxy.inject(fault.loseRequest(), { ...WRITES, probability: 0.35 });
      for (let round = 0; round < 12; round++) {
        const asked = processes.flatMap((limiter) =>
          Array.from({ length: random.whole(1, 3) }, () => limiter.acquire(ASK)),
        );
        for (const outcome of await Promise.allSettled(asked)) {
          if (outcome.status !== 'fulfilled') continue;
          if (random.whole(0, 1) === 0) held.push(outcome.value.id);
          else await outcome.value.release().catch(() => unsure.push(outcome.value.id));
        }
        await space.clock.advance(1_100);
      }
      world.proxy.heal();
      for (const limiter of processes) await limiter.close({ leases: 'keep' });
      const [shard] = await space.shards('user-1', RESOURCE);
      const ids = [...(shard?.holders.keys() ?? [])];
      expect(held.length).toBeGreaterThan(0);
      expect(ids).toEqual(expect.arrayContaining(held));
      // A release without an answer may have landed.
      expect([...held, ...unsure]).toEqual(expect.arrayContaining(ids));
      const { free } = await stored(space);
      expect(free + ids.length).toBe(20);
    }
  });
});
