import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { AcquireRequest } from '../../../../src/limiter/acquire/request.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const ASK: AcquireRequest = { entityId: 'user-1', resource: 'gpt-4', consume: { rps: 1 } };
const ASK_SLOT: AcquireRequest = { entityId: 'user-1', resource: 'gpt-4', consume: { slots: 1 } };
const wait = { timeoutMs: 60_000 };

describe.skipIf(ENGINE.missing)(`waiting on DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const requestsOf = async (work: () => Promise<unknown>): Promise<number> => {
    world.proxy.requests.clear();
    await work();
    return world.proxy.requests.count();
  };
  const asks = (limiter: RateLimiter, count: number, request: AcquireRequest) =>
    Array.from({ length: count }, async () => limiter.tryAcquire(request));

  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
  };

  test('300 asks of a free bucket need the same requests with and without a wait', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: [Limit.perSecond('rps', 1_000)] });
    await limiter.acquire(ASK);
    const plain = await requestsOf(() => Promise.all(asks(limiter, 300, ASK)));
    const waiting = await requestsOf(() => Promise.all(asks(limiter, 300, { ...ASK, wait })));
    expect({ plain, waiting }).toEqual({ plain: 1, waiting: 1 });
  });

  test('300 waiters for an exhausted bucket are granted at its rate, in waves of many asks', async () => {
    const space = await world.space();
    // The fake clock advances while requests are in flight, so the timeouts must be long.
    const timeouts = { callMs: 600_000, acquireMs: 600_000 };
    const limiter = await space.open({ limits: [Limit.perSecond('rps', 1_000)], timeouts });
    await limiter.acquire({ ...ASK, consume: { rps: 1_000 } });
    const startMs = space.clock.now();
    const grantedAtMs: number[] = [];
    const requests = await requestsOf(async () => {
      const all = asks(limiter, 300, { ...ASK, wait: { timeoutMs: 500_000 } }).map(async (decision) => {
        if ((await decision).granted) grantedAtMs.push(space.clock.now());
      });
      while (grantedAtMs.length < 300) await space.clock.advance(1);
      await Promise.all(all);
    });
    for (const [at, grantMs] of grantedAtMs.entries()) expect(grantMs - startMs).toBeGreaterThan(at);
    expect(requests).toBeLessThanOrEqual(30);
  });

  test('1,000 waiters for held slots are all denied by the store under the policy allow', async () => {
    const space = await world.space();
    // The fake clock advances while requests are in flight, so the timeouts must be long.
    const timeouts = { callMs: 600_000, acquireMs: 600_000 };
    const limiter = await space.open({ limits: [Limit.concurrent('slots', 4)], onUnavailable: 'allow', timeouts });
    await limiter.acquire({ ...ASK_SLOT, consume: { slots: 4 } });
    const decisions: unknown[] = [];
    const requests = await requestsOf(async () => {
      const all = asks(limiter, 1_000, { ...ASK_SLOT, wait: { timeoutMs: 1_000 } }).map(async (decision) => {
        const { granted, decidedBy } = await decision;
        decisions.push({ granted, decidedBy });
      });
      while (decisions.length < 1_000) await space.clock.advance(20);
      await Promise.all(all);
    });
    expect(new Set(decisions.map((decision) => JSON.stringify(decision)))).toEqual(
      new Set([JSON.stringify({ granted: false, decidedBy: 'store' })]),
    );
    expect(requests).toBeLessThanOrEqual(30);
  });

  test('closing the limiter rejects its waiters at once, and no further request is sent for them', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: [Limit.perSecond('rps', 10), Limit.concurrent('slots', 1)] });
    await limiter.acquire({ ...ASK, consume: { rps: 10, slots: 1 } });
    const waits = [ASK, ASK, ASK_SLOT].map(async (request) => limiter.acquire({ ...request, wait }));
    const ended = Promise.allSettled(waits);
    // The timeouts of three waits, and the next ask of each of the two lines.
    await until(() => space.clock.sleepers === 5);
    await limiter.close();
    expect(await ended).toMatchObject(waits.map(() => ({ status: 'rejected', reason: { kind: 'closed' } })));
    expect(space.clock.sleepers).toBe(0);
    expect(await requestsOf(() => space.clock.advance(3_000))).toBe(0);
  });
});
