import assert from 'node:assert/strict';
import { USAGE_WINDOWS } from '../../../core/usage/usage.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { Lease } from '../../../limiter/lease/lease.js';
import { ask, times, tokensOf, listUsage, USER } from '../kit/asking.js';
import { type Fixture, type Case, limits } from '../kit/fixture.js';
import { collect } from '../kit/tenant.js';

const HOUR_MS = 3_600_000;

/** Corrections of an ask for 50 `tpm`, with the difference. */
const CORRECTIONS: readonly (readonly [what: string, correct: (lease: Lease) => Promise<void>, by: number])[] = [
  ['a rollback', async (lease) => lease.rollback(), -50],
  ['a settlement below what was taken', async (lease) => lease.settle({ tpm: 20 }), -30],
  ['a settlement above what was taken', async (lease) => lease.settle({ tpm: 950 }), 900],
  ['an adjustment', async (lease) => lease.adjust({ tpm: 7 }), 7],
  ['a commit with totals', async (lease) => lease.commit({ tpm: 51 }), 1],
];

const corrections: readonly Case[] = CORRECTIONS.map(([what, correct, by]) => ({
  title: `${what} counts in the hour and day in which it happens, and does not change the number of acquires`,
  run: async (fixture) => {
    const limiter = await fixture.limited('tpm:999/min');
    fixture.clock.set(Date.parse('2027-03-10T23:59:59.000Z'));
    const lease = await limiter.acquire(ask({ tpm: 50 }));
    await fixture.clock.advance(1_000);
    await correct(lease);
    for (const window of ['hourly', 'daily'] as const) {
      const found = await listUsage(fixture, limiter, { window });
      assert.deepEqual(tokensOf(found), [{ tpm: 50 }, { tpm: by }]);
      assert.deepEqual(
        found.map(({ acquires }) => acquires),
        [1, 0],
      );
    }
    const [month] = await listUsage(fixture, limiter, { window: 'monthly' });
    assert.deepEqual([month?.tokens['tpm'] ?? 0, month?.acquires], [50 + by, 1]);
  },
}));

/** The sums over all windows of one kind. */
async function sumOf(
  fixture: Fixture,
  limiter: RateLimiter,
  window: 'hourly' | 'daily' | 'monthly',
): Promise<number[]> {
  const found = await listUsage(fixture, limiter, { window });
  return found.reduce(
    ([tokens = 0, acquires = 0], usage) => [tokens + (usage.tokens['rpm'] ?? 0), acquires + usage.acquires],
    [0, 0],
  );
}

const sums: readonly Case[] = [
  {
    title: 'the windows of every kind add up to the granted amount at any time',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:999/min');
      let granted = 0;
      for (let step = 1; step <= 12; step++) {
        await limiter.acquire(ask({ rpm: step }));
        granted += step;
        for (const window of USAGE_WINDOWS) assert.deepEqual(await sumOf(fixture, limiter, window), [granted, step]);
        await fixture.clock.advance(step * 17 * 60_000);
      }
    },
  },
  {
    title: 'the usage of an hour is complete when the next hour has begun, even without usage in the next hour',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min');
      await limiter.acquire(ask({ rpm: 3 }));
      const before = await listUsage(fixture, limiter);
      await fixture.clock.advance(30 * HOUR_MS);
      assert.deepEqual(await listUsage(fixture, limiter), before);
      assert.deepEqual(tokensOf(before), [{ rpm: 3 }]);
    },
  },
  {
    title: 'stored and per-call limits of one resource count together, hour by hour',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min');
      const own = [limits('rpm:50/min'), limits('rpm:60/min', 'tpm:9/min')] as const;
      for (let hour = 0; hour < 3; hour++) {
        await limiter.acquire(ask({ rpm: 1 }));
        if (hour !== 1) await limiter.acquire(ask({ rpm: 10 }, { limits: own[0] }));
        await limiter.acquire(ask({ rpm: 20, tpm: hour }, { limits: own[1] }));
        await fixture.clock.advance(HOUR_MS);
      }
      const found = await listUsage(fixture, limiter);
      assert.deepEqual(tokensOf(found), [{ rpm: 31 }, { rpm: 21, tpm: 1 }, { rpm: 31, tpm: 2 }]);
      assert.deepEqual(
        found.map(({ resource, acquires }) => [resource, acquires]),
        [3, 2, 3].map((acquires) => [USER.resource, acquires]),
      );
      const ofResource = { resource: USER.resource, window: 'hourly' } as const;
      assert.deepEqual(await collect(limiter.usage.query({ ...ofResource, limit: 2 })), found);
      assert.deepEqual((await limiter.usage.summary(ofResource)).total, { rpm: 83, tpm: 3 });
    },
  },
  {
    title: 'slots do not count as usage in any window or summary',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min', 'slots:9/concurrent');
      for (let hour = 0; hour < 3; hour++) {
        const lease = await limiter.acquire(ask({ rpm: 1, slots: 2 }));
        if (hour === 1) await lease.commit();
        await fixture.clock.advance(HOUR_MS);
      }
      await fixture.catchUp();
      for (const window of USAGE_WINDOWS) {
        const { total, average } = await limiter.usage.summary({ ...USER, window });
        assert.deepEqual([Object.keys(total), Object.keys(average), total], [['rpm'], ['rpm'], { rpm: 3 }]);
      }
    },
  },
  {
    title: 'expired leases are counted in the window in which they were reclaimed, and in the summary',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:2/concurrent');
      await Promise.all(times(2, async () => limiter.acquire(ask({ slots: 1 }))));
      await fixture.clock.advance(HOUR_MS);
      const second = await Promise.all(times(2, async () => limiter.acquire(ask({ slots: 1 }))));
      await second[0]?.commit();
      await fixture.clock.advance(HOUR_MS);
      await limiter.acquire(ask({ slots: 2 }));
      const found = await listUsage(fixture, limiter);
      assert.deepEqual(
        found.map(({ acquires, expired }) => [acquires, expired]),
        [
          [2, 0],
          [2, 2],
          [1, 1],
        ],
      );
      const { acquires, expired } = await limiter.usage.summary({ ...USER, window: 'daily' });
      assert.deepEqual([acquires, expired], [5, 3]);
    },
  },
  {
    title: 'usage of a removed limit stays, and continues when the limit is added again',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const set = async (...rules: string[]): Promise<void> => limiter.config.setSystem({ limits: limits(...rules) });
      await set('rpm:99/min', 'tpm:99/min');
      await limiter.acquire(ask({ rpm: 1, tpm: 10 }));
      await fixture.clock.advance(1_000);
      await set('rpm:99/min');
      await limiter.acquire(ask({ rpm: 2 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpm: 3, tpm: 10 }]);
      await fixture.clock.advance(HOUR_MS);
      await limiter.acquire(ask({ rpm: 4 }));
      await set('rpm:99/min', 'tpm:50/min');
      await limiter.acquire(ask({ tpm: 20 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [
        { rpm: 3, tpm: 10 },
        { rpm: 4, tpm: 20 },
      ]);
    },
  },
  {
    title: 'reading usage changes nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:99/day', 'slots:2/concurrent');
      const [watched, left] = [USER, { ...USER, entityId: 'user-2' }];
      for (let step = 0; step < 6; step++) {
        for (const who of [watched, left]) await limiter.acquire(ask({ rpd: 5, ...(step === 3 && { slots: 1 }) }, who));
        await fixture.clock.advance(25 * 60_000);
        for (const window of USAGE_WINDOWS) {
          await listUsage(fixture, limiter, { ...watched, window });
          await limiter.usage.summary({ ...watched, window });
        }
      }
      const seen = async ({ entityId }: { readonly entityId: string }): Promise<unknown> => {
        const usage = await listUsage(fixture, limiter, { entityId });
        const bucket = await limiter.buckets.get({ ...USER, entityId });
        return [usage.map((one) => ({ ...one, entityId: '' })), { ...bucket, entityId: '' }];
      };
      assert.deepEqual(await seen(watched), await seen(left));
    },
  },
];

export const usageCounts: readonly Case[] = [...corrections, ...sums];
