import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Item } from '../../../../src/backends/dynamodb/client/transport.js';
import { Limit } from '../../../../src/core/limit.js';
import { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { Random } from '../../../../src/testing/conformance/kit/random.js';
import { type DynamoRequest, fault, findEngine } from '../../../../src/testing/dynamodb/index.js';
import { fakeClock } from '../../../../src/testing/fake-clock.js';
import { LIMIT, RESOURCE } from '../../../support/dynamodb/workloads/bucket-work.js';
import { Arena, sumShards } from '../../../support/dynamodb/workloads/arena.js';
import { FaultyClient } from '../../../support/dynamodb/faulty-client.js';
import { SLOTS } from '../../../support/dynamodb/workloads/slot-work.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

/** Practically no refill during a test. */
const SLOW = Limit.custom(LIMIT, { capacity: 100, refillAmount: 1, refillPeriodMs: 86_400_000 });
const ask = (amount: number) => ({ entityId: 'pot', resource: RESOURCE, consume: { [LIMIT]: amount } });

describe.skipIf(found.status === 'unavailable')(`exact balances of buckets in DynamoDB${why}`, () => {
  let arena: Arena;

  beforeAll(async () => {
    arena = await Arena.start();
  });
  afterAll(async () => arena?.[Symbol.asyncDispose]());

  /** A bucket of which one token is taken, and this many limiters on it. */
  const start = async (limiters: number) => {
    const clock = fakeClock();
    const nowMs = clock.now();
    const namespace = await arena.namespace(nowMs, (limiter) => limiter.config.setSystem({ limits: [SLOW] }));
    const open = () => RateLimiter.open(arena.backend(), { clock: { now: clock.now }, namespace: namespace.name });
    const all = await Promise.all(Array.from({ length: limiters }, open));
    await all[0]!.acquire(ask(1));
    const sums = async () => sumShards(await arena.shards(namespace, 'pot'), nowMs);
    return { clock, nowMs, namespace, limiters: all, sums };
  };

  test.each([1, 4])(
    'processes on %s shards are granted a class down to its reserve, and the rest without a class',
    async (count) => {
      const { nowMs, namespace, limiters, sums } = await start(3);
      const limits = [Limit.parse(`${String(SLOW)}!reserve.batch=0.4`)];
      await limiters[0]!.config.setSystem({ limits });
      if (count > 1) await arena.splitInto(count, namespace, 'pot', nowMs);
      const grants = async (total: number, priority?: 'batch') => {
        const request = { ...ask(1), ...(priority === undefined ? {} : { priority }) };
        const asks = Array.from({ length: total }, async (_, at) => limiters[at % 3]!.tryAcquire(request));
        return (await Promise.all(asks)).filter(({ granted }) => granted).length;
      };
      for (const limiter of limiters) await limiter.config.resolve('pot', RESOURCE);
      let batch = 0;
      for (let round = 0; round < 6; round++) batch += await grants(30, 'batch');
      // Each shard may keep less than one token above its part of the reserve.
      expect(batch).toBeLessThanOrEqual(59);
      expect(batch).toBeGreaterThan(59 - count);
      expect((await sums()).tokens).toBe((99 - batch) * 1_000);
      let others = 0;
      for (let round = 0; round < 6; round++) others += await grants(30);
      expect(others).toBeGreaterThan(99 - batch - count);
      expect((await sums()).tokens).toBe((99 - batch - others) * 1_000);
      await Promise.all(limiters.map(async (limiter) => limiter.close()));
    },
  );

  test('an ask that all shards together cannot serve gives back exactly what it took', async () => {
    const { nowMs, namespace, limiters, sums } = await start(1);
    const [limiter] = limiters;
    await arena.splitInto(4, namespace, 'pot', nowMs);
    await limiter!.acquire(ask(1));
    const before = await sums();
    expect(await limiter!.tryAcquire(ask(99))).toMatchObject({ granted: false });
    expect(await sums()).toEqual(before);
    await limiter!.close();
  });

  test('an ask that fails on one shard gives back what it took from the others', async () => {
    const { nowMs, namespace, sums, limiters } = await start(1);
    await limiters[0]!.close();
    await arena.splitInto(2, namespace, 'pot', nowMs);
    const clock = { now: () => nowMs };
    await using client = await FaultyClient.make(arena, 1, { namespace: namespace.name, clock });
    await client.limiter.acquire(ask(1));
    const before = await sums();
    const ofShard1 = ({ body }: DynamoRequest) => (body['Key'] as Item | undefined)?.['PK']?.S?.endsWith('#1') === true;
    client.proxy.inject(fault.serverError(), { operations: ['UpdateItem'], when: ofShard1 });
    await expect(client.limiter.acquire(ask(90))).rejects.toMatchObject({ code: 'backend.unavailable' });
    expect(await sums()).toEqual(before);
  });

  test('a process takes again from a shard that other processes merged and split off again', async () => {
    const { clock, nowMs, namespace, limiters, sums } = await start(1);
    const [limiter] = limiters;
    await arena.splitInto(2, namespace, 'pot', nowMs);
    await limiter!.acquire(ask(45));
    await limiter!.acquire(ask(45));
    expect(await arena.mergeOne(namespace, 'pot', nowMs, new Random(1))).toBe(true);
    // More than one shard has: the process looks for the other shard, and finds none.
    clock.set(nowMs + 2_000);
    expect(await limiter!.tryAcquire(ask(20))).toMatchObject({ granted: false });
    await arena.splitInto(2, namespace, 'pot', nowMs);
    clock.set(nowMs + 4_000);
    await limiter!.acquire(ask(4));
    await limiter!.acquire(ask(4));
    expect(await sums()).toMatchObject({ shards: 2, consumed: 99_000 });
    await limiter!.close();
  });

  describe('refunds without an answer', () => {
    /**
     * A client behind a fault proxy with two leases of 10 tokens, and another client that has an image of the bucket.
     */
    const startFaulty = async () => {
      const { nowMs, namespace, limiters, sums } = await start(1);
      const [other] = limiters;
      const timeouts = { callMs: 500, acquireMs: 500 };
      const clock = { now: () => nowMs };
      const client = await FaultyClient.make(arena, 1, { namespace: namespace.name, clock, timeouts });
      const lease = await client.limiter.acquire({ ...ask(10), leaseTtlMs: 60_000 });
      const plain = await client.limiter.acquire(ask(10));
      const stop = async () => {
        await client[Symbol.asyncDispose]();
        await other!.close();
      };
      return { other: other!, proxy: client.proxy, lease, plain, sums, stop };
    };

    test.each([
      ['with a holder', 'lease'],
      ['without a holder', 'plain'],
    ] as const)('the refund of a lease %s that got no answer is not repeated', async (_, which) => {
      const { other, proxy, sums, stop, ...leases } = await startFaulty();
      const lost = proxy.inject(fault.loseAnswer(), { operations: ['UpdateItem', 'GetItem'] });
      const rollback = leases[which].rollback();
      await lost.untilFired();
      // After a write of another client the item no longer shows the write id of the refund.
      await other.acquire(ask(1));
      await expect(rollback).rejects.toMatchObject({ code: 'backend.unavailable' });
      proxy.heal();
      await leases[which].rollback();
      expect(leases[which].state).toBe('rolled-back');
      expect((await sums()).consumed).toBe(12_000);
      await stop();
    });

    test('a refund that got no answer before its timeout is not repeated', async () => {
      const { proxy, plain, sums, stop } = await startFaulty();
      const held = proxy.inject(fault.holdAnswer(), { operations: ['UpdateItem'] });
      await expect(plain.settle({ [LIMIT]: 4 })).rejects.toMatchObject({ code: 'backend.unavailable' });
      held.release();
      await plain.settle({ [LIMIT]: 4 });
      expect((await sums()).consumed).toBe(15_000);
      await stop();
    });
  });

  test.each(['given back', 'left to expire'] as const)(
    'slots of several shards that other processes have %s can be taken at once',
    async (how) => {
      const clock = fakeClock();
      const nowMs = clock.now();
      const slots = (count: number) => ({ entityId: 'pot', resource: RESOURCE, consume: { [SLOTS]: count } });
      const limits = [Limit.concurrent(SLOTS, 4)];
      const namespace = await arena.namespace(nowMs, ({ config }) => config.setSystem({ limits }));
      const open = () => RateLimiter.open(arena.backend(), { clock: { now: clock.now }, namespace: namespace.name });
      await using other = await open();
      await using limiter = await open();
      const leases = [await other.acquire(slots(1))];
      await arena.splitInto(2, namespace, 'pot', nowMs);
      for (let at = 0; at < 3; at++) leases.push(await other.acquire(slots(1)));
      expect(await limiter.tryAcquire(slots(4))).toMatchObject({ granted: false });
      if (how === 'given back') for (const lease of leases) await lease.release();
      else clock.set(nowMs + 60_000);
      expect(await limiter.tryAcquire(slots(4))).toMatchObject({ granted: true });
    },
  );

  test('a release that lands late grants nothing to the asks that share the write of its retry', async () => {
    const nowMs = fakeClock().now();
    const slot = { entityId: 'pot', resource: RESOURCE, consume: { [SLOTS]: 1 } };
    const limits = [Limit.concurrent(SLOTS, 1)];
    const namespace = await arena.namespace(nowMs, ({ config }) => config.setSystem({ limits }));
    const options = { namespace: namespace.name, clock: { now: () => nowMs }, timeouts: { callMs: 1_000 } };
    await using other = await RateLimiter.open(arena.backend(), options);
    await using client = await FaultyClient.make(arena, 1, options);
    const { limiter, proxy } = client;
    const lease = await limiter.acquire(slot);
    const once = { when: ({ body }: DynamoRequest) => /REMOVE/.test(String(body['UpdateExpression'])), times: 1 };
    const late = proxy.inject(fault.holdRequest(), once);
    await expect(lease.release()).rejects.toMatchObject({ code: 'backend.unavailable' });
    expect(await limiter.tryAcquire(slot)).toMatchObject({ granted: false });

    // The other calls share the next write, while one call is being written.
    const repeated = proxy.inject(fault.holdRequest(), once);
    const work = Promise.all([limiter.tryAcquire(slot), limiter.tryAcquire(slot), lease.release()]);
    await repeated.untilFired();
    late.release();
    await expect.poll(async () => (await arena.shards(namespace, 'pot'))[0]?.holders.size).toBe(0);
    await other.acquire(slot);
    repeated.release();
    expect(await work).toMatchObject([{ granted: false }, { granted: false }, undefined]);
  });
});
