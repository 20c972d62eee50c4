import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { isOfLease, LIMITS, live, sumOfTaken, USER } from '../support/features/portable-lives.js';
import { type FeatureSpace, type FeatureStore, STORES } from '../support/features/portable-stores.js';

const LEASES = 12;

async function liveTogether(space: FeatureSpace, seed: number): Promise<void> {
  const processes = [await space.process({ limits: LIMITS }), await space.process({ limits: LIMITS })];
  const limiters = processes.map(({ limiter }) => limiter);
  // Creates the bucket, so that every write of a lease is an update.
  await (await limiters[0]!.acquire({ ...USER, consume: { rpd: 1 } })).rollback();
  const lost = { operations: ['UpdateItem'], probability: 0.2, when: isOfLease };
  const losses = space.dynamo?.world.proxy.inject(fault.loseAnswer(), lost);
  const models = await Promise.all(
    Array.from({ length: LEASES }, async (_, lease) => live(limiters, new Random(seed * LEASES + lease))),
  );
  if (losses !== undefined) expect(losses.fired).toBeGreaterThan(0);
  space.dynamo?.world.proxy.heal();
  const { limits = [], holders } = (await limiters[0]!.buckets.get(USER)) ?? {};
  const consumed = Object.fromEntries(limits.map((entry) => [entry.limit.name, entry.consumed]));
  expect(consumed).toEqual(sumOfTaken(models));
  expect(holders).toBe(models.filter(({ state }) => state === 'open').length);
}

describe.each(STORES)('many portable leases of one bucket at once on %s', (name, start) => {
  let store: FeatureStore;
  beforeAll(async () => {
    store = await start();
  });
  afterAll(async () => store?.[Symbol.asyncDispose]());

  test('the bucket has given exactly what all leases have taken, although two processes share them and answers are lost', async () => {
    const numRuns = name === 'memory' ? 30 : 3;
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 1_000_000 }), async (seed) => liveTogether(await store.space(), seed)),
      { numRuns },
    );
  }, 60_000);
});
