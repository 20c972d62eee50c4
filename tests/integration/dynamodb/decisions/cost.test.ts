import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { Random } from '../../../../src/testing/conformance/kit/random.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const LIMITS = [Limit.perMinute('rpm', 600), Limit.perMinute('tpm', 60_000)];
const WITH_SLOTS = [...LIMITS, Limit.concurrent('slots', 50)];
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 500 } };
const ASK_SLOT = { ...ASK, consume: { rpm: 1, slots: 1 } };

describe.skipIf(ENGINE.missing)(`the cost of operations${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true, askForCapacity: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** The requests and capacity units of a call. */
  const costOf = async (work: () => Promise<unknown>) => {
    const { requests } = world.proxy;
    requests.clear();
    await work();
    return { requests: requests.count(), ...requests.consumed() };
  };
  const FREE = { requests: 0, readUnits: 0, writeUnits: 0 };
  const ONE_WRITE = { requests: 1, readUnits: 0, writeUnits: 1 };

  /** Another process creates the entity `user-1` under this many parents. The limits are in code. */
  const createChain = async (space: Space, parents: number): Promise<void> => {
    const admin = await space.open();
    const ids = ['user-1', ...Array.from({ length: parents }, (_, at) => `parent-${at + 1}`)];
    for (let at = parents; at >= 0; at--) {
      const parentId = ids[at + 1];
      await admin.entities.create({
        id: ids[at] ?? '',
        ...(parentId === undefined ? {} : { parentId, cascade: true }),
      });
    }
  };
  const warm = async (space: Space, limits: readonly Limit[] = LIMITS): Promise<RateLimiter> => {
    const limiter = await space.open({ limits });
    await limiter.acquire(ASK);
    return limiter;
  };

  describe('the cost of an acquire', () => {
    test('an acquire with a cached image is one write of one unit, at the same instant and after a refill', async () => {
      const space = await world.space();
      const limiter = await warm(space);
      expect(await costOf(() => limiter.acquire(ASK))).toEqual(ONE_WRITE);
      await space.clock.advance(1);
      expect(await costOf(() => limiter.acquire(ASK))).toEqual(ONE_WRITE);
      // The bucket is full again, so that the write has the full form.
      await space.clock.advance(20_000);
      expect(await costOf(() => limiter.acquire(ASK))).toEqual(ONE_WRITE);
      expect(await costOf(() => limiter.acquire(ASK))).toEqual(ONE_WRITE);
    });

    test('an acquire with a slot is one write of one unit, once the bucket is on the sweep list', async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: WITH_SLOTS });
      await limiter.acquire(ASK_SLOT);
      expect(await costOf(() => limiter.acquire(ASK_SLOT))).toEqual(ONE_WRITE);
    });

    test('a limit with a warnAt costs no request, no unit and no byte of the bucket', async () => {
      const sizes: number[] = [];
      for (const options of [{}, { warnAt: 0.1 }]) {
        const space = await world.space();
        const limits = [Limit.perMinute('rpm', 600, options), Limit.perMinute('tpm', 60_000, options)];
        const limiter = await space.open({ limits, onDecision: () => {} });
        await limiter.acquire(ASK);
        expect(await costOf(() => limiter.tryAcquire({ ...ASK, consume: { rpm: 60 } }))).toEqual(ONE_WRITE);
        const [shard] = await space.shards(ASK.entityId, ASK.resource);
        // The write ids of two buckets differ and have the same length.
        sizes.push(JSON.stringify(shard).length);
      }
      expect(sizes[0]).toBe(sizes[1]);
    });

    test('the first acquire of a bucket reads the config for 2.5 units and creates the bucket for 4', async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: LIMITS });
      expect(await costOf(() => limiter.acquire(ASK))).toEqual({ requests: 2, readUnits: 2.5, writeUnits: 4 });
    });

    test('the first acquire of a bucket creates it for 5 units if it has a holder', async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: WITH_SLOTS });
      expect(await costOf(() => limiter.acquire(ASK_SLOT))).toEqual({ requests: 2, readUnits: 2.5, writeUnits: 5 });
    });

    test('the first acquire of a process detects an existing bucket by the refused creation', async () => {
      const space = await world.space();
      await warm(space);
      const limiter = await space.open({ limits: LIMITS });
      // The engine reports no units for a refused write; DynamoDB bills it as a write.
      expect(await costOf(() => limiter.acquire(ASK))).toEqual({ requests: 3, readUnits: 2.5, writeUnits: 1 });
      expect(world.proxy.requests.byOperation()).toEqual({ BatchGetItem: 1, PutItem: 1, UpdateItem: 1 });
    });

    test('the first acquire of a bucket reads 1.5 units more for each parent', async () => {
      const space = await world.space();
      await createChain(space, 2);
      const limiter = await space.open({ limits: LIMITS });
      expect(await costOf(() => limiter.acquire(ASK))).toEqual({ requests: 6, readUnits: 5.5, writeUnits: 12 });
    });
  });

  describe('the cost of a charge', () => {
    const CHARGE = { entityId: 'user-1', resource: 'gpt-4', amounts: { tpm: 500 } };

    test('a charge or credit without an id is one write of one unit per level, and shares it with other calls', async () => {
      const space = await world.space();
      const limiter = await warm(space);
      expect(await costOf(() => limiter.charge(CHARGE))).toEqual(ONE_WRITE);
      expect(await costOf(() => limiter.credit(CHARGE))).toEqual(ONE_WRITE);
      const many = async () => Promise.all(Array.from({ length: 50 }, async () => limiter.charge(CHARGE)));
      expect(await costOf(many)).toEqual(ONE_WRITE);
    });

    test('a charge without an id in a process without an image of the bucket also reads it', async () => {
      const space = await world.space();
      await warm(space);
      const limiter = await space.open({ limits: LIMITS });
      expect(await costOf(() => limiter.charge(CHARGE))).toEqual({ requests: 3, readUnits: 3.5, writeUnits: 1 });
    });

    test('a charge with an id reads each level, and writes two units per level and three for the receipt', async () => {
      const space = await world.space();
      const limiter = await warm(space);
      const cost = await costOf(() => limiter.charge({ ...CHARGE, id: 'a' }));
      expect(cost).toEqual({ requests: 2, readUnits: 1, writeUnits: 5 });
      expect(world.proxy.requests.byOperation()).toEqual({ GetItem: 1, TransactWriteItems: 1 });
      // The engine reports no units for a refused transaction; DynamoDB bills it.
      const repeated = await costOf(() => limiter.charge({ ...CHARGE, id: 'a' }));
      expect(repeated).toMatchObject({ requests: 3, readUnits: 2 });
    });
  });

  test.each([1, 2, 7])(
    'a cascade over %i parents with enough tokens is one round trip and one unit per level',
    async (parents) => {
      const space = await world.space();
      await createChain(space, parents);
      const limiter = await warm(space);
      const levels = parents + 1;
      const held = world.proxy.inject(fault.holdRequest());
      const cost = costOf(async () => {
        const granted = limiter.acquire(ASK);
        // All writes are in flight before the first one is answered.
        await held.untilFired(levels);
        held.release();
        await granted;
      });
      expect(await cost).toEqual({ requests: levels, readUnits: 0, writeUnits: levels });
    },
  );

  test.each([0.1, 0.5, 0.8, 0.95])(
    'many processes that take %f of the rate of a full bucket need 1.0 to 1.8 writes per acquire',
    async (load) => {
      const space = await world.space();
      const limits = [Limit.custom('rpm', { capacity: 100, refillAmount: 1, refillPeriodMs: 100 })];
      const processes = await Promise.all(Array.from({ length: 8 }, () => space.open({ limits })));
      const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
      for (const limiter of processes) await limiter.acquire(ask);
      const random = new Random(7);
      world.proxy.requests.clear();
      const asks = 60;
      for (let asked = 0; asked < asks; asked++) {
        // Random pauses and random processes.
        await space.clock.advance(Math.round((-Math.log(1 - random.whole(0, 999) / 1_000) * 100) / load));
        await processes[random.whole(0, 7)]?.acquire(ask);
      }
      // Refused writes are billed too.
      const average = world.proxy.requests.count('UpdateItem') / asks;
      expect(average).toBeGreaterThanOrEqual(1);
      expect(average).toBeLessThanOrEqual(1.8);
    },
  );

  test('256 acquires that start together need at most 4 requests of 4 units', async () => {
    const space = await world.space();
    const limiter = await warm(space);
    const cost = await costOf(() =>
      Promise.all(Array.from({ length: 256 }, () => limiter.acquire({ ...ASK, consume: { rpm: 1 } }))),
    );
    expect(cost.requests).toBeLessThanOrEqual(4);
    expect(cost.writeUnits).toBeLessThanOrEqual(4);
    expect(cost.readUnits).toBe(0);
    const [shard] = await space.shards('user-1', 'gpt-4');
    expect(shard?.acquires).toBe(257);
  });

  describe('the cost of a denial', () => {
    test('a denial is one refused write, and no request while the image is young', async () => {
      const space = await world.space();
      const taker = await warm(space);
      const limiter = await warm(space);
      await taker.acquire({ ...ASK, consume: { rpm: 598 } });
      const denied = () => limiter.tryAcquire({ ...ASK, consume: { rpm: 10 } });
      expect(await costOf(denied)).toEqual({ requests: 1, readUnits: 0, writeUnits: 0 });
      expect(await denied()).toMatchObject({ granted: false, decidedBy: 'deny-cache' });
      await space.clock.advance(500);
      // Five tokens have refilled: the store decides a smaller ask, and a larger one has its own wait.
      expect(await costOf(denied)).toEqual(FREE);
      expect(await denied()).toMatchObject({ granted: false, retryAfterMs: 500, decidedBy: 'deny-cache' });
      expect(await limiter.tryAcquire({ ...ASK, consume: { rpm: 20 } })).toMatchObject({ retryAfterMs: 1_500 });
      expect(await costOf(() => limiter.acquire({ ...ASK, consume: { rpm: 4 } }))).toEqual(ONE_WRITE);
    });

    test('a denial asks the store again once the image is older than `denyCacheMs`', async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: [Limit.perHour('rpm', 60)], denyCacheMs: 1_000 });
      const ask = { ...ASK, consume: { rpm: 60 } };
      await limiter.acquire(ask);
      expect(await costOf(() => limiter.tryAcquire(ask))).toEqual(FREE);
      await space.clock.advance(1_000);
      expect(await costOf(() => limiter.tryAcquire(ask))).toMatchObject({ requests: 1, readUnits: 0, writeUnits: 0 });
    });

    test('an ask reaches the store again once this process gives tokens back or changes the limits', async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: [Limit.perHour('rpm', 60)] });
      const ask = { ...ASK, consume: { rpm: 40 } };
      const lease = await limiter.acquire(ask);
      expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, decidedBy: 'deny-cache' });
      await lease.rollback();
      expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: true });
      expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, decidedBy: 'deny-cache' });
      await limiter.config.setResource('gpt-4', { limits: [Limit.perHour('rpm', 60), Limit.perHour('tpm', 9)] });
      expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, decidedBy: 'store' });
    });

    test('a denial of more than the capacity is no request', async () => {
      const space = await world.space();
      const limiter = await warm(space);
      await space.clock.advance(5_000);
      const never = () => limiter.tryAcquire({ ...ASK, consume: { rpm: 601 } });
      expect(await costOf(never)).toEqual(FREE);
      expect(await never()).toMatchObject({ granted: false, reason: 'impossible', retryAfterMs: null });
    });

    test('a denial by the entity needs no request for its parents while their images are young', async () => {
      const space = await world.space();
      await createChain(space, 2);
      const limiter = await warm(space);
      await limiter.acquire({ ...ASK, consume: { rpm: 599 } });
      const denied = () => limiter.tryAcquire({ ...ASK, consume: { rpm: 10 } });
      expect(await costOf(denied)).toEqual(FREE);
      const decision = await denied();
      expect(decision).toMatchObject({ granted: false, retryAfterMs: 1_000, decidedBy: 'deny-cache' });
      expect(decision.statuses.map(({ entityId, exceeded }) => [entityId, exceeded])).toEqual([
        ['user-1', true],
        ['parent-1', true],
        ['parent-2', true],
      ]);
    });

    test('a denial by a parent takes nothing from the entity while the image of the parent is young', async () => {
      const space = await world.space();
      await createChain(space, 2);
      const limiter = await warm(space);
      await limiter.acquire({ entityId: 'parent-1', resource: 'gpt-4', consume: { rpm: 599 } });
      const denied = () => limiter.tryAcquire({ ...ASK, consume: { rpm: 10 } });
      expect(await costOf(denied)).toEqual(FREE);
      const decision = await denied();
      expect(decision).toMatchObject({ granted: false, decidedBy: 'deny-cache' });
      expect(decision.statuses.map(({ entityId, exceeded }) => [entityId, exceeded])).toEqual([
        ['user-1', false],
        ['parent-1', true],
        ['parent-2', true],
      ]);
    });
  });

  describe('the cost of the operations of a lease', () => {
    const operations = {
      adjust: (lease) => lease.adjust({ tpm: 100 }),
      settle: (lease) => lease.settle({ tpm: 900 }),
      release: (lease) => lease.release(),
      rollback: (lease) => lease.rollback(),
      'commit with a holder': (lease) => lease.commit(),
      'commit with totals': (lease) => lease.commit({ tpm: 700 }),
    } satisfies Record<string, (lease: Awaited<ReturnType<RateLimiter['acquire']>>) => Promise<void>>;

    test.each(Object.entries(operations))('%s is one write of one unit per level', async (_, operation) => {
      for (const parents of [0, 2]) {
        const space = await world.space();
        if (parents > 0) await createChain(space, parents);
        const limiter = await warm(space, WITH_SLOTS);
        const lease = await limiter.acquire({ ...ASK, consume: { rpm: 1, tpm: 500, slots: 1 } });
        const levels = parents + 1;
        expect(await costOf(() => operation(lease))).toEqual({ requests: levels, readUnits: 0, writeUnits: levels });
      }
    });

    test('a commit without a holder is free', async () => {
      const space = await world.space();
      const limiter = await warm(space);
      const lease = await limiter.acquire(ASK);
      expect(await costOf(() => lease.commit())).toEqual(FREE);
    });

    test('an extend is one write of one unit', async () => {
      const space = await world.space();
      const limiter = await warm(space, WITH_SLOTS);
      const lease = await limiter.acquire(ASK_SLOT);
      await space.clock.advance(1_000);
      expect(await costOf(() => lease.extend())).toEqual(ONE_WRITE);
    });
  });
});
