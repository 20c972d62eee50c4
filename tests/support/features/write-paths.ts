import { expect } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { ENGINE } from '../dynamodb/world.js';
import { type Arena, ask, BUCKET, limitsOf, pass, SLOTS, type StoreName, take } from './arenas.js';
import { type Feature, hasPath, type Path } from './matrix.js';

/** The stores of the tables. */
const STORES: readonly StoreName[] = ENGINE.missing ? ['memory', 'file'] : ['memory', 'file', 'dynamodb'];

/** A balance that is larger than what the rebase of DynamoDB lets stand. */
const LARGE_MILLI = 2 ** 50;
/** Gains in a few seconds what no balance may reach. Its tokens are not looked at: its bucket is rebased. */
const FAST = Limit.custom('fast', { capacity: 1e12, refillAmount: 1e12, refillPeriodMs: 1_000 });

/** One way to write a bucket. */
interface WritePath {
  readonly name: string;
  readonly path: Path;
  readonly run: (arena: Arena) => Promise<void>;
}

/** Whether the store still has the bucket. */
export async function isStored({ limiter }: Arena): Promise<boolean> {
  return (await limiter.buckets.get(BUCKET)) !== null;
}

/**
 * Moves the base because a balance has become large. On DynamoDB, only the base shows it: the rules, their version and the
 * number of shards stay.
 */
export async function rebase(arena: Arena): Promise<void> {
  const { limiter, account, image } = arena;
  const limits = [...limitsOf(`rpm:${account.capacity}/min:60`, arena.options), FAST];
  await limiter.config.setSystem({ limits });
  await pass(arena, 1);
  await limiter.acquire(ask({ fast: 1 }));
  await pass(arena, 10);
  await limiter.acquire(ask({ fast: 1e12 }));
  const before = await image();
  await pass(arena, 1);
  await take(arena, 1);
  const after = await image();
  if (before === null || after === null) return;
  const large = before.limits.find(({ limit }) => limit.name === 'fast');
  expect(Number(large?.tokensMilli)).toBeLessThan(-LARGE_MILLI);
  expect(after.baseMs).toBeGreaterThan(before.baseMs);
  expect([after.version, after.shardCount]).toEqual([before.version, before.shardCount]);
}

export const WRITE_PATHS: readonly WritePath[] = [
  { name: 'take', path: 'take', run: async (arena) => void (await take(arena, 20)) },
  {
    name: 'take from a full bucket',
    path: 'full',
    run: async (arena) => {
      await take(arena, 20);
      await pass(arena, 600);
      await take(arena, 7);
    },
  },
  {
    name: 'settle of the parameters',
    path: 'settle',
    run: async (arena) => {
      await take(arena, 10);
      await arena.clock.advance(1_000);
      arena.account.pass(1);
      await arena.limiter.config.setSystem({ limits: limitsOf('rpm:60/min:40', arena.options) });
      arena.account.change(40, 1);
      await take(arena, 5);
    },
  },
  {
    name: 'settle to a higher rate',
    path: 'settle',
    run: async (arena) => {
      await take(arena, 40);
      await pass(arena, 1);
      await arena.limiter.config.setSystem({ limits: limitsOf('rpm:120/min:60', arena.options) });
      arena.account.change(60, 2);
      await take(arena, 5);
      await pass(arena, 3);
    },
  },
  {
    name: 'rebase of a large balance',
    path: 'rebase',
    run: async (arena) => {
      await take(arena, 40);
      await rebase(arena);
    },
  },
  {
    name: 'debit into debt',
    path: 'refund',
    run: async (arena) => {
      const lease = await take(arena, 20);
      await lease.adjust({ rpm: 60 });
      arena.account.spend(60);
      await pass(arena, 50);
    },
  },
  {
    name: 'refund',
    path: 'refund',
    run: async (arena) => {
      const lease = await take(arena, 30);
      await lease.commit({ rpm: 12 });
      arena.account.spend(-18);
    },
  },
  {
    name: 'extend',
    path: 'extend',
    run: async ({ limiter, account }) => {
      const lease = await limiter.acquire(ask({ rpm: 9, slots: 1 }, { leaseTtlMs: 10_000 }));
      account.spend(9);
      await lease.extend(60_000);
    },
  },
  {
    name: 'reclaim',
    path: 'reclaim',
    run: async (arena) => {
      await arena.limiter.acquire(ask({ rpm: 50, slots: SLOTS }, { leaseTtlMs: 10_000 }));
      arena.account.spend(50);
      await pass(arena, 10);
      await arena.limiter.acquire(ask({ slots: SLOTS }));
    },
  },
  {
    name: 'reset',
    path: 'reset',
    run: async (arena) => {
      await take(arena, 50);
      await arena.limiter.buckets.reset(BUCKET);
      arena.account.fill();
    },
  },
  {
    name: 'ttl of a bucket that is deleted and created again',
    path: 'ttl',
    run: async (arena) => {
      await take(arena, 50);
      await arena.expire();
      expect(await isStored(arena)).toBe(false);
      arena.account.fill();
      await take(arena, 10);
    },
  },
  {
    name: 'long idle time that deletes nothing',
    path: 'ttl',
    run: async (arena) => {
      await take(arena, 50);
      await pass(arena, 90 * 86_400);
    },
  },
  {
    name: 'eviction that leaves a bucket in use, and removes it when it is idle',
    path: 'eviction',
    run: async (arena) => {
      await take(arena, 50);
      await pass(arena, 9);
      await arena.evict();
      expect(await isStored(arena)).toBe(true);
      expect(await arena.limiter.available(BUCKET)).toMatchObject({ rpm: arena.account.tokens });
      await pass(arena, 600);
      await arena.evict();
      expect(await isStored(arena)).toBe(false);
      await take(arena, 10);
    },
  },
  {
    name: 'split',
    path: 'split',
    run: async (arena) => {
      await take(arena, 1);
      await pass(arena, 600);
      await arena.split();
    },
  },
  {
    name: 'merge',
    path: 'merge',
    run: async (arena) => {
      await take(arena, 1);
      await pass(arena, 600);
      await arena.split();
      await arena.merge();
      arena.account.fill();
      await take(arena, 10);
    },
  },
];

const CELLS = WRITE_PATHS.flatMap(({ name, path, run }) =>
  STORES.filter((store) => hasPath(store, path)).map((store) => [name, store, run] as const),
);

/** Each store with each path that it has. The feature is named for the overview of all cells. */
export function cellsOf(_feature: Exclude<Feature, 'pause' | 'portable'>): typeof CELLS {
  return CELLS;
}
