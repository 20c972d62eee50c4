import assert from 'node:assert/strict';
import { USAGE_WINDOWS } from '../../../core/usage/usage.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { Usage } from '../../../limiter/api/usage-api.js';
import { ask, assertRejects, times, tokensOf, listUsage, USER } from '../kit/asking.js';
import type { Fixture, Case } from '../kit/fixture.js';
import { collect } from '../kit/tenant.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Boundaries: how many windows of each kind contain the millisecond before or the millisecond after. */
const TURNS: readonly (readonly [what: string, at: string, windows: Readonly<Record<Usage['window'], number>>])[] = [
  ['an hour', '2027-03-10T11:00:00.000Z', { hourly: 2, daily: 1, monthly: 1 }],
  ['a day', '2027-03-10T00:00:00.000Z', { hourly: 2, daily: 2, monthly: 1 }],
  ['a leap day', '2028-02-29T00:00:00.000Z', { hourly: 2, daily: 2, monthly: 1 }],
  ['a month after a leap day', '2028-03-01T00:00:00.000Z', { hourly: 2, daily: 2, monthly: 2 }],
  ['a year', '2028-01-01T00:00:00.000Z', { hourly: 2, daily: 2, monthly: 2 }],
];

const turns: readonly Case[] = TURNS.map(([what, at, windows]) => ({
  title: `at the beginning of ${what} each window counts only what happened in it`,
  run: async (fixture) => {
    const limiter = await fixture.limited('rpm:99/min');
    fixture.clock.set(Date.parse(at) - 1);
    await limiter.acquire(ask({ rpm: 1 }));
    await fixture.clock.advance(1);
    await limiter.acquire(ask({ rpm: 2 }));
    for (const window of USAGE_WINDOWS) {
      const found = await listUsage(fixture, limiter, { window });
      const split = windows[window] === 2;
      assert.deepEqual(tokensOf(found), split ? [{ rpm: 1 }, { rpm: 2 }] : [{ rpm: 3 }]);
      assert.deepEqual(
        found.map(({ acquires }) => acquires),
        split ? [1, 1] : [2],
      );
      if (split) assert.deepEqual([found[0]?.windowEnd, found[1]?.windowStart], [new Date(at), new Date(at)]);
    }
  },
}));

/** Usage of three entities in three hours, some of it already in usage records, some not. `b` has none in the second hour. */
async function spendForThreeHours(fixture: Fixture): Promise<RateLimiter> {
  const limiter = await fixture.limited('rpm:99/min');
  for (let hour = 0; hour < 3; hour++) {
    for (const [at, entityId] of ['b', 'a!', 'a'].entries()) {
      if (entityId !== 'b' || hour !== 1) await limiter.acquire(ask({ rpm: 10 * (hour + 1) + at }, { entityId }));
    }
    await limiter.acquire(ask({ rpm: 90 }, { resource: 'gpt-4o' }));
    if (hour < 2) await fixture.clock.advance(HOUR_MS);
  }
  return limiter;
}

const IN_ORDER = ['0 a 12', '0 a! 11', '0 b 10', '1 a 22', '1 a! 21', '2 a 32', '2 a! 31', '2 b 30'] as const;

function told(fixture: Fixture, found: readonly Usage[]): string[] {
  const startMs = fixture.clock.now() - 2 * HOUR_MS;
  return found.map(
    ({ windowStart, entityId, tokens }) =>
      `${(windowStart.getTime() - startMs) / HOUR_MS} ${entityId} ${tokens['rpm']}`,
  );
}

const lists: readonly Case[] = [
  {
    title: 'the usage of a resource lists every entity, sorted by time, then by entity',
    run: async (fixture) => {
      const limiter = await spendForThreeHours(fixture);
      await fixture.catchUp();
      const found = await collect(limiter.usage.query({ resource: USER.resource, window: 'hourly' }));
      assert.deepEqual(told(fixture, found), IN_ORDER);
      const days = await collect(limiter.usage.query({ resource: USER.resource, window: 'daily' }));
      assert.deepEqual(
        days.map(({ entityId, tokens }) => [entityId, tokens['rpm']]),
        [
          ['a', 66],
          ['a!', 63],
          ['b', 40],
        ],
      );
    },
  },
  {
    title: 'the usage of a resource is returned page by page, with each window of each entity once',
    run: async (fixture) => {
      const limiter = await spendForThreeHours(fixture);
      await fixture.catchUp();
      const query = { resource: USER.resource, window: 'hourly' } as const;
      for (const limit of [1, 2, 3, 5, 8]) {
        assert.deepEqual(told(fixture, await collect(limiter.usage.query({ ...query, limit }))), IN_ORDER);
      }
      const first = await limiter.usage.query({ ...query, limit: 4 });
      const second = await limiter.usage.query({ ...query, limit: 5, after: first.next ?? '' });
      assert.deepEqual([told(fixture, first.items), first.items.length], [IN_ORDER.slice(0, 4), 4]);
      assert.deepEqual([told(fixture, second.items), second.next], [IN_ORDER.slice(4), null]);
    },
  },
  {
    title: 'a range includes the window that begins at its start, and not the one that begins at its end',
    run: async (fixture) => {
      const limiter = await spendForThreeHours(fixture);
      await fixture.catchUp();
      const startMs = fixture.clock.now() - 2 * HOUR_MS;
      const inRange = async (fromMs: number, toMs: number): Promise<string[]> => {
        const range = { from: new Date(startMs + fromMs), to: new Date(startMs + toMs) };
        const query = { resource: USER.resource, window: 'hourly', ...range, limit: 2 } as const;
        return told(fixture, await collect(limiter.usage.query(query)));
      };
      assert.deepEqual(await inRange(0, HOUR_MS), IN_ORDER.slice(0, 3));
      assert.deepEqual(await inRange(1, HOUR_MS + 1), IN_ORDER.slice(3, 5));
      assert.deepEqual(await inRange(HOUR_MS, 2 * HOUR_MS), IN_ORDER.slice(3, 5));
      assert.deepEqual(await inRange(2 * HOUR_MS, 9 * HOUR_MS), IN_ORDER.slice(5));
      assert.deepEqual(await inRange(1, HOUR_MS), []);
      assert.deepEqual(await inRange(HOUR_MS, 0), []);
      const day = { resource: USER.resource, window: 'daily', from: new Date(startMs) } as const;
      assert.deepEqual(await collect(limiter.usage.query(day)), []);
    },
  },
  {
    title: 'a query and a summary include all windows, also more than fit into one page',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:999/min');
      for (let hour = 0; hour < 105; hour++) {
        await limiter.acquire(ask({ rpm: hour }));
        await fixture.clock.advance(HOUR_MS);
      }
      const found = await listUsage(fixture, limiter);
      assert.deepEqual(
        found.map(({ tokens }) => tokens['rpm'] ?? 0),
        times(105, (hour) => hour),
      );
      assert.equal((await limiter.usage.query({ ...USER, window: 'hourly' })).items.length, 100);
      const sum = (105 * 104) / 2;
      for (const [window, count] of [['hourly', 105] as const, ['daily', 5] as const, ['monthly', 1] as const]) {
        const summary = await limiter.usage.summary({ ...USER, window });
        assert.deepEqual([summary.total, summary.acquires, summary.count], [{ rpm: sum }, 105, count]);
      }
    },
  },
  {
    title: 'an hour without usage has no record',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min');
      const startMs = fixture.clock.now();
      for (const rpm of [1, 2]) {
        await limiter.acquire(ask({ rpm }));
        await fixture.clock.advance(5 * HOUR_MS);
      }
      assert.deepEqual(
        (await listUsage(fixture, limiter)).map(({ windowStart }) => windowStart.getTime() - startMs),
        [0, 5 * HOUR_MS],
      );
    },
  },
];

const summaries: readonly Case[] = [
  {
    title: 'a summary of a resource adds up all of its entities',
    run: async (fixture) => {
      const limiter = await spendForThreeHours(fixture);
      await fixture.catchUp();
      const { total, average, acquires, count } = await limiter.usage.summary({
        resource: USER.resource,
        window: 'hourly',
      });
      assert.deepEqual({ total, acquires, count }, { total: { rpm: 169 }, acquires: 8, count: 3 });
      assert.deepEqual(average, { rpm: 169 / 3 });
    },
  },
  {
    title: 'a summary shows the requested range, or else the start of its first window and the end of its last window',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min');
      const startMs = fixture.clock.now();
      for (const rpm of [4, 5]) {
        await fixture.clock.advance(1_234);
        await limiter.acquire(ask({ rpm }));
        await fixture.clock.advance(2 * HOUR_MS);
      }
      await fixture.catchUp();
      const whole = await limiter.usage.summary({ ...USER, window: 'hourly' });
      assert.deepEqual([whole.from, whole.to], [new Date(startMs), new Date(startMs + 3 * HOUR_MS)]);
      const range = { from: new Date(startMs + 7), to: new Date(startMs + 9 * DAY_MS) };
      const part = await limiter.usage.summary({ ...USER, window: 'hourly', ...range });
      assert.deepEqual([part.total, part.from, part.to], [{ rpm: 5 }, range.from, range.to]);
      const none = await limiter.usage.summary({ ...USER, entityId: 'missing', window: 'hourly' });
      const empty = { total: {}, average: {}, acquires: 0, expired: 0, count: 0, from: null, to: null };
      assert.deepEqual(none, empty);
    },
  },
  {
    title: 'an average is over all windows that have a record, whichever limits they used',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min', 'tpm:999/min');
      await limiter.acquire(ask({ rpm: 1, tpm: 100 }));
      await fixture.clock.advance(HOUR_MS);
      await limiter.acquire(ask({ rpm: 2 }));
      await fixture.clock.advance(3 * HOUR_MS);
      await limiter.acquire(ask({ rpm: 3 }));
      await fixture.catchUp();
      const { average, count } = await limiter.usage.summary({ ...USER, window: 'hourly' });
      assert.deepEqual([average, count], [{ rpm: 2, tpm: 100 / 3 }, 3]);
    },
  },
  {
    title: 'a query and a summary require a window, a resource, and dates as range limits',
    run: async (fixture) => {
      const { usage } = await fixture.limiter();
      const bad: object[] = [
        USER,
        { ...USER, window: 'weekly' },
        { entityId: 'user-1', window: 'daily' },
        { resource: 'a#b', window: 'daily' },
        { ...USER, entityId: '', window: 'daily' },
        { ...USER, window: 'daily', from: 1 },
        { ...USER, window: 'daily', to: new Date(Number.NaN) },
      ];
      for (const query of bad) {
        await assertRejects(usage.query(query as never), 'input.invalid');
        await assertRejects(usage.summary(query as never), 'input.invalid');
      }
    },
  },
];

export const usageQueries: readonly Case[] = [...turns, ...lists, ...summaries];
