import assert from 'node:assert/strict';
import { ask, assertExactWait, denial, refusers, times, USER } from '../kit/asking.js';
import type { Case } from '../kit/fixture.js';

export const slots: readonly Case[] = [
  {
    title: 'all slots of a limit are granted, and the next ask when one is given back',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:2/concurrent');
      const [first] = [await limiter.acquire(ask({ slots: 1 })), await limiter.acquire(ask({ slots: 1 }))];
      assert.deepEqual(refusers(await denial(limiter, ask({ slots: 1 }))), ['user-1 slots']);
      await first.commit();
      await limiter.acquire(ask({ slots: 1 }));
      await denial(limiter, ask({ slots: 1 }));
    },
  },
  {
    title: 'slots do not refill over time while they are held',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:1/concurrent');
      const lease = await limiter.acquire(ask({ slots: 1 }));
      for (let minute = 0; minute < 10; minute++) {
        await fixture.clock.advance(59_999);
        await lease.extend();
      }
      assert.equal((await denial(limiter, ask({ slots: 1 }))).retryAfterMs, 60_000);
    },
  },
  {
    title: 'a holder of several slots gives all of them back',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:5/concurrent');
      const lease = await limiter.acquire(ask({ slots: 3 }));
      assert.deepEqual([lease.consumed, await limiter.available(USER)], [{ slots: 3 }, { slots: 2 }]);
      await denial(limiter, ask({ slots: 3 }));
      await lease.release();
      await limiter.acquire(ask({ slots: 5 }));
    },
  },
  {
    title: 'a holder of two kinds of slots gives both back',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:5/concurrent', 'gpus:2/concurrent');
      const lease = await limiter.acquire(ask({ slots: 1, gpus: 2 }));
      assert.deepEqual(refusers(await denial(limiter, ask({ slots: 1, gpus: 1 }))), ['user-1 gpus']);
      await lease.commit();
      assert.deepEqual(await limiter.available(USER), { slots: 5, gpus: 2 });
    },
  },
  {
    title: 'a denial announces when enough holders will have expired',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:4/concurrent');
      for (const leaseTtlMs of [40_000, 10_000, 30_000, 20_000])
        await limiter.acquire(ask({ slots: 1 }, { leaseTtlMs }));
      assert.equal((await denial(limiter, ask({ slots: 1 }))).retryAfterMs, 10_000);
      assert.equal((await denial(limiter, ask({ slots: 4 }))).retryAfterMs, 40_000);
      await assertExactWait(fixture, limiter, ask({ slots: 3 }), 30_000);
    },
  },
  {
    title: 'an ask that a rate refuses takes no slot',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:1/min', 'slots:2/concurrent');
      await limiter.acquire(ask({ rpm: 1 }));
      assert.deepEqual(refusers(await denial(limiter, ask({ rpm: 1, slots: 1 }))), ['user-1 rpm']);
      assert.deepEqual((await limiter.leases.list(USER)).items, []);
      assert.deepEqual(await limiter.available(USER), { rpm: 0, slots: 2 });
    },
  },
  {
    title: 'an ask that a concurrent limit refuses takes no tokens',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:9/min', 'slots:1/concurrent');
      await limiter.acquire(ask({ slots: 1 }));
      assert.deepEqual(refusers(await denial(limiter, ask({ rpm: 1, slots: 1 }))), ['user-1 slots']);
      assert.deepEqual(await limiter.available(USER), { rpm: 9, slots: 0 });
    },
  },
  {
    title: 'an ask for 0 slots creates no holder',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:1/concurrent');
      const lease = await limiter.acquire(ask({ slots: 0 }));
      assert.deepEqual([lease.expiresAt, (await limiter.leases.list(USER)).items], [null, []]);
      await lease.commit();
      assert.deepEqual(await limiter.available(USER), { slots: 1 });
    },
  },
  {
    title: 'a list of leases shows each holder with its slots, its start and its expiry',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:9/min', 'slots:4/concurrent');
      const named = await fixture.limiter({ caller: 'worker-7', leaseTtlMs: 9_000 });
      await limiter.config.setSystem({ limits: [...(await limiter.config.resolve('x', 'y')).limits] });
      const first = await limiter.acquire(ask({ rpm: 1, slots: 1 }));
      await fixture.clock.advance(5);
      const second = await named.acquire(ask({ rpm: 1, slots: 2 }));
      const nowMs = fixture.clock.now();
      assert.deepEqual((await limiter.leases.list(USER)).items, [
        {
          ...USER,
          id: first.id,
          amounts: { slots: 1 },
          acquiredAt: new Date(nowMs - 5),
          expiresAt: new Date(nowMs - 5 + 60_000),
        },
        {
          ...USER,
          id: second.id,
          amounts: { slots: 2 },
          caller: 'worker-7',
          acquiredAt: new Date(nowMs),
          expiresAt: new Date(nowMs + 9_000),
        },
      ]);
    },
  },
  {
    title: 'a holder is no longer listed after its slots were given back by any method',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:4/concurrent');
      const [a, b, c, d] = await Promise.all(times(4, async () => limiter.acquire(ask({ slots: 1 }))));
      await Promise.all([a?.commit(), b?.rollback(), c?.release()]);
      assert.deepEqual(
        (await limiter.leases.list(USER)).items.map(({ id }) => id),
        [d?.id],
      );
    },
  },
  {
    title: 'leases are listed page by page, each once',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:9/concurrent');
      const taken: string[] = [];
      for (let count = 0; count < 5; count++) {
        taken.push((await limiter.acquire(ask({ slots: 1 }))).id);
        await fixture.clock.advance(1);
      }
      const listed: string[] = [];
      for await (const { id } of limiter.leases.list({ ...USER, limit: 2 })) listed.push(id);
      assert.deepEqual(listed, taken);
      const { items, next } = await limiter.leases.list({ ...USER, limit: 4 });
      assert.equal(items.length, 4);
      const rest = await limiter.leases.list({ ...USER, after: next ?? '' });
      assert.deepEqual([rest.items.map(({ id }) => id), rest.next], [taken.slice(4), null]);
    },
  },
];
