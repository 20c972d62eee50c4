import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import type { Denied } from '../../src/limiter/decision.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb-world.js';

const MUTEX = { entityId: 'nightly-report', resource: 'lock', consume: { mutex: 1 } };
const WORKERS = 5;
const TURNS_PER_WORKER = 20;

describe.skipIf(ENGINE.missing)(`asks that share a write on DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** Takes the mutex and gives it back, again and again; asks anew after each refusal. */
  const work = async (limiter: RateLimiter, refusals: Denied[]): Promise<void> => {
    for (let turn = 0; turn < TURNS_PER_WORKER;) {
      const decision = await limiter.tryAcquire(MUTEX);
      if (decision.granted) {
        turn += 1;
        await decision.lease.release();
      } else refusals.push(decision);
    }
  };

  test('a mutex that five workers of one process share never refuses one of them as impossible', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: [Limit.concurrent('mutex', 1)] });
    const refusals: Denied[] = [];
    await Promise.all(Array.from({ length: WORKERS }, async () => work(limiter, refusals)));
    expect(refusals.length).toBeGreaterThan(WORKERS * TURNS_PER_WORKER);
    expect(refusals.filter(({ reason }) => reason !== 'exhausted')).toEqual([]);
    expect(new Set(refusals.map(({ retryAfterMs }) => retryAfterMs))).toEqual(new Set([60_000]));
  });
});
