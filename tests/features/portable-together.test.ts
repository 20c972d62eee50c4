import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { perform, PortableModel, type Step } from '../support/features/portable-model.js';
import { type FeatureSpace, type FeatureStore, type Process, STORES } from '../support/features/portable-stores.js';

const LIMITS = [Limit.perDay('rpd', 1_000), Limit.perDay('tpd', 1_000_000), Limit.concurrent('slots', 100)];
const USER = { entityId: 'user-1', resource: 'gpt-4' };
const TAKEN = { rpd: 1, tpd: 500, slots: 2 };
const LEASES = 12;
const STEPS = 5;

function drawStep(random: Random, at: number): Step {
  switch (random.whole(0, 5)) {
    case 0:
      return { kind: 'settle', tpd: random.whole(0, 900) };
    case 1:
      return { kind: 'adjust', tpd: random.whole(-300, 300), id: `adjust-${at}` };
    case 2:
      return { kind: 'release' };
    case 3:
      return { kind: 'extend' };
    case 4:
      return at < STEPS - 1 ? { kind: 'settle', tpd: 100 } : { kind: 'commit', tpd: random.whole(0, 900) };
    default:
      return at < STEPS - 1 ? { kind: 'extend' } : { kind: 'rollback' };
  }
}

/** One lease, whose steps are made by two processes in turn. A step whose outcome is not known is repeated by the other one. */
async function live(processes: readonly Process[], random: Random): Promise<PortableModel> {
  const model = new PortableModel(TAKEN);
  const request = { ...USER, consume: TAKEN, portable: true, leaseTtlMs: 3_600_000 };
  const token = await (await processes[0]!.limiter.acquire(request)).token();
  for (let at = 0, turn = 0; at < STEPS; at++) {
    const step = drawStep(random, at);
    for (let outcome = 'killed'; outcome === 'killed';) {
      const { limiter } = processes[turn++ % processes.length]!;
      outcome = await perform(await limiter.leases.resume(token), step);
      if (outcome !== 'killed') expect([step, outcome]).toEqual([step, model.apply(step)]);
    }
  }
  return model;
}

async function liveTogether(space: FeatureSpace, seed: number): Promise<void> {
  const processes = [await space.process({ limits: LIMITS }), await space.process({ limits: LIMITS })];
  // Creates the bucket, so that every write of a lease is an update.
  await (await processes[0]!.limiter.acquire({ ...USER, consume: { rpd: 1 } })).rollback();
  const lost = { operations: ['UpdateItem'], probability: 0.2, when: isOfLease };
  const losses = space.dynamo?.world.proxy.inject(fault.loseAnswer(), lost);
  const models = await Promise.all(
    Array.from({ length: LEASES }, async (_, lease) => live(processes, new Random(seed * LEASES + lease))),
  );
  if (losses !== undefined) expect(losses.fired).toBeGreaterThan(0);
  space.dynamo?.world.proxy.heal();
  const sums = { rpd: 0, tpd: 0, slots: 0 };
  for (const { taken } of models) {
    sums.rpd += taken.rpd;
    sums.tpd += taken.tpd;
    sums.slots += taken.slots;
  }
  const { limits = [], holders } = (await processes[0]!.limiter.buckets.get(USER)) ?? {};
  expect(Object.fromEntries(limits.map(({ limit, consumed }) => [limit.name, consumed]))).toEqual(sums);
  expect(holders).toBe(models.filter(({ state }) => state === 'open').length);
}

/** A grant whose answer is lost for good is revoked, and the caller gets no lease: not the subject here. */
function isOfLease({ body }: { readonly body: unknown }): boolean {
  return !/"ac"/.test(JSON.stringify(body));
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
