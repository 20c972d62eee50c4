import { afterAll, expect, test } from 'vitest';
import type { Amounts } from '../../src/limiter/acquire/request.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type Arena, Arenas, BUCKET } from '../support/features/arenas.js';
import { cellsOf } from '../support/features/write-paths.js';

const arenas = new Arenas();
afterAll(async () => arenas[Symbol.asyncDispose]());

const RESERVE = 0.3;

/** How many of `count` concurrent asks are granted, for 1 token unless `consume` says otherwise. */
async function granted(
  limiter: RateLimiter,
  count: number,
  priority?: 'batch',
  consume: Amounts = { rpm: 1 },
): Promise<number> {
  const request = { ...BUCKET, consume, ...(priority === undefined ? {} : { priority }) };
  const decisions = await Promise.all(Array.from({ length: count }, async () => limiter.tryAcquire(request)));
  return decisions.filter((decision) => decision.granted).length;
}

/** The class gets what is above its reserve, and the rest of the bucket is for asks without a class. */
async function expectReserve({ limiter, account }: Arena): Promise<void> {
  const { tokens, capacity } = account;
  const above = Math.max(0, Math.floor(tokens - capacity * RESERVE));
  expect(await granted(limiter, above + 5, 'batch')).toBe(above);
  account.spend(above);
  expect(await limiter.available(BUCKET)).toMatchObject({ rpm: tokens - above });
  expect(await granted(limiter, tokens - above + 5)).toBe(tokens - above);
}

/** The same for slots, of which whole ones must stay: 2 of 4. Some may be held. */
async function expectReservedSlots({ limiter }: Arena): Promise<void> {
  const { slots = 0 } = await limiter.available(BUCKET);
  const above = Math.max(0, slots - 2);
  expect(await granted(limiter, above + 2, 'batch', { slots: 1 })).toBe(above);
  expect(await granted(limiter, slots - above + 2, undefined, { slots: 1 })).toBe(slots - above);
}

test.each(cellsOf('priority'))(
  'after a %s on %s a class gets what is above its reserve, and no more',
  async (_, store, run) => {
    const arena = await arenas.open(store, `!reserve.batch=${RESERVE}`);
    await run(arena);
    expect(await arena.limiter.available(BUCKET)).toMatchObject({ rpm: arena.account.tokens });
    await expectReserve(arena);
    await expectReservedSlots(arena);
  },
);

test.each(['memory', 'file', 'dynamodb'] as const)(
  'production on %s loses no more to batch work than batch was granted above its reserve',
  async (store) => {
    if (!cellsOf('priority').some(([, each]) => each === store)) return;
    /** Production asks for 2/3 of the rate; batch, if there is any, for three times the rate. */
    const play = async (withBatch: boolean) => {
      const { limiter, clock } = await arenas.open(store, `!reserve.batch=${RESERVE}`);
      const sum = { production: 0, batch: 0, asked: 0 };
      for (let second = 0; second < 90; second++) {
        const batches = withBatch ? granted(limiter, 3, 'batch') : Promise.resolve(0);
        const asks = second % 3 === 0 ? 0 : 1;
        sum.asked += asks;
        sum.production += await granted(limiter, asks);
        sum.batch += await batches;
        await clock.advance(1_000);
      }
      return sum;
    };
    const [alone, beside] = [await play(false), await play(true)];
    expect(alone.production).toBe(alone.asked);
    expect(beside.production).toBe(alone.production);
    // Never above what was there, 60 at the start and 89 that refilled, and at least 99 % of it without the reserve.
    const bound = 60 + 89;
    expect(beside.production + beside.batch).toBeLessThanOrEqual(bound);
    expect(beside.production + beside.batch).toBeGreaterThanOrEqual(0.99 * (bound - 60 * RESERVE));
  },
);

test.each(['memory', 'file', 'dynamodb'] as const)(
  'production above the rate on %s loses exactly what batch was granted above its reserve',
  async (store) => {
    if (!cellsOf('priority').some(([, each]) => each === store)) return;
    const play = async (withBatch: boolean) => {
      const { limiter, clock } = await arenas.open(store, `!reserve.batch=${RESERVE}`);
      const sum = { production: 0, batch: 0 };
      for (let second = 0; second < 20; second++) {
        // Batch comes first: the worst case for production.
        if (withBatch) sum.batch += await granted(limiter, second === 0 ? 180 : 3, 'batch');
        sum.production += await granted(limiter, 5);
        await clock.advance(1_000);
      }
      return sum;
    };
    const [alone, beside] = [await play(false), await play(true)];
    const bound = 60 + 19;
    // Alone, production needs several seconds to empty the bucket, and then gets all that refills.
    expect(alone.production).toBe(bound);
    expect(beside.production + beside.batch).toBe(bound);
    expect(alone.production - beside.production).toBe(beside.batch);
    // Once production has used the reserve, batch gets nothing more.
    expect(beside.batch).toBe(60 - 60 * RESERVE);
  },
);

test.each(['memory', 'file', 'dynamodb'] as const)(
  'callers of one class that wait on %s are served in the order of their arrival, also beside the other class',
  async (store) => {
    if (!cellsOf('priority').some(([, each]) => each === store)) return;
    const { limiter, clock } = await arenas.open(store, `!reserve.batch=${RESERVE}`);
    await limiter.acquire({ ...BUCKET, consume: { rpm: 60 } });
    const served: string[] = [];
    const waiting: Promise<unknown>[] = [];
    const wait = async (name: string, priority?: 'batch'): Promise<void> => {
      const request = { ...BUCKET, consume: { rpm: 1 }, wait: { timeoutMs: 600_000 } };
      const length = limiter.waiting().reduce((sum, line) => sum + line.depth, 0);
      waiting.push(
        limiter.acquire(priority === undefined ? request : { ...request, priority }).then(() => served.push(name)),
      );
      await expect.poll(() => limiter.waiting().reduce((sum, line) => sum + line.depth, 0)).toBe(length + 1);
    };
    for (let caller = 0; caller < 6; caller++) {
      await wait(`batch-${caller}`, 'batch');
      await wait(`production-${caller}`);
    }
    // One token a second: first for production, then up to the reserve, then for batch.
    for (let count = 1; count <= 12; count++) {
      await clock.advance(count === 7 ? (60 * RESERVE + 1) * 1_000 : 1_000);
      await expect.poll(() => served.length).toBe(count);
    }
    await Promise.all(waiting);
    const names = (of: string): string[] => Array.from({ length: 6 }, (_, caller) => `${of}-${caller}`);
    expect(served).toEqual([...names('production'), ...names('batch')]);
  },
);
