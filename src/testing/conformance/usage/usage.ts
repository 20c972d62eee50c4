import assert from 'node:assert/strict';
import { ask, denial, times, tokensOf, listUsage, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const counts: readonly Case[] = [
  {
    title: 'usage is the granted amount less what was given back',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min', 'tpm:999/min');
      await limiter.acquire(ask({ rpm: 1, tpm: 10 }));
      await (await limiter.acquire(ask({ rpm: 1, tpm: 20 }))).settle({ tpm: 5 });
      await (await limiter.acquire(ask({ rpm: 1, tpm: 30 }))).adjust({ tpm: 100 });
      await (await limiter.acquire(ask({ rpm: 1, tpm: 40 }))).rollback();
      const [usage] = await listUsage(fixture, limiter);
      assert.deepEqual([usage?.tokens, usage?.acquires], [{ rpm: 3, tpm: 145 }, 4]);
    },
  },
  {
    title: 'the first acquire of a bucket counts as usage',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min');
      await limiter.acquire(ask({ rpm: 7 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpm: 7 }]);
      await limiter.acquire(ask({ rpm: 1 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpm: 8 }]);
    },
  },
  {
    title: 'slots do not count as usage, and an ask for 0 counts as an acquire',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min', 'slots:9/concurrent');
      await limiter.acquire(ask({ slots: 2 }));
      await limiter.acquire(ask({ rpm: 0 }));
      const [usage] = await listUsage(fixture, limiter);
      assert.deepEqual([tokensOf(usage === undefined ? [] : [usage]), usage?.acquires], [[{}], 2]);
      assert.ok(!Object.keys(usage?.tokens ?? {}).includes('slots'));
    },
  },
  {
    title: 'usage of several processes adds up, separately for each entity and resource',
    run: async (fixture) => {
      const limiters = await Promise.all(times(3, async () => fixture.limited('rpm:999/min')));
      await Promise.all(limiters.flatMap((limiter) => times(10, async () => limiter.acquire(ask({ rpm: 2 })))));
      const [limiter = assert.fail('no limiter')] = limiters;
      await limiter.acquire(ask({ rpm: 5 }, { entityId: 'user-2' }));
      await limiter.acquire(ask({ rpm: 6 }, { resource: 'gpt-5' }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpm: 60 }]);
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter, { entityId: 'user-2' })), [{ rpm: 5 }]);
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter, { resource: 'gpt-5' })), [{ rpm: 6 }]);
    },
  },
  {
    title: 'an expired lease is counted when it is reclaimed, and refunded tokens are not usage',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ limits: limits('rpd:10/day'), onExpiry: 'refund' });
      await limiter.acquire(ask({ rpd: 8 }, { leaseTtlMs: 5_000 }));
      await fixture.clock.advance(5_000);
      await limiter.acquire(ask({ rpd: 9 }));
      const [usage] = await listUsage(fixture, limiter);
      assert.deepEqual([usage?.tokens, usage?.acquires, usage?.expired], [{ rpd: 9 }, 2, 1]);
    },
  },
  {
    title: 'amounts beyond 2^53 thousandths of a token are counted exactly',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:1000000000000/min');
      const lease = await limiter.acquire(ask({ tpm: 1 }));
      for (let count = 0; count < 12; count++) await lease.adjust({ tpm: 1e12 });
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpm: 12e12 + 1 }]);
    },
  },
  {
    title: 'an entity that acquired nothing has no usage',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:1/min');
      await denial(limiter, ask({ rpm: 2 }));
      await limiter.status(USER);
      assert.deepEqual(await listUsage(fixture, limiter), []);
      const { total, acquires, count } = await limiter.usage.summary({ ...USER, window: 'daily' });
      assert.deepEqual({ total, acquires, count }, { total: {}, acquires: 0, count: 0 });
    },
  },
];

const windows: readonly Case[] = [
  {
    title: 'the last millisecond of an hour counts for that hour, and the next millisecond for the next hour',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min');
      const startMs = fixture.clock.now();
      await limiter.acquire(ask({ rpm: 1 }));
      await fixture.clock.advance(HOUR_MS - 1);
      await limiter.acquire(ask({ rpm: 2 }));
      await fixture.clock.advance(1);
      await limiter.acquire(ask({ rpm: 4 }));
      const found = await listUsage(fixture, limiter);
      assert.deepEqual(tokensOf(found), [{ rpm: 3 }, { rpm: 4 }]);
      assert.deepEqual(
        found.map(({ windowStart, windowEnd }) => [windowStart.getTime() - startMs, windowEnd.getTime() - startMs]),
        [
          [0, HOUR_MS],
          [HOUR_MS, 2 * HOUR_MS],
        ],
      );
    },
  },
  {
    title: 'days and months begin at midnight UTC, and hours, days and months are counted separately',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min');
      fixture.clock.set(Date.parse('2027-01-31T23:59:59.999Z'));
      await limiter.acquire(ask({ rpm: 1 }));
      await fixture.clock.advance(1);
      await limiter.acquire(ask({ rpm: 2 }));
      for (const window of ['hourly', 'daily', 'monthly'] as const) {
        const found = await listUsage(fixture, limiter, { window });
        assert.deepEqual(tokensOf(found), [{ rpm: 1 }, { rpm: 2 }]);
        assert.equal(found[1]?.windowStart.toISOString(), '2027-02-01T00:00:00.000Z');
      }
      const [, february] = await listUsage(fixture, limiter, { window: 'monthly' });
      assert.equal(february?.windowEnd.toISOString(), '2027-03-01T00:00:00.000Z');
    },
  },
  {
    title: 'a correction counts for the hour in which it is made',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:999/min');
      const lease = await limiter.acquire(ask({ tpm: 50 }));
      await fixture.clock.advance(HOUR_MS);
      await lease.settle({ tpm: 20 });
      const found = await listUsage(fixture, limiter);
      assert.deepEqual(tokensOf(found), [{ tpm: 50 }, { tpm: -30 }]);
      assert.deepEqual(
        found.map(({ acquires }) => acquires),
        [1, 0],
      );
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter, { window: 'daily' })), [{ tpm: 20 }]);
    },
  },
  {
    title: 'an expiry counts for the hour in which it is reclaimed',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ limits: limits('rpd:10/day'), onExpiry: 'refund' });
      await limiter.acquire(ask({ rpd: 8 }, { leaseTtlMs: 5_000 }));
      await fixture.clock.advance(HOUR_MS);
      await limiter.acquire(ask({ rpd: 9 }));
      const found = await listUsage(fixture, limiter);
      assert.deepEqual(tokensOf(found), [{ rpd: 8 }, { rpd: 1 }]);
      assert.deepEqual(
        found.map(({ expired }) => expired),
        [0, 1],
      );
    },
  },
  {
    title: 'a query returns the windows that begin in its range, page by page, each once',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min');
      const startMs = fixture.clock.now();
      for (let hour = 0; hour < 5; hour++) {
        await limiter.acquire(ask({ rpm: hour + 1 }));
        await fixture.clock.advance(HOUR_MS);
      }
      const range = { from: new Date(startMs + 1), to: new Date(startMs + 4 * HOUR_MS) };
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter, range)), [{ rpm: 2 }, { rpm: 3 }, { rpm: 4 }]);
      const { items, next } = await limiter.usage.query({ ...USER, window: 'hourly', limit: 3 });
      const rest = await limiter.usage.query({ ...USER, window: 'hourly', limit: 3, after: next ?? '' });
      assert.deepEqual(
        [...tokensOf(items), ...tokensOf(rest.items)],
        times(5, (hour) => ({ rpm: hour + 1 })),
      );
      assert.equal(rest.next, null);
    },
  },
  {
    title: 'a summary adds and averages the windows of one kind in its range',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:99/min', 'tpm:999/min');
      const from = new Date(fixture.clock.now());
      await limiter.acquire(ask({ rpm: 1, tpm: 100 }));
      await fixture.clock.advance(HOUR_MS);
      await limiter.acquire(ask({ rpm: 3 }));
      await fixture.clock.advance(2 * DAY_MS);
      await limiter.acquire(ask({ rpm: 5 }));
      await fixture.catchUp();
      const to = new Date(from.getTime() + DAY_MS);
      const common = { acquires: 2, expired: 0, from, to };
      assert.deepEqual(await limiter.usage.summary({ ...USER, window: 'hourly', from, to }), {
        ...common,
        total: { rpm: 4, tpm: 100 },
        average: { rpm: 2, tpm: 50 },
        count: 2,
      });
      const { total, count } = await limiter.usage.summary({ ...USER, window: 'daily' });
      assert.deepEqual({ total, count }, { total: { rpm: 9, tpm: 100 }, count: 2 });
    },
  },
];

export const usage: readonly Case[] = [...counts, ...windows];
