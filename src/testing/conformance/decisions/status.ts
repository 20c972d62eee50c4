import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertExactWait, denial, listUsage, USER } from '../kit/asking.js';
import { type Fixture, type Case, limits } from '../kit/fixture.js';

/** Every reason for a denial, with a limiter that denies for it. */
const REFUSALS: readonly (readonly [why: string, prepare: (fixture: Fixture) => Promise<RateLimiter>])[] = [
  ['an exhausted rate', async (fixture) => prepared(fixture, { rpd: 9 })],
  ['an impossible ask', async (fixture) => prepared(fixture, {}, 'tpd:2/day')],
  ['slots that are all held', async (fixture) => prepared(fixture, { slots: 2 })],
  [
    'a debt',
    async (fixture) => {
      const limiter = await prepared(fixture, {});
      await (await limiter.acquire(ask({ tpd: 1 }))).settle({ tpd: 900 });
      return limiter;
    },
  ],
  [
    'a parent',
    async (fixture) => {
      const limiter = await prepared(fixture, {});
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await limiter.acquire(ask({ rpd: 9 }, { entityId: 'team' }));
      return limiter;
    },
  ],
];

async function prepared(fixture: Fixture, taken: Record<string, number>, tpd = 'tpd:100/day'): Promise<RateLimiter> {
  const limiter = await fixture.limited('rpd:10/day', tpd, 'slots:2/concurrent');
  await limiter.acquire(ask({ rpd: 0, ...taken }));
  return limiter;
}

const denials: readonly Case[] = REFUSALS.map(([why, prepare]) => ({
  title: `a denial by ${why} changes nothing`,
  run: async (fixture) => {
    const limiter = await prepare(fixture);
    await fixture.clock.advance(1_234);
    const [before, usage] = [await limiter.status(USER), await listUsage(fixture, limiter)];
    for (let count = 0; count < 3; count++) await denial(limiter, ask({ rpd: 2, tpd: 3, slots: 1 }));
    assert.deepEqual([await limiter.status(USER), await listUsage(fixture, limiter)], [before, usage]);
  },
})) satisfies Case[];

const looking: readonly Case[] = [
  {
    title: 'the status of an unused bucket is full, and reading it does not start its refill',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min', 'slots:2/concurrent');
      const seen = (await limiter.status(USER)).map((status) => ({ ...status, limit: String(status.limit) }));
      const common = { ...USER, requested: 0, exceeded: false, retryAfterMs: 0 };
      assert.deepEqual(
        seen.toSorted((a, b) => b.available - a.available),
        [
          { ...common, limit: 'rpm:60/min', available: 60 },
          { ...common, limit: 'slots:2/concurrent', available: 2 },
        ],
      );
      await fixture.clock.advance(500);
      await limiter.acquire(ask({ rpm: 60 }));
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 1_000);
    },
  },
  {
    title: 'a status shows balances in whole tokens, rounded down, also in debt',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      const seen: unknown[] = [];
      for (const ms of [999, 1]) {
        await fixture.clock.advance(ms);
        seen.push((await limiter.available(USER))['rpm']);
      }
      await (await limiter.acquire(ask({ rpm: 0 }))).adjust({ rpm: 3 });
      for (const ms of [0, 1, 998, 1]) {
        await fixture.clock.advance(ms);
        seen.push((await limiter.available(USER))['rpm']);
      }
      assert.deepEqual(seen, [0, 1, -2, -2, -2, -1]);
    },
  },
  {
    title: 'a status shows a debt as exceeded, with the wait until it is paid back',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await (await limiter.acquire(ask({ rpm: 60 }))).adjust({ rpm: 2 });
      const [status] = await limiter.status(USER);
      assert.deepEqual([status?.available, status?.exceeded, status?.retryAfterMs], [-2, true, 2_000]);
    },
  },
  {
    title: 'a status shows the result of a newer config without applying it to the bucket',
    run: async (fixture) => {
      const [writer, old] = [await fixture.limiter(), await fixture.limiter()];
      await writer.config.setSystem({ limits: limits('rpd:10/day') });
      await old.acquire(ask({ rpd: 2 }));
      await fixture.clock.advance(1_000);
      await writer.config.setSystem({ limits: limits('rpd:5/day', 'tpd:7/day') });
      assert.deepEqual(await writer.available(USER), { rpd: 5, tpd: 7 });
      assert.equal(await writer.timeUntilAvailable(ask({ tpd: 8 })), null);
      assert.deepEqual(await old.available(USER), { rpd: 8 });
      await old.acquire(ask({ rpd: 8 }));
    },
  },
  {
    title: 'a status shows the result of reclaiming expired holders without reclaiming them',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ limits: limits('rpd:10/day', 'slots:2/concurrent'), onExpiry: 'refund' });
      const lease = await limiter.acquire(ask({ rpd: 10, slots: 2 }));
      await fixture.clock.advance(60_000);
      assert.deepEqual(await limiter.available(USER), { rpd: 10, slots: 2 });
      assert.equal(await limiter.timeUntilAvailable(ask({ rpd: 10, slots: 2 })), 0);
      await lease.extend();
      assert.deepEqual(await limiter.available(USER), { rpd: 0, slots: 0 });
    },
  },
  {
    title: 'reading a status often changes nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:7/977ms');
      await limiter.acquire(ask({ rpm: 7 }));
      const { retryAfterMs } = await denial(limiter, ask({ rpm: 7 }));
      for (let ms = 0; ms < 100; ms++) {
        await fixture.clock.advance(1);
        await limiter.status(USER);
        await limiter.timeUntilAvailable(ask({ rpm: 1 }));
      }
      await assertExactWait(fixture, limiter, ask({ rpm: 7 }), (retryAfterMs ?? 0) - 100);
    },
  },
  {
    title: 'a status shows the limit that the bucket applies',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const given = Limit.custom('jobs', { capacity: 50, refillAmount: 7, refillPeriodMs: 977 });
      await limiter.config.setResource(USER.resource, { limits: [given] });
      await limiter.acquire(ask({ jobs: 1 }));
      const [status] = await limiter.status(USER);
      assert.deepEqual([status?.limit, status?.limit.kind], [given, 'rate']);
    },
  },
];

export const status: readonly Case[] = [...denials, ...looking];
