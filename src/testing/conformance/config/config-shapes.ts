import assert from 'node:assert/strict';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertExactWait, denial, refusers, tokensOf, listUsage, USER } from '../kit/asking.js';
import { type Fixture, type Case, limits } from '../kit/fixture.js';

/** A limiter that has set these limits for the system. */
async function limiterUnder(fixture: Fixture, ...rules: string[]): Promise<RateLimiter> {
  const limiter = await fixture.limiter();
  await limiter.config.setSystem({ limits: limits(...rules) });
  return limiter;
}

/** Sets other limits one second later, and asks the bucket so that they are applied to it. */
async function change(fixture: Fixture, limiter: RateLimiter, ...rules: string[]): Promise<void> {
  await fixture.clock.advance(1_000);
  await limiter.config.setSystem({ limits: limits(...rules) });
  await limiter.tryAcquire(ask({ [limits(...rules)[0]?.name ?? '']: 0 }));
}

const addedAndRemoved: readonly Case[] = [
  {
    title: 'a limit that is added starts full and does not change the others',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'rpd:10/day');
      await limiter.acquire(ask({ rpd: 4 }));
      await change(fixture, limiter, 'rpd:10/day', 'tpd:100/day', 'slots:3/concurrent');
      assert.deepEqual(await limiter.available(USER), { rpd: 6, tpd: 100, slots: 3 });
      await limiter.acquire(ask({ rpd: 1, tpd: 99, slots: 3 }));
      assert.deepEqual(refusers(await denial(limiter, ask({ rpd: 1, tpd: 2, slots: 1 }))), [
        'user-1 slots',
        'user-1 tpd',
      ]);
    },
  },
  {
    title: 'a process can ask for a limit that another process added and that is not in its cache',
    run: async (fixture) => {
      const [writer, old] = [await limiterUnder(fixture, 'rpd:10/day'), await fixture.limiter()];
      await old.acquire(ask({ rpd: 4 }));
      await change(fixture, writer, 'rpd:10/day', 'tpd:100/day');
      await old.acquire(ask({ rpd: 1 }));
      await old.acquire(ask({ rpd: 1, tpd: 30 }));
      assert.deepEqual(await writer.available(USER), { rpd: 4, tpd: 70 });
    },
  },
  {
    title: 'a limit that is removed no longer applies, also for a process that has it cached',
    run: async (fixture) => {
      const [writer, old] = [await limiterUnder(fixture, 'rpd:10/day', 'tpd:1/day'), await fixture.limiter()];
      await old.acquire(ask({ rpd: 1, tpd: 1 }));
      await change(fixture, writer, 'rpd:10/day');
      const lease = await old.acquire(ask({ rpd: 1, tpd: 1 }));
      assert.deepEqual(lease.consumed, { rpd: 1 });
      await lease.rollback();
      assert.deepEqual(await writer.available(USER), { rpd: 9 });
    },
  },
  {
    title: 'a lease settles its other limits after one was removed',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'rpd:10/day', 'tpd:100/day');
      const lease = await limiter.acquire(ask({ rpd: 1, tpd: 10 }));
      await change(fixture, limiter, 'rpd:10/day');
      await lease.settle({ rpd: 3, tpd: 50 });
      assert.deepEqual(await limiter.available(USER), { rpd: 7 });
    },
  },
  {
    title: 'an expiry gives no tokens back to a limit that did not exist when the lease was granted',
    run: async (fixture) => {
      const writer = await limiterUnder(fixture, 'rpd:10/day', 'tpd:100/day');
      const old = await fixture.limiter({ onExpiry: 'refund' });
      await old.acquire(ask({ rpd: 1 }));
      await change(fixture, writer, 'rpd:10/day');
      await old.acquire(ask({ rpd: 1, tpd: 50 }, { leaseTtlMs: 5_000 }));
      await change(fixture, writer, 'rpd:10/day', 'tpd:100/day');
      await writer.acquire(ask({ tpd: 80 }));
      await fixture.clock.advance(5_000);
      assert.deepEqual(await writer.available(USER), { rpd: 9, tpd: 20 });
    },
  },
  {
    title: 'a rate that is removed and added again starts full, and its usage counter continues',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'rpd:10/day', 'tpd:100/day');
      await limiter.acquire(ask({ tpd: 60 }));
      await change(fixture, limiter, 'rpd:10/day');
      for (let count = 0; count < 2; count++) {
        assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpd: 60 }]);
      }
      await change(fixture, limiter, 'rpd:10/day', 'tpd:100/day');
      assert.deepEqual(await limiter.available(USER), { rpd: 10, tpd: 100 });
      await limiter.acquire(ask({ tpd: 5 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpd: 65 }]);
    },
  },
  {
    title: 'slots stay held when their limit is removed and added again',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'rpd:10/day', 'slots:3/concurrent');
      const lease = await limiter.acquire(ask({ slots: 2 }));
      await change(fixture, limiter, 'rpd:10/day');
      await change(fixture, limiter, 'rpd:10/day', 'slots:5/concurrent');
      assert.deepEqual(await limiter.available(USER), { rpd: 10, slots: 3 });
      await lease.commit();
      assert.deepEqual(await limiter.available(USER), { rpd: 10, slots: 5 });
    },
  },
  {
    title: 'slots that were given back while their limit was removed are free when it returns',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'rpd:10/day', 'slots:3/concurrent');
      const lease = await limiter.acquire(ask({ slots: 2 }));
      await change(fixture, limiter, 'rpd:10/day');
      await lease.release();
      await change(fixture, limiter, 'rpd:10/day', 'slots:3/concurrent');
      assert.deepEqual(await limiter.available(USER), { rpd: 10, slots: 3 });
    },
  },
];

const resized: readonly Case[] = [
  {
    title: 'raising the limit of a bucket that was full for long adds no tokens, and neither does undoing a reduction',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'rpd:10/day');
      await limiter.acquire(ask({ rpd: 1 }));
      await fixture.clock.advance(10 * 86_400_000);
      await change(fixture, limiter, 'rpd:20/day');
      assert.deepEqual(await limiter.available(USER), { rpd: 10 });
      await change(fixture, limiter, 'rpd:5/day');
      await change(fixture, limiter, 'rpd:20/day');
      assert.deepEqual(await limiter.available(USER), { rpd: 5 });
    },
  },
  {
    title: 'raising a concurrent limit while slots are held adds the difference',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'slots:2/concurrent');
      const lease = await limiter.acquire(ask({ slots: 2 }));
      await change(fixture, limiter, 'slots:5/concurrent');
      assert.deepEqual(await limiter.available(USER), { slots: 3 });
      await lease.commit();
      assert.deepEqual(await limiter.available(USER), { slots: 5 });
    },
  },
  {
    title:
      'after a concurrent limit is lowered below what is held, slots are granted again once enough were given back',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'slots:3/concurrent');
      const held = [];
      for (const leaseTtlMs of [10_000, 20_000, 30_000])
        held.push(await limiter.acquire(ask({ slots: 1 }, { leaseTtlMs })));
      await change(fixture, limiter, 'slots:1/concurrent');
      assert.deepEqual(await limiter.available(USER), { slots: -2 });
      assert.equal((await denial(limiter, ask({ slots: 0 }))).retryAfterMs, 19_000);
      assert.equal((await denial(limiter, ask({ slots: 1 }))).retryAfterMs, 29_000);
      await Promise.all(held.slice(0, 2).map(async (lease) => lease.release()));
      await limiter.acquire(ask({ slots: 0 }));
      await assertExactWait(fixture, limiter, ask({ slots: 1 }), 29_000);
    },
  },
  {
    title: 'a debt stays after a change of limits',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'tpm:60/min');
      await (await limiter.acquire(ask({ tpm: 60 }))).settle({ tpm: 121 });
      await change(fixture, limiter, 'tpm:120/min');
      assert.deepEqual(await limiter.available(USER), { tpm: -60 });
      await assertExactWait(fixture, limiter, ask({ tpm: 0 }), 30_000);
    },
  },
  {
    title: 'a rate with capacity 0 starts empty and grants again after it is raised',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'rpm:0/min');
      await denial(limiter, ask({ rpm: 1 }));
      await limiter.acquire(ask({ rpm: 0 }));
      await change(fixture, limiter, 'rpm:60/min');
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 1_000);
    },
  },
];

const switched: readonly Case[] = [
  {
    title: 'a rate that becomes a concurrent limit starts with all slots free, which are held and given back',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'x:10/day');
      await limiter.acquire(ask({ x: 7 }));
      await change(fixture, limiter, 'x:3/concurrent');
      const lease = await limiter.acquire(ask({ x: 3 }));
      assert.equal((await denial(limiter, ask({ x: 1 }))).retryAfterMs, 60_000);
      await lease.commit();
      assert.deepEqual(await limiter.available(USER), { x: 3 });
    },
  },
  {
    title: 'a concurrent limit that becomes a rate starts full and refills',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'x:3/concurrent');
      await limiter.acquire(ask({ x: 2 }));
      await change(fixture, limiter, 'x:60/min');
      await limiter.acquire(ask({ x: 60 }));
      await assertExactWait(fixture, limiter, ask({ x: 1 }), 1_000);
    },
  },
  {
    title: 'slots that are given back after their limit became a rate add no tokens',
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'x:3/concurrent');
      const lease = await limiter.acquire(ask({ x: 2 }));
      await change(fixture, limiter, 'x:10/day');
      await limiter.acquire(ask({ x: 4 }));
      await lease.commit();
      assert.deepEqual(await limiter.available(USER), { x: 6 });
    },
  },
  ...((['rollback', 'adjust'] as const).map((verb) => ({
    title: `${verb} of a lease whose rate became a concurrent limit changes no slots`,
    run: async (fixture) => {
      const limiter = await limiterUnder(fixture, 'x:10/day');
      const lease = await limiter.acquire(ask({ x: 5 }));
      await change(fixture, limiter, 'x:3/concurrent');
      await (verb === 'rollback' ? lease.rollback() : lease.adjust({ x: 2 }));
      assert.deepEqual(await limiter.available(USER), { x: 3 });
    },
  })) satisfies Case[]),
  {
    title: 'slots that a process takes as rate tokens, because of its old cache, are not held for ever',
    run: async (fixture) => {
      const [writer, old] = [await limiterUnder(fixture, 'x:10/day'), await fixture.limiter()];
      await old.acquire(ask({ x: 1 }));
      await change(fixture, writer, 'x:3/concurrent');
      const decision = await old.tryAcquire(ask({ x: 1 }));
      if (decision.granted) await decision.lease.commit();
      await fixture.clock.advance(60_000);
      assert.deepEqual(await writer.available(USER), { x: 3 });
    },
  },
];

export const configShapes: readonly Case[] = [...addedAndRemoved, ...resized, ...switched];
