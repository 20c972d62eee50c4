import { expect } from 'vitest';
import { sweep } from '../../../src/backends/dynamodb/reconciler/sweep.js';
import { Limit } from '../../../src/core/limit.js';
import type { Lease } from '../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { shapeOf, splitInto } from '../dynamodb/shard/shards.js';
import { deleteExpired } from './arenas.js';
import type { DayBalances } from './day-balances.js';
import type { Path } from './matrix.js';
import type { PortableModel } from './portable-model.js';
import type { FeatureSpace } from './portable-stores.js';

export const LIMITS = [Limit.perDay('rpd', 100), Limit.perDay('tpd', 100_000), Limit.concurrent('slots', 8)];
export const USER = { entityId: 'user-1', resource: 'gpt-4' };
export const TAKEN = { rpd: 1, tpd: 500, slots: 2 };
export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;

/** A lease, the process that acquired it, another process, and what the lease should have taken. */
export interface Scene {
  readonly space: FeatureSpace;
  readonly here: RateLimiter;
  readonly there: RateLimiter;
  readonly lease: Lease;
  readonly token: string;
  readonly model: PortableModel;
  readonly balances: DayBalances;
}

/** One write path: what happens while the lease is open. */
interface PortablePath {
  readonly name: string;
  readonly path: Path;
  readonly run: (scene: Scene) => Promise<void>;
}

const dynamoOf = ({ space }: Scene) => {
  if (space.dynamo === undefined) throw new Error('this path exists only on DynamoDB');
  return space.dynamo;
};

/** The paths after which the bucket still has the holder of the lease. */
export const PORTABLE_PATHS: readonly PortablePath[] = [
  {
    name: 'a take of another lease from the same bucket',
    path: 'take',
    run: async ({ there }) => {
      const other = await there.acquire({ ...USER, consume: { tpd: 70, slots: 1 } });
      await other.rollback();
    },
  },
  {
    name: 'a take from a bucket that has become full',
    path: 'full',
    run: async ({ space, there, lease }) => {
      await lease.extend(5 * DAY_MS);
      await space.clock.advance(3 * DAY_MS);
      await (await there.acquire({ ...USER, consume: { tpd: 70 } })).rollback();
    },
  },
  {
    name: 'a settlement of the bucket to new limits',
    path: 'settle',
    run: async ({ there }) => {
      await there.config.setSystem({ limits: [...LIMITS, Limit.perDay('usd', 9)] });
      await (await there.acquire({ ...USER, consume: { rpd: 1, usd: 1 } })).rollback();
    },
  },
  {
    name: 'a refund by a settle of the other process',
    path: 'refund',
    run: async ({ there, token, model }) => {
      await (await there.leases.resume(token)).settle({ tpd: 20 });
      model.apply({ kind: 'settle', tpd: 20 });
    },
  },
  {
    name: 'an extension by the other process',
    path: 'extend',
    run: async ({ there, token, space }) => {
      await (await there.leases.resume(token)).extend(HOUR_MS);
      await space.clock.advance(HOUR_MS - 1);
    },
  },
  {
    name: 'a reclaim of another lease that has expired',
    path: 'reclaim',
    run: async ({ space, here, there, lease }) => {
      await here.acquire({ ...USER, consume: { slots: 6 }, leaseTtlMs: 5_000 });
      await lease.extend(HOUR_MS);
      await space.clock.advance(6_000);
      await (await there.acquire({ ...USER, consume: { slots: 6 } })).rollback();
    },
  },
  {
    name: 'a split of the shard that has the holder',
    path: 'split',
    run: async (scene) => {
      const { world, space } = dynamoOf(scene);
      // A shard has room for what comes back only if its own part of the capacity is not full.
      const others = { rpd: 40, tpd: 40_000, slots: 0 };
      await scene.there.acquire({ ...USER, consume: others });
      scene.balances.takeForOthers(others);
      await splitInto(4, world, space, USER);
    },
  },
  {
    name: 'a merge of the other shards',
    path: 'merge',
    run: async (scene) => {
      const { world, space } = dynamoOf(scene);
      await splitInto(2, world, space, USER);
      await scene.lease.extend(3 * HOUR_MS);
      await scene.space.clock.advance(2 * HOUR_MS);
      await sweep(world.table, { now: () => space.clock.now() });
      expect(shapeOf(await space.shards(USER.entityId, USER.resource))).toBe('0/1');
    },
  },
  {
    name: 'a rebase of a balance that has become large',
    path: 'rebase',
    run: async (scene) => {
      const { space, there } = scene;
      const baseMs = async (): Promise<number> =>
        (await space.dynamo?.space.shards(USER.entityId, USER.resource))?.[0]?.baseMs ?? 0;
      const fast = Limit.custom('fast', { capacity: 1e12, refillAmount: 1e12, refillPeriodMs: 1_000 });
      await there.config.setSystem({ limits: [...LIMITS, fast] });
      const bases: number[] = [];
      for (let count = 0; count < 3; count++) {
        await space.clock.advance(10_000);
        await (await there.acquire({ ...USER, consume: { fast: 1e12 } })).rollback();
        bases.push(await baseMs());
      }
      if (space.dynamo !== undefined) expect(new Set(bases).size).toBeGreaterThan(1);
    },
  },
  {
    name: 'an eviction of idle buckets, which a bucket with a holder is not',
    path: 'eviction',
    run: async ({ space, there, lease }) => {
      await lease.extend(5 * DAY_MS);
      await space.clock.advance(3 * DAY_MS);
      await space.evict(there);
      expect(await there.buckets.get(USER)).not.toBeNull();
    },
  },
];

/** One write path that ends the holder while the lease is open. */
interface PortableLoss extends PortablePath {
  readonly onExpiry?: 'refund';
}

async function reclaim({ space, here }: Scene): Promise<void> {
  await space.clock.advance(61_000);
  await (await here.acquire({ ...USER, consume: { slots: 8 } })).rollback();
}

export const PORTABLE_LOSSES: readonly PortableLoss[] = [
  {
    name: 'a reset',
    path: 'reset',
    run: async ({ here, model, balances }) => {
      await here.buckets.reset(USER);
      model.apply({ kind: 'release' });
      balances.fill();
    },
  },
  {
    name: 'a reclaim that keeps the rates',
    path: 'reclaim',
    run: async (scene) => {
      await reclaim(scene);
      scene.model.apply({ kind: 'release' });
    },
  },
  {
    name: 'a reclaim that refunds',
    path: 'reclaim',
    onExpiry: 'refund',
    run: async (scene) => {
      await reclaim(scene);
      scene.model.taken = { rpd: 0, tpd: 0, slots: 0 };
    },
  },
  {
    name: 'the ttl of the bucket, and its deletion,',
    path: 'ttl',
    run: async ({ space, there, model, balances }) => {
      const { dynamo } = space;
      if (dynamo === undefined) {
        await space.clock.advance(20 * DAY_MS);
        await space.evict(there);
      } else await deleteExpired(dynamo.world, dynamo.space, await dynamo.space.shards(USER.entityId, USER.resource));
      expect(await there.buckets.get(USER)).toBeNull();
      model.taken = { rpd: 0, tpd: 0, slots: 0 };
      balances.fill();
      await (await there.acquire({ ...USER, consume: { rpd: 1 } })).rollback();
    },
  },
];
