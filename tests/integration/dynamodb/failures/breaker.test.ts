import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { BackendUnavailable } from '../../../../src/core/errors.js';
import { Limit } from '../../../../src/core/limit.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';
import { until } from '../../../support/models/hand-time.js';
import { quickRandom } from '../../../support/dynamodb/quick-random.js';

const LIMITS = { limits: [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 5)] };
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
const QUICK = { random: quickRandom };

describe.skipIf(ENGINE.missing)(`the breaker on DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterEach(() => world?.proxy.heal());
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const failing = async () => {
    const space = await world.space();
    const limiter = await space.open(LIMITS, QUICK);
    await limiter.acquire(ASK);
    world.proxy.inject(fault.serverError(), { operations: ['UpdateItem'] });
    return { space, limiter };
  };

  test('the breaker opens after five failures, lets one probe a second through, and closes with an answer', async () => {
    const { space, limiter } = await failing();
    for (let call = 0; call < 5; call++)
      await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'server' });
    world.proxy.requests.clear();
    await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'breaker-open' });
    expect(world.proxy.requests.count()).toBe(0);
    await space.clock.advance(1_000);
    await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'server' });
    await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'breaker-open' });
    world.proxy.heal();
    await space.clock.advance(1_000);
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
  });

  test('asks that the images of this process deny do not use up the probes', async () => {
    const { space, limiter } = await failing();
    world.proxy.heal();
    const other = { ...ASK, entityId: 'user-2' };
    await limiter.acquire(other);
    world.proxy.inject(fault.serverError(), { operations: ['UpdateItem'] });
    for (let call = 0; call < 5; call++)
      await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'server' });
    world.proxy.heal();
    await space.clock.advance(1_000);
    const denied = await limiter.tryAcquire({ ...other, consume: { rpm: 61 } });
    expect(denied).toMatchObject({ reason: 'impossible', decidedBy: 'deny-cache' });
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
  });

  test('the breaker counts a group of acquires once', async () => {
    const { limiter } = await failing();
    const ask = async () => limiter.acquire({ ...ASK, onUnavailable: 'block' }).catch((error: unknown) => error);
    const told = await Promise.all(Array.from({ length: 20 }, ask));
    // The asks of a group get the same error. The first ask may be written alone, and the others together.
    const failures = new Set(told).size;
    expect(failures).toBeLessThanOrEqual(2);
    for (let call = failures; call < 5; call++) expect(await ask()).toMatchObject({ kind: 'server' });
    await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'breaker-open' });
  });

  test.each([false, true])(
    'settles that fail count for the breaker, and none of them closes it (portable leases: %s)',
    async (portable) => {
      const space = await world.space();
      const limiter = await space.open(LIMITS, QUICK);
      const ask = portable ? { ...ASK, portable } : { ...ASK, leaseTtlMs: 60_000 };
      const leases = [];
      for (let call = 0; call < 6; call++) leases.push(await limiter.acquire(ask));
      world.proxy.inject(fault.serverError(), { operations: ['UpdateItem'] });
      const [probe, ...others] = leases;
      for (const lease of others) await expect(lease.settle({ rpm: 2 })).rejects.toMatchObject({ kind: 'server' });
      await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'breaker-open' });
      await space.clock.advance(1_000);
      await expect(probe?.settle({ rpm: 2 })).rejects.toMatchObject({ kind: 'server' });
      await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'breaker-open' });
    },
  );

  test.each([
    ['one level', 'user-2'],
    ['a cascade', 'user-1'],
  ])('a denial from the cache, of %s, does not reset the failure count of the breaker', async (_, busyId) => {
    const space = await world.space();
    const limiter = await space.open(LIMITS, QUICK);
    await limiter.entities.create({ id: 'proj-1' });
    await limiter.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
    const ask = { ...ASK, entityId: 'user-3' };
    const busy = { ...ASK, entityId: busyId, consume: { rpm: 60 } };
    await limiter.acquire(ask);
    await limiter.acquire(busy);
    expect(await limiter.tryAcquire(busy)).toMatchObject({ granted: false });
    world.proxy.inject(fault.serverError(), { operations: ['UpdateItem'] });
    for (let call = 0; call < 5; call++) {
      await expect(limiter.tryAcquire(ask)).rejects.toMatchObject({ kind: 'server' });
      if (call < 4) expect(await limiter.tryAcquire(busy)).toMatchObject({ granted: false, decidedBy: 'deny-cache' });
    }
    await expect(limiter.tryAcquire(ask)).rejects.toMatchObject({ kind: 'breaker-open' });
  });

  test.each([0, 5_000])(
    'a limiter that is closed %i ms after an outage opened its breaker gives all slots back',
    async (laterMs) => {
      const space = await world.space();
      const limiter = await space.open(LIMITS, QUICK);
      for (let call = 0; call < 5; call++) await limiter.acquire({ ...ASK, consume: { slots: 1 } });
      world.proxy.inject(fault.serverError(), { operations: ['UpdateItem'] });
      for (let call = 0; call < 5; call++)
        await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'server' });
      world.proxy.heal();
      await space.clock.advance(laterMs);
      await limiter.close();
      const [shard] = await space.shards('user-1', 'gpt-4');
      expect(shard?.holders.size).toBe(0);
      expect(space.errors).toEqual([]);
    },
  );

  test('grants that arrive after so many callers left that the breaker is open are given back', async () => {
    const space = await world.space();
    const limiter = await space.open({ ...LIMITS, timeouts: { callMs: 5_000, acquireMs: 5_000 } }, QUICK);
    const ids = Array.from({ length: 6 }, (_, at) => `late-${at}`);
    for (const entityId of ids) await limiter.acquire({ ...ASK, entityId });
    const held = world.proxy.inject(fault.holdAnswer(), { operations: ['UpdateItem'] });
    const asked = ids.map(async (entityId) => limiter.tryAcquire({ ...ASK, entityId, consume: { slots: 1 } }));
    const left = asked.map(async (one) => expect(one).rejects.toMatchObject({ kind: 'timeout' }));
    await held.untilFired(ids.length);
    await space.clock.advance(5_000);
    await Promise.all(left);
    await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'breaker-open' });
    held.release();
    const holders = async () =>
      Promise.all(ids.map(async (entityId) => (await space.shards(entityId, 'gpt-4'))[0]?.holders.size));
    await until(async () => space.errors.length > 0 || (await holders()).every((count) => count === 0));
    expect(space.errors).toEqual([]);
  });

  test('throttling and conflicts do not open the breaker', async () => {
    const space = await world.space();
    const limiter = await space.open({ ...LIMITS, maxRetries: 0 }, QUICK);
    await limiter.acquire(ASK);
    for (const struck of [fault.throttle(), fault.transactionConflict()]) {
      world.proxy.inject(struck, { operations: ['UpdateItem'] });
      for (let call = 0; call < 7; call++) {
        const outcome = await limiter.tryAcquire(ASK).catch((error: BackendUnavailable) => error.kind);
        expect(outcome).toSatisfy(
          (is: unknown) => is === 'throttled' || (is as { reason: string }).reason === 'contended',
        );
      }
      world.proxy.heal();
    }
    // The first ask may lose against a split that the throttling caused, and it has no retries.
    await limiter.tryAcquire(ASK);
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true });
  });
});
