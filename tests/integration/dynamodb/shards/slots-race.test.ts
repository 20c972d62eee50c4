import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { Lease } from '../../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { sweep } from '../../../../src/backends/dynamodb/reconciler/sweep.js';
import { Random } from '../../../../src/testing/conformance/kit/random.js';
import { splitInto, splitShard, spreading } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const CAPACITY = 24;
const RPM = Limit.perHour('rpm', 1_000_000);
const WITHOUT = { limits: [RPM] };
const WITH = { limits: [RPM, Limit.concurrent('slots', CAPACITY)] };
const ROUNDS = 20;

/** The free slots that can be taken, and the held slots, over all shards. */
async function slotsOf(space: Space): Promise<{ readonly free: number; readonly held: number }> {
  const sum = { free: 0, held: 0 };
  for (const { limits, holders } of await space.shards('user-1', 'gpt-4')) {
    for (const { limit, tokensMilli } of limits) {
      if (limit.kind === 'concurrent') sum.free += Math.max(0, Number(tokensMilli)) / 1_000;
    }
    for (const { slots } of holders.values()) sum.held += Number(slots[0]?.milli ?? 0) / 1_000;
  }
  return sum;
}

describe.skipIf(ENGINE.missing)(`slots of several shards with many writers${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test.each([1])(
    'four processes, an operator who removes and adds the limit, splits and sweeps never create a 25th slot together (seed %i)',
    async (seed) => {
      const random = new Random(seed);
      const space = await world.space();
      const open = async (by: number) => space.open({ configCacheMs: 1_000 }, spreading(10 * seed + by));
      const processes = await Promise.all([1, 2, 3, 4].map(open));
      const operator = await open(5);
      await operator.config.setResource('gpt-4', WITH);
      await operator.acquire({ ...BUCKET, consume: { rpm: 1 } });
      await splitInto(2, world, space, BUCKET);
      const leases: Lease[] = [];
      let most = 0;

      const use = async (limiter: RateLimiter): Promise<void> => {
        const slots = random.whole(1, 6);
        const decision = await limiter
          .tryAcquire({ ...BUCKET, consume: { rpm: 1, slots }, leaseTtlMs: 86_400_000 })
          // The process has read that the limit was removed.
          .catch(() => limiter.tryAcquire({ ...BUCKET, consume: { rpm: 1 } }));
        if (!decision.granted) return;
        // A process with an old config took from a shard that no longer has the limit. Nothing was counted.
        if (decision.statuses.some(({ limit }) => limit.name === 'slots')) leases.push(decision.lease);
        else await decision.lease.release();
      };
      const giveBack = async (): Promise<void> => {
        const [lease] = leases.splice(random.whole(0, Math.max(0, leases.length - 1)), 1);
        await lease?.release();
      };
      const reconcile = async () => sweep(world.table, { now: () => space.clock.now(), timeoutMs: 10_000 });

      for (let round = 0; round < ROUNDS; round++) {
        const work: Promise<unknown>[] = processes.map(async (limiter) =>
          random.whole(0, 2) === 0 ? giveBack() : use(limiter),
        );
        if (round % 5 === 2) work.push(operator.config.setResource('gpt-4', round % 2 === 0 ? WITHOUT : WITH));
        if (round % 9 === 8) work.push(splitShard(world, space, BUCKET, random.whole(0, 1)));
        if (round % 7 === 6) work.push(reconcile());
        await Promise.all(work);
        const { free, held } = await slotsOf(space);
        most = Math.max(most, free + held);
        await space.clock.advance(300);
      }
      expect(most).toBeLessThanOrEqual(CAPACITY);

      await operator.config.setResource('gpt-4', WITH);
      await operator.acquire({ ...BUCKET, consume: { rpm: 1 } });
      await reconcile();
      const { free, held } = await slotsOf(space);
      expect(free + held).toBe(CAPACITY);
    },
  );
});
