import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertExactWait, denial, listUsage, USER } from '../kit/asking.js';
import { type Bench, type Case, limits } from '../kit/bench.js';

/** Every reason for a denial, with a limiter that denies for it. */
const REFUSALS: readonly (readonly [why: string, prepare: (bench: Bench) => Promise<RateLimiter>])[] = [
  ['an exhausted rate', async (bench) => prepared(bench, { rpd: 9 })],
  ['an impossible ask', async (bench) => prepared(bench, {}, 'tpd:2/day')],
  ['slots that are all held', async (bench) => prepared(bench, { slots: 2 })],
  [
    'a debt',
    async (bench) => {
      const limiter = await prepared(bench, {});
      await (await limiter.acquire(ask({ tpd: 1 }))).settle({ tpd: 900 });
      return limiter;
    },
  ],
  [
    'a parent',
    async (bench) => {
      const limiter = await prepared(bench, {});
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await limiter.acquire(ask({ rpd: 9 }, { entityId: 'team' }));
      return limiter;
    },
  ],
];

async function prepared(bench: Bench, taken: Record<string, number>, tpd = 'tpd:100/day'): Promise<RateLimiter> {
  const limiter = await bench.limited('rpd:10/day', tpd, 'slots:2/concurrent');
  await limiter.acquire(ask({ rpd: 0, ...taken }));
  return limiter;
}

const denials: readonly Case[] = REFUSALS.map(([why, prepare]) => ({
  title: `a denial by ${why} changes nothing`,
  run: async (bench) => {
    const limiter = await prepare(bench);
    await bench.clock.advance(1_234);
    const [before, usage] = [await limiter.status(USER), await listUsage(bench, limiter)];
    for (let count = 0; count < 3; count++) await denial(limiter, ask({ rpd: 2, tpd: 3, slots: 1 }));
    assert.deepEqual([await limiter.status(USER), await listUsage(bench, limiter)], [before, usage]);
  },
})) satisfies Case[];

const looking: readonly Case[] = [
  {
    title: 'the status of an unused bucket is full, and reading it does not start its refill',
    run: async (bench) => {
      const limiter = await bench.limited('rpm:60/min', 'slots:2/concurrent');
      const seen = (await limiter.status(USER)).map((status) => ({ ...status, limit: String(status.limit) }));
      const common = { ...USER, requested: 0, exceeded: false, retryAfterMs: 0 };
      assert.deepEqual(
        seen.toSorted((a, b) => b.available - a.available),
        [
          { ...common, limit: 'rpm:60/min', available: 60 },
          { ...common, limit: 'slots:2/concurrent', available: 2 },
        ],
      );
      await bench.clock.advance(500);
      await limiter.acquire(ask({ rpm: 60 }));
      await assertExactWait(bench, limiter, ask({ rpm: 1 }), 1_000);
    },
  },
  {
    title: 'a status shows balances in whole tokens, rounded down, also in debt',
    run: async (bench) => {
      const limiter = await bench.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      const seen: unknown[] = [];
      for (const ms of [999, 1]) {
        await bench.clock.advance(ms);
        seen.push((await limiter.available(USER))['rpm']);
      }
      await (await limiter.acquire(ask({ rpm: 0 }))).adjust({ rpm: 3 });
      for (const ms of [0, 1, 998, 1]) {
        await bench.clock.advance(ms);
        seen.push((await limiter.available(USER))['rpm']);
      }
      assert.deepEqual(seen, [0, 1, -2, -2, -2, -1]);
    },
  },
  {
    title: 'a status shows a debt as exceeded, with the wait until it is paid back',
    run: async (bench) => {
      const limiter = await bench.limited('rpm:60/min');
      await (await limiter.acquire(ask({ rpm: 60 }))).adjust({ rpm: 2 });
      const [status] = await limiter.status(USER);
      assert.deepEqual([status?.available, status?.exceeded, status?.retryAfterMs], [-2, true, 2_000]);
    },
  },
  {
    title: 'a status shows the result of a newer config without applying it to the bucket',
    run: async (bench) => {
      const [writer, old] = [await bench.limiter(), await bench.limiter()];
      await writer.config.setSystem({ limits: limits('rpd:10/day') });
      await old.acquire(ask({ rpd: 2 }));
      await bench.clock.advance(1_000);
      await writer.config.setSystem({ limits: limits('rpd:5/day', 'tpd:7/day') });
      assert.deepEqual(await writer.available(USER), { rpd: 5, tpd: 7 });
      assert.equal(await writer.timeUntilAvailable(ask({ tpd: 8 })), null);
      assert.deepEqual(await old.available(USER), { rpd: 8 });
      await old.acquire(ask({ rpd: 8 }));
    },
  },
  {
    title: 'a status shows the result of reclaiming expired holders without reclaiming them',
    run: async (bench) => {
      const limiter = await bench.limiter({ limits: limits('rpd:10/day', 'slots:2/concurrent'), onExpiry: 'refund' });
      const lease = await limiter.acquire(ask({ rpd: 10, slots: 2 }));
      await bench.clock.advance(60_000);
      assert.deepEqual(await limiter.available(USER), { rpd: 10, slots: 2 });
      assert.equal(await limiter.timeUntilAvailable(ask({ rpd: 10, slots: 2 })), 0);
      await lease.extend();
      assert.deepEqual(await limiter.available(USER), { rpd: 0, slots: 0 });
    },
  },
  {
    title: 'reading a status often changes nothing',
    run: async (bench) => {
      const limiter = await bench.limited('rpm:7/977ms');
      await limiter.acquire(ask({ rpm: 7 }));
      const { retryAfterMs } = await denial(limiter, ask({ rpm: 7 }));
      for (let ms = 0; ms < 100; ms++) {
        await bench.clock.advance(1);
        await limiter.status(USER);
        await limiter.timeUntilAvailable(ask({ rpm: 1 }));
      }
      await assertExactWait(bench, limiter, ask({ rpm: 7 }), (retryAfterMs ?? 0) - 100);
    },
  },
  {
    title: 'a status shows the limit that the bucket applies',
    run: async (bench) => {
      const limiter = await bench.limiter();
      const given = Limit.custom('jobs', { capacity: 50, refillAmount: 7, refillPeriodMs: 977 });
      await limiter.config.setResource(USER.resource, { limits: [given] });
      await limiter.acquire(ask({ jobs: 1 }));
      const [status] = await limiter.status(USER);
      assert.deepEqual([status?.limit, status?.limit.kind], [given, 'rate']);
    },
  },
];

export const status: readonly Case[] = [...denials, ...looking];
