import assert from 'node:assert/strict';
import { ask, assertExactWait, assertRejects, denial, USER } from '../kit/asking.js';
import { type Fixture, type Case, limits } from '../kit/fixture.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';

/** Ten tokens a day, so that none refills during a lease, and two slots. */
const RULES = ['rpd:10/day', 'slots:2/concurrent'];

/** A limiter whose expired leases give their tokens back. */
async function refunding(fixture: Fixture): Promise<RateLimiter> {
  return fixture.limiter({ limits: limits(...RULES), onExpiry: 'refund' });
}

const slots: readonly Case[] = [
  {
    title: 'slots return exactly when their holder expires, by default 60 s after the acquire',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:1/concurrent');
      await limiter.acquire(ask({ slots: 1 }));
      await assertExactWait(fixture, limiter, ask({ slots: 1 }), 60_000);
    },
  },
  {
    title: 'a lease has the lifetime of its acquire or its limiter, which is at least 5 s',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ limits: limits('slots:1/concurrent'), leaseTtlMs: 8_000 });
      await limiter.acquire(ask({ slots: 1 }));
      await assertExactWait(fixture, limiter, ask({ slots: 1 }, { leaseTtlMs: 5_000 }), 8_000);
      await assertExactWait(fixture, limiter, ask({ slots: 1 }), 5_000);
      await assertRejects(limiter.acquire(ask({ slots: 1 }, { leaseTtlMs: 4_999 })), 'input.invalid');
    },
  },
  {
    title: 'an expiry gives back only the slots of its own lease',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:6/concurrent');
      await limiter.acquire(ask({ slots: 3 }, { leaseTtlMs: 10_000 }));
      await limiter.acquire(ask({ slots: 2 }, { leaseTtlMs: 20_000 }));
      await fixture.clock.advance(10_000);
      await limiter.acquire(ask({ slots: 4 }));
      assert.equal((await denial(limiter, ask({ slots: 1 }))).retryAfterMs, 10_000);
    },
  },
  {
    title: 'slots that were reclaimed are not given back again when their lease ends late',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:1/concurrent');
      const late = await limiter.acquire(ask({ slots: 1 }));
      await fixture.clock.advance(60_000);
      await limiter.acquire(ask({ slots: 1 }));
      await late.release();
      await late.commit();
      assert.deepEqual(await limiter.available(USER), { slots: 0 });
      await denial(limiter, ask({ slots: 1 }));
    },
  },
  {
    title: 'an acquire that has enough slots does not reclaim expired holders',
    run: async (fixture) => {
      const limiter = await fixture.limited(...RULES);
      const lease = await limiter.acquire(ask({ slots: 1 }));
      await fixture.clock.advance(60_000);
      await limiter.acquire(ask({ rpd: 1 }));
      assert.deepEqual(
        (await limiter.leases.list(USER)).items.map(({ id }) => id),
        [lease.id],
      );
    },
  },
];

const extending: readonly Case[] = [
  {
    title: 'extend moves the expiry exactly',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:1/concurrent');
      const lease = await limiter.acquire(ask({ slots: 1 }));
      await fixture.clock.advance(50_000);
      await lease.extend();
      assert.deepEqual(lease.expiresAt, new Date(fixture.clock.now() + 60_000));
      await lease.extend(20_000);
      await assertExactWait(fixture, limiter, ask({ slots: 1 }), 20_000);
    },
  },
  {
    title: 'a late extend keeps the lease if its slot was not reclaimed yet',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:1/concurrent');
      const lease = await limiter.acquire(ask({ slots: 1 }));
      await fixture.clock.advance(60_001);
      assert.equal(lease.state, 'expired');
      await lease.extend();
      assert.equal(lease.state, 'open');
      assert.equal((await denial(limiter, ask({ slots: 1 }))).retryAfterMs, 60_000);
    },
  },
  {
    title: 'an extend after the slot was reclaimed throws, and aborts the signal',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:1/concurrent');
      const lease = await limiter.acquire(ask({ slots: 1 }));
      fixture.clock.set(fixture.clock.now() + 60_000);
      await limiter.acquire(ask({ slots: 1 }));
      const { signal } = lease;
      await assertRejects(lease.extend(), 'lease.closed');
      assert.deepEqual([signal.aborted, lease.state], [true, 'expired']);
      await denial(limiter, ask({ slots: 1 }));
    },
  },
  {
    title: 'the signal aborts at the expiry, unless the lease was extended or ended',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:4/concurrent');
      const [lost, extended, ended] = [
        await limiter.acquire(ask({ slots: 1 })),
        await limiter.acquire(ask({ slots: 1 })),
        await limiter.acquire(ask({ slots: 1 })),
      ];
      const signals = [lost.signal, extended.signal, ended.signal];
      await fixture.clock.advance(59_999);
      await Promise.all([extended.extend(), ended.commit()]);
      assert.deepEqual(
        signals.map(({ aborted }) => aborted),
        [false, false, false],
      );
      await fixture.clock.advance(1);
      assert.deepEqual(
        signals.map(({ aborted }) => aborted),
        [true, false, false],
      );
    },
  },
];

const keeping: readonly Case[] = [
  {
    title: 'by default the tokens of an expired lease stay taken',
    run: async (fixture) => {
      const limiter = await fixture.limited(...RULES);
      await limiter.acquire(ask({ rpd: 4, slots: 2 }));
      await fixture.clock.advance(60_000);
      assert.deepEqual(await limiter.available(USER), { rpd: 6, slots: 2 });
      await limiter.acquire(ask({ slots: 2 }));
      assert.deepEqual(await limiter.available(USER), { rpd: 6, slots: 0 });
    },
  },
  {
    title: 'a settlement after the holder was reclaimed corrects what stayed taken',
    run: async (fixture) => {
      const limiter = await fixture.limited(...RULES);
      const lease = await limiter.acquire(ask({ rpd: 4, slots: 2 }));
      await fixture.clock.advance(60_000);
      await limiter.acquire(ask({ slots: 2 }));
      await lease.settle({ rpd: 7 });
      assert.deepEqual([lease.state, await limiter.available(USER)], ['expired', { rpd: 3, slots: 0 }]);
      await lease.commit({ rpd: 5 });
      assert.deepEqual([lease.state, await limiter.available(USER)], ['committed', { rpd: 5, slots: 0 }]);
    },
  },
  {
    title: 'leaseTtlMs creates a holder also without slots',
    run: async (fixture) => {
      const limiter = await fixture.limited(...RULES);
      const lease = await limiter.acquire(ask({ rpd: 4 }, { leaseTtlMs: 5_000 }));
      const [listed] = (await limiter.leases.list(USER)).items;
      assert.deepEqual([listed?.id, listed?.expiresAt, listed?.amounts], [lease.id, lease.expiresAt, {}]);
      await lease.commit();
      assert.deepEqual((await limiter.leases.list(USER)).items, []);
    },
  },
];

const refunds: readonly Case[] = [
  {
    title: 'onExpiry refund gives the tokens back exactly at the expiry',
    run: async (fixture) => {
      const limiter = await refunding(fixture);
      await limiter.acquire(ask({ rpd: 10, slots: 1 }));
      await fixture.clock.advance(59_999);
      assert.deepEqual(await limiter.available(USER), { rpd: 0, slots: 1 });
      await denial(limiter, ask({ rpd: 10 }));
      await fixture.clock.advance(1);
      await limiter.acquire(ask({ rpd: 10 }));
    },
  },
  {
    title: 'onExpiry refund gives back what was settled last',
    run: async (fixture) => {
      const limiter = await refunding(fixture);
      const lease = await limiter.acquire(ask({ rpd: 4 }, { leaseTtlMs: 5_000 }));
      await lease.settle({ rpd: 9 });
      await lease.adjust({ rpd: -1 });
      assert.deepEqual((await limiter.leases.list(USER)).items[0]?.amounts, { rpd: 8 });
      await fixture.clock.advance(5_000);
      await limiter.acquire(ask({ rpd: 10 }));
    },
  },
  {
    title: 'onExpiry refund never lifts a balance above its capacity',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ limits: limits('rpm:60/min'), onExpiry: 'refund' });
      await limiter.acquire(ask({ rpm: 60 }, { leaseTtlMs: 30_000 }));
      await fixture.clock.advance(30_000);
      await limiter.acquire(ask({ rpm: 40 }));
      await assertExactWait(fixture, limiter, ask({ rpm: 21 }), 1_000);
    },
  },
  {
    title: 'onExpiry refund gives a limit that was added during the lease nothing back',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ limits: limits('rpd:10/day'), onExpiry: 'refund' });
      await limiter.entities.create({ id: 'proj-1' });
      await limiter.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
      await limiter.config.setEntity('proj-1', 'gpt-4', { limits: limits('rpd:10/day', 'tpd:10/day') });
      // Only the parent has `tpd`, so only the parent gets it back.
      await limiter.acquire(ask({ rpd: 1, tpd: 2 }, { leaseTtlMs: 5_000 }));
      await limiter.config.setEntity('user-1', 'gpt-4', { limits: limits('rpd:10/day', 'tpd:3/day') });
      await limiter.acquire(ask({ tpd: 3 }));
      await fixture.clock.advance(5_000);
      assert.deepEqual(await limiter.available({ ...USER, entityId: 'proj-1' }), { rpd: 10, tpd: 7 });
      assert.deepEqual(await limiter.available(USER), { rpd: 10, tpd: 0 });
    },
  },
  {
    title: 'onExpiry refund gives nothing back for a lease that ended in time',
    run: async (fixture) => {
      const limiter = await refunding(fixture);
      const [committed, released] = [
        await limiter.acquire(ask({ rpd: 3, slots: 1 })),
        await limiter.acquire(ask({ rpd: 2, slots: 1 })),
      ];
      await committed.commit();
      await released.release();
      await fixture.clock.advance(60_000);
      await denial(limiter, ask({ rpd: 6 }));
      assert.deepEqual(await limiter.available(USER), { rpd: 5, slots: 2 });
    },
  },
  ...((
    [
      ['settle', 7, 3],
      ['commit', 4, 6],
      ['adjust', 6, 4],
      ['release', 0, 10],
      ['rollback', 0, 10],
    ] as const
  ).map(([verb, charged, left]) => ({
    title: `${verb} after a refunded expiry was reclaimed charges ${charged === 0 ? 'nothing' : 'the whole amount again'}`,
    run: async (fixture) => {
      const limiter = await refunding(fixture);
      const lease = await limiter.acquire(ask({ rpd: 4, slots: 2 }));
      await fixture.clock.advance(60_000);
      await (await limiter.acquire(ask({ rpd: 1, slots: 2 }))).rollback();
      if (verb === 'settle') await lease.settle({ rpd: 7 });
      else if (verb === 'adjust') await lease.adjust({ rpd: 2 });
      else await lease[verb]();
      assert.deepEqual(await limiter.available(USER), { rpd: left, slots: 2 });
    },
  })) satisfies Case[]),
  {
    title: 'a settlement after a refunded expiry was reclaimed charges once and may cause debt',
    run: async (fixture) => {
      const limiter = await refunding(fixture);
      const lease = await limiter.acquire(ask({ rpd: 4, slots: 2 }));
      await fixture.clock.advance(60_000);
      await limiter.acquire(ask({ rpd: 10, slots: 2 }));
      await lease.settle({ rpd: 7 });
      await lease.settle({ rpd: 7 });
      assert.deepEqual([lease.state, await limiter.available(USER)], ['expired', { rpd: -7, slots: 0 }]);
      await lease.commit({ rpd: 3 });
      assert.deepEqual(await limiter.available(USER), { rpd: -3, slots: 0 });
    },
  },
  {
    title: 'a settlement after an expiry that was not reclaimed is an ordinary settlement',
    run: async (fixture) => {
      const limiter = await refunding(fixture);
      const lease = await limiter.acquire(ask({ rpd: 4, slots: 1 }));
      await fixture.clock.advance(60_000);
      await lease.commit({ rpd: 7 });
      assert.deepEqual(await limiter.available(USER), { rpd: 3, slots: 2 });
    },
  },
];

export const expiry: readonly Case[] = [...slots, ...extending, ...keeping, ...refunds];
