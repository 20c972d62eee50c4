import { afterAll, expect, test } from 'vitest';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type Arena, Arenas, BUCKET, CELLS } from '../support/features/write-paths.js';

const arenas = new Arenas();
afterAll(async () => arenas[Symbol.asyncDispose]());

const RESERVE = 0.3;

/** How many of `count` concurrent asks for 1 token are granted. */
async function granted(limiter: RateLimiter, count: number, priority?: 'batch'): Promise<number> {
  const request = { ...BUCKET, consume: { rpm: 1 }, ...(priority === undefined ? {} : { priority }) };
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

test.each(CELLS)('after a %s on %s a class gets what is above its reserve, and no more', async (_, store, run) => {
  const arena = await arenas.open(store, `!reserve.batch=${RESERVE}`);
  await run(arena);
  expect(await arena.limiter.available(BUCKET)).toMatchObject({ rpm: arena.account.tokens });
  await expectReserve(arena);
});

test.each(['memory', 'file', 'dynamodb'] as const)(
  'production on %s loses no more to batch work than batch was granted above its reserve',
  async (store) => {
    if (!CELLS.some(([, each]) => each === store)) return;
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
