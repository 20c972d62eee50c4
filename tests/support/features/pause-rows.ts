import { expect } from 'vitest';
import { sweep } from '../../../src/backends/dynamodb/reconciler/sweep.js';
import { Limit } from '../../../src/core/limit.js';
import type { Lease } from '../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { fault } from '../../../src/testing/dynamodb/index.js';
import type { FakeClock } from '../../../src/testing/fake-clock.js';
import { mergeShards, shapeOf, splitInto } from '../dynamodb/shard/shards.js';
import type { DynamoWorld, Space } from '../dynamodb/world.js';
import { BUCKET, type StoreName } from './arenas.js';
import type { Path } from './matrix.js';
import type { PauseModel } from './pause-model.js';

export const CAPACITY = 1_000;
export const SLOTS = 20;
/** One token a second. */
export const rules = (capacity: number, slots: number) => [
  Limit.custom('rpm', { capacity, refillAmount: 3_600, refillPeriodMs: 3_600_000 }),
  Limit.concurrent('slots', slots),
];
export const HOUR_MS = 3_600_000;
/** Shorter than the hour after which cold shards merge in the background, while the test reads them. */
export const PAUSE_MS = HOUR_MS / 2;

/** Two processes on one store, a lease of 100 tokens and a slot, and the model of the bucket. */
export interface Scene {
  readonly clock: FakeClock;
  readonly one: RateLimiter;
  readonly other: RateLimiter;
  readonly lease: Lease;
  readonly model: PauseModel;
  /** Only on DynamoDB. */
  readonly world: DynamoWorld | null;
  readonly space: Space | null;
  /** Moves the clock of the store and of the model. */
  advance(ms: number): Promise<void>;
  /** Lets the store remove buckets that nothing depends on. */
  evict(): Promise<void>;
  /** Lets time pass until the store may delete the bucket as expired, and deletes it. */
  expire(): Promise<void>;
}

/** A write path: what happens while the bucket is paused, to the store and to the model. */
interface Row {
  readonly name: string;
  readonly path: Path;
  readonly run: (scene: Scene) => Promise<void>;
  /** Left out: every store that has the path. */
  readonly only?: StoreName;
}

export const ask = (tokens: number, slots = 0) => ({ ...BUCKET, consume: { rpm: tokens, slots } });

export const ROWS: readonly Row[] = [
  { name: 'a take', path: 'take', run: async () => {} },
  {
    name: 'a take from a full bucket (the full form)',
    path: 'full',
    run: async ({ lease, model, advance }) => {
      await lease.rollback();
      model.move(-100, -1);
      await advance(PAUSE_MS / 2);
    },
  },
  {
    name: 'an extension of the pause by the other process',
    path: 'take',
    run: async ({ other, model, advance }) => {
      await other.pause({ ...BUCKET, forMs: 2 * PAUSE_MS, reason: 'vendor' });
      model.pause(2 * PAUSE_MS);
      // The other process may use a pause that it has read for `denyCacheMs`.
      await advance(1_000);
    },
  },
  {
    name: 'a pause that ends earlier',
    path: 'take',
    run: async ({ other, model }) => {
      await other.pause({ ...BUCKET, forMs: 1_000, reason: 'short' });
      model.pause(1_000);
    },
  },
  {
    name: 'a settlement of parameters',
    path: 'settle',
    run: async ({ one, model, advance }) => {
      await advance(1_000);
      await one.config.setResource(BUCKET.resource, { limits: rules(500, SLOTS - 5) });
      model.tokens = Math.min(model.tokens, 500);
      (model as { capacity: number }).capacity = 500;
      model.slots -= 5;
    },
  },
  {
    name: 'a debit beyond the estimate',
    path: 'refund',
    run: async ({ lease, model }) => {
      await lease.settle({ rpm: 700 });
      model.move(600);
    },
  },
  {
    name: 'a refund',
    path: 'refund',
    run: async ({ lease, model }) => {
      await lease.adjust({ rpm: -60 });
      model.move(-60);
    },
  },
  {
    name: 'a charge and a credit without a lease',
    path: 'refund',
    run: async ({ one, other, model }) => {
      await one.charge({ ...BUCKET, amounts: { rpm: 50 } });
      await other.credit({ ...BUCKET, amounts: { rpm: 20 } });
      await one.charge({ ...BUCKET, amounts: { rpm: 7 }, id: 'receipt-1' });
      model.move(37);
    },
  },
  {
    name: 'an extend',
    path: 'extend',
    run: async ({ lease, advance }) => {
      await lease.extend(48 * HOUR_MS);
      await advance(PAUSE_MS / 2);
    },
  },
  {
    name: 'a release',
    path: 'refund',
    run: async ({ lease, model }) => {
      await lease.release();
      model.move(0, -1);
    },
  },
  {
    name: 'a reclaim of an expired holder',
    path: 'reclaim',
    run: async ({ one, lease, model, advance }) => {
      await lease.extend(5_000);
      await advance(6_000);
      // A denied ask reclaims; a paused one need not. The balance shows the slot as free in both cases.
      expect((await one.tryAcquire(ask(0, SLOTS))).granted).toBe(false);
      model.move(0, -1);
    },
  },
  {
    name: 'a reclaim, by an ask for all slots after the pause, of a holder that has expired in it',
    path: 'reclaim',
    run: async ({ one, other, lease, model, advance }) => {
      await lease.extend(5_000);
      await advance(6_000);
      model.move(0, -1);
      await other.resume(BUCKET);
      model.resume();
      const all = await one.acquire(ask(0, SLOTS));
      expect(model.take(0, SLOTS)).toBe(true);
      expect((await one.buckets.get(BUCKET))?.expired).toBe(1);
      await one.pause({ ...BUCKET, forMs: 30_000, reason: 'vendor' });
      model.pause(30_000);
      await all.rollback();
      model.move(0, -SLOTS);
      // The other process may use what it has read for `denyCacheMs`.
      await advance(1_000);
    },
  },
  {
    name: 'a reclaim by the reconciler',
    path: 'reclaim',
    only: 'dynamodb',
    run: async ({ one, lease, model, advance, world, space, clock }) => {
      await lease.extend(5_000);
      await advance(6_000);
      await sweep(world!.table, { now: () => clock.now() });
      model.move(0, -1);
      expect((await one.buckets.get(BUCKET))?.expired).toBe(1);
      const [shard] = await space!.shards(BUCKET.entityId, BUCKET.resource);
      expect([shard?.holders.size, shard?.pause?.reason, shard?.ttlSec]).toEqual([0, 'vendor', null]);
    },
  },
  {
    name: 'a reset',
    path: 'reset',
    run: async ({ one, model }) => {
      await one.buckets.reset(BUCKET);
      model.fill(CAPACITY, SLOTS);
    },
  },
  {
    name: 'a resume and another pause',
    path: 'take',
    run: async ({ one, other, model }) => {
      expect(await other.resume(BUCKET)).toBe(true);
      model.resume();
      await one.pause({ ...BUCKET, forMs: 30_000, reason: 'vendor' });
      model.pause(30_000);
    },
  },
  {
    name: 'a take and a settle in one group, of a process that does not know the pause',
    path: 'take',
    run: async ({ one, other, model, advance }) => {
      await one.resume(BUCKET);
      model.resume();
      await advance(1_000);
      const own = await other.acquire(ask(10));
      model.take(10);
      await one.pause({ ...BUCKET, forMs: PAUSE_MS, reason: 'vendor' });
      model.pause(PAUSE_MS);
      const [before, , after] = await Promise.all([
        other.tryAcquire(ask(5)),
        own.settle({ rpm: 30 }),
        other.tryAcquire(ask(5)),
      ]);
      expect([before.granted, after.granted, model.take(5)]).toEqual([false, false, false]);
      model.move(20);
    },
  },
  {
    name: 'an eviction of idle buckets, which a paused one is not',
    path: 'eviction',
    run: async ({ one, lease, model, advance, evict }) => {
      await lease.rollback();
      model.move(-100, -1);
      await advance(10_000);
      await evict();
      expect(await one.buckets.get(BUCKET)).toMatchObject({ paused: { reason: 'vendor' } });
    },
  },
  {
    name: 'a split into four shards',
    path: 'split',
    run: async ({ space, world }) => {
      await splitInto(4, world!, space!, BUCKET);
      const shards = await space!.shards('user-1', 'gpt-4');
      expect(shapeOf(shards)).toBe('0/4 1/4 2/4 3/4');
      expect(new Set(shards.map(({ pause }) => pause?.reason))).toEqual(new Set(['vendor']));
    },
  },
  {
    name: 'a merge of two shards',
    path: 'merge',
    run: async ({ space, world, one, lease, model, advance }) => {
      await lease.release();
      model.move(0, -1);
      await splitInto(2, world!, space!, BUCKET);
      await one.pause({ ...BUCKET, forMs: 4 * PAUSE_MS, reason: 'vendor' });
      model.pause(4 * PAUSE_MS);
      await advance(HOUR_MS);
      expect(await mergeShards(world!, space!, BUCKET)).toBe('merged');
      expect(shapeOf(await space!.shards('user-1', 'gpt-4'))).toBe('0/1');
    },
  },
  {
    name: 'a rebase of a balance beyond 2^50',
    path: 'rebase',
    run: async ({ space, one, model, advance }) => {
      await one.pause({ ...BUCKET, forMs: 20 * PAUSE_MS, reason: 'vendor' });
      model.pause(20 * PAUSE_MS);
      const rich = { entityId: 'rich', resource: 'gpt-4' };
      await one.config.setEntity('rich', 'gpt-4', { limits: [Limit.perHour('rpm', 1e12)] });
      const request = { ...rich, consume: { rpm: 1e12 } };
      await one.acquire(request);
      await advance(2 * HOUR_MS);
      const lease = await one.acquire(request);
      const baseMs = async () => (await space?.shards('rich', 'gpt-4'))?.[0]?.baseMs ?? 0;
      const before = await baseMs();
      await advance(1_000);
      await one.pause({ ...rich, forMs: 1_000, reason: 'vendor' });
      await lease.rollback();
      if (space !== null) expect(await baseMs()).toBeGreaterThan(before);
      one.config.cache.clear();
      expect(await one.tryAcquire(request)).toMatchObject({ reason: 'paused', retryAfterMs: 1_000 });
      await advance(1_000);
      await one.acquire(request);
    },
  },
  {
    name: 'a take that is on its way to the store when the pause is written',
    path: 'take',
    only: 'dynamodb',
    run: async ({ world, one, other, model }) => {
      await one.resume(BUCKET);
      model.resume();
      await one.acquire(ask(1));
      model.take(1);
      const held = world!.proxy.inject(fault.holdRequest(), { operations: ['UpdateItem'], times: 1 });
      const asked = one.tryAcquire(ask(5));
      await held.untilFired();
      await other.pause({ ...BUCKET, forMs: PAUSE_MS, reason: 'vendor' });
      model.pause(PAUSE_MS);
      held.release();
      expect([(await asked).granted, model.take(5)]).toEqual([false, false]);
    },
  },
  {
    name: 'a ttl, which a bucket gets when its pause has ended, and its deletion',
    path: 'ttl',
    run: async ({ space, one, lease, model, advance, expire }) => {
      const ttl = async () => (await space?.shards('user-1', 'gpt-4'))?.map(({ ttlSec }) => ttlSec) ?? [null];
      expect(await ttl()).toEqual([null]);
      await advance(120_000);
      await lease.commit({ rpm: 90 });
      model.move(-10, -1);
      expect(await ttl()).toEqual([null]);
      await advance(model.pausedForMs ?? 0);
      await one.acquire(ask(1));
      model.take(1);
      // DynamoDB's bucket gets its ttl by a write that follows the answer.
      if (space !== null) await expect.poll(ttl).not.toEqual([null]);
      await expire();
      expect(await one.buckets.get(BUCKET)).toBeNull();
      model.fill(CAPACITY, SLOTS);
      expect([(await one.tryAcquire(ask(5))).granted, model.take(5)]).toEqual([true, true]);
      await one.pause({ ...BUCKET, forMs: 30_000, reason: 'vendor' });
      model.pause(30_000);
      // The other process may use what it has read for `denyCacheMs`.
      await advance(1_000);
    },
  },
];
