import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { Limit } from '../../../../src/core/limit.js';
import type { Lease } from '../../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { sweep } from '../../../../src/backends/dynamodb/reconciler/sweep.js';
import { Random } from '../../../../src/testing/conformance/kit/random.js';
import { worthOf } from '../../../oracle/model.js';
import { shapeOf, splitInto, splitShard, spreading } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const LEVELS = ['user-1', 'project'];
const HOUR_MS = 3_600_000;
const LIMITS = [Limit.perMinute('tpm', 100), Limit.concurrent('slots', 8)];

/** Whether a new bucket would be equal at that time: every rate is full and every holder has expired. */
function isForgettable({ limits, baseMs, holders }: ShardImage, atMs: number): boolean {
  return (
    limits.every(
      ({ limit, rate, tokensMilli }) =>
        limit.kind === 'concurrent' || worthOf(rate, tokensMilli, baseMs, atMs) >= BigInt(rate.capacityMilli),
    ) && [...holders.values()].every(({ expiresAtMs }) => expiresAtMs <= atMs)
  );
}

describe.skipIf(ENGINE.missing)(`the lifetime of buckets on DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const cascade = async () => {
    const space = await world.space();
    const first = await space.open({ limits: LIMITS });
    await first.entities.create({ id: 'project' });
    await first.entities.create({ id: 'user-1', parentId: 'project', cascade: true });
    return { space, first };
  };

  /** Shards whose TTL is before the end of their debts and holders. */
  const forgotten = async (space: Space): Promise<readonly string[]> => {
    const shards = (await Promise.all(LEVELS.map(async (entityId) => space.shards(entityId, 'gpt-4')))).flat();
    expect(shards.length).toBeGreaterThan(0);
    return shards
      .filter((image) => image.ttlSec !== null && !isForgettable(image, image.ttlSec * 1_000))
      .map(({ key, ttlSec }) => `${key.entityId} ${key.shard} at ${ttlSec ?? ''}`);
  };

  test('extending a lease on two levels does not shorten the ten hours that a debt needs', async () => {
    const { space, first } = await cascade();
    const second = await space.open({ limits: LIMITS });
    const lease = await first.acquire({ ...BUCKET, consume: { tpm: 1, slots: 1 } });
    const other = await second.acquire({ ...BUCKET, consume: { tpm: 1 } });
    await other.adjust({ tpm: 60_000 });
    await lease.extend(120_000);
    expect(await forgotten(space)).toEqual([]);
    const [bucket] = await space.shards('project', 'gpt-4');
    expect(bucket!.ttlSec! * 1_000 - space.clock.now()).toBeGreaterThan(10 * HOUR_MS);
  });

  test('a merged bucket that is never used again gets an expiry, after its debts', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    const lease = await limiter.acquire({ ...BUCKET, consume: { tpm: 1 } });
    await splitInto(4, world, space, BUCKET);
    await lease.adjust({ tpm: 60_000 });
    await space.clock.advance(2 * HOUR_MS);
    await sweep(world.table, { now: () => space.clock.now(), timeoutMs: 10_000 });
    const shards = await space.shards('user-1', 'gpt-4');
    expect(shapeOf(shards)).toBe('0/1');
    expect(shards[0]!.ttlSec).toBeGreaterThan(space.clock.now() / 1_000);
    expect(await forgotten(space)).toEqual([]);
  });

  test('no write of several processes lets a bucket expire before its debts and holders are over', async () => {
    const random = new Random(11);
    const { space, first } = await cascade();
    const processes = [first, await space.open({ limits: LIMITS }, spreading(2)), await space.open({ limits: LIMITS })];
    const leases: Lease[] = [];
    const pick = <T>(list: readonly T[]): T => list[random.whole(0, list.length - 1)]!;
    const use = async (limiter: RateLimiter): Promise<void> => {
      const hold = random.whole(0, 1) === 0 ? { leaseTtlMs: random.whole(1, 200) * 60_000 } : {};
      const consume = { tpm: random.whole(0, 3), ...(random.whole(0, 2) === 0 ? { slots: 1 } : {}) };
      const decision = await limiter.tryAcquire({ ...BUCKET, consume, ...hold });
      if (decision.granted) leases.push(decision.lease);
    };
    const change = async (lease: Lease): Promise<unknown> => {
      switch (random.whole(0, 5)) {
        case 0:
          return lease.adjust({ tpm: random.whole(-50, 2_000) });
        case 1:
          return lease.settle({ tpm: random.whole(0, 40_000) });
        case 2:
          return lease.extend(random.whole(1, 900) * 60_000);
        case 3:
          return lease.release();
        case 4:
          return lease.commit();
        default:
          return lease.rollback();
      }
    };
    const operate = async (): Promise<unknown> => {
      const limits = [Limit.perMinute('tpm', random.whole(40, 200)), Limit.concurrent('slots', 8)];
      switch (random.whole(0, 4)) {
        case 0:
          return first.config.setResource('gpt-4', { limits });
        case 1:
          return first.buckets.reset(BUCKET);
        case 2:
          return splitShard(world, space, { ...BUCKET, entityId: pick(LEVELS) }, 0);
        default:
          return sweep(world.table, { now: () => space.clock.now(), timeoutMs: 10_000 });
      }
    };
    for (let round = 0; round < 20; round++) {
      const work: Promise<unknown>[] = processes.map(async (limiter) => use(limiter));
      if (leases.length > 2) work.push(change(pick(leases)), change(pick(leases)), change(pick(leases)));
      if (round % 3 === 0) work.push(operate());
      // Closed and lost leases refuse, and other writers refuse splits.
      await Promise.allSettled(work);
      expect(await forgotten(space)).toEqual([]);
      await space.clock.advance(pick([1, 500, 61_000, HOUR_MS, 20 * HOUR_MS]));
    }
  });
});
