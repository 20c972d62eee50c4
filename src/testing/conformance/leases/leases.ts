import assert from 'node:assert/strict';
import { ask, assertExactWait, assertRejects, denial, times, USER } from '../kit/asking.js';
import type { Case } from '../kit/fixture.js';

const corrections: readonly Case[] = [
  {
    title: 'adjust adds to what was taken, and gives part of it back',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/min');
      const lease = await limiter.acquire(ask({ tpm: 10 }));
      await lease.adjust({ tpm: 25 });
      assert.deepEqual(await limiter.available(USER), { tpm: 65 });
      await lease.adjust({ tpm: -30 });
      assert.deepEqual([lease.consumed, await limiter.available(USER)], [{ tpm: 5 }, { tpm: 95 }]);
    },
  },
  {
    title: 'adjust gives back at most what was taken',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/min');
      const lease = await limiter.acquire(ask({ tpm: 10 }));
      await assertRejects(lease.adjust({ tpm: -11 }), 'input.invalid');
      assert.deepEqual([lease.consumed, await limiter.available(USER)], [{ tpm: 10 }, { tpm: 90 }]);
    },
  },
  {
    title: 'adjust and settle accept limits that the acquire did not name',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min', 'tpm:100/min', 'usd:50/min');
      const lease = await limiter.acquire(ask({ rpm: 1 }));
      await lease.adjust({ tpm: 40 });
      await lease.settle({ usd: 3 });
      assert.deepEqual(lease.consumed, { rpm: 1, tpm: 40, usd: 3 });
      assert.deepEqual(await limiter.available(USER), { rpm: 9, tpm: 60, usd: 47 });
    },
  },
  {
    title: 'settle states the total, can be repeated, and leaves the lease open',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/min');
      const lease = await limiter.acquire(ask({ tpm: 50 }));
      for (const tpm of [70, 70, 20, 0, 30]) {
        await lease.settle({ tpm });
        assert.deepEqual(await limiter.available(USER), { tpm: 100 - tpm });
      }
      assert.equal(lease.state, 'open');
    },
  },
  {
    title: 'concurrent corrections of one lease are made one after the other',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:1000/min');
      const lease = await limiter.acquire(ask({ tpm: 10 }));
      await Promise.all([lease.adjust({ tpm: 5 }), lease.settle({ tpm: 100 }), lease.adjust({ tpm: 7 })]);
      assert.deepEqual([lease.consumed, await limiter.available(USER)], [{ tpm: 107 }, { tpm: 893 }]);
    },
  },
  {
    title: 'corrections refuse slots, unknown limits and malformed amounts',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/min', 'slots:3/concurrent');
      const lease = await limiter.acquire(ask({ tpm: 10, slots: 1 }));
      await assertRejects(lease.adjust({ slots: 1 }), 'input.invalid');
      await assertRejects(lease.settle({ slots: 0 }), 'input.invalid');
      await assertRejects(lease.settle({ tmp: 1 }), 'input.invalid');
      await assertRejects(lease.settle({ tpm: -1 }), 'input.invalid');
      await assertRejects(lease.commit({ tpm: undefined as unknown as number }), 'input.invalid');
      assert.deepEqual(await limiter.available(USER), { tpm: 90, slots: 2 });
    },
  },
];

const debts: readonly Case[] = [
  {
    title: 'a settlement above the balance causes debt, which the refill pays back exactly on time',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:60/min');
      const lease = await limiter.acquire(ask({ tpm: 10 }));
      await lease.settle({ tpm: 150 });
      assert.deepEqual(await limiter.available(USER), { tpm: -90 });
      await assertExactWait(fixture, limiter, ask({ tpm: 0 }), 90_000);
      await assertExactWait(fixture, limiter, ask({ tpm: 1 }), 1_000);
    },
  },
  {
    title: 'debts of several leases add up, and a refund reduces them',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:60/min');
      const leases = await Promise.all(times(3, async () => limiter.acquire(ask({ tpm: 20 }))));
      await Promise.all(leases.map(async (lease) => lease.settle({ tpm: 100 })));
      assert.deepEqual(await limiter.available(USER), { tpm: -240 });
      await leases[0]?.rollback();
      assert.deepEqual(await limiter.available(USER), { tpm: -140 });
    },
  },
  {
    title: 'a debt beyond 2^53 thousandths of a token is exact',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:1000000000000/day');
      const lease = await limiter.acquire(ask({ tpm: 1 }));
      for (let count = 0; count < 12; count++) await lease.adjust({ tpm: 1e12 });
      assert.deepEqual(await limiter.available(USER), { tpm: -11e12 - 1 });
      assert.deepEqual(lease.consumed, { tpm: 12e12 + 1 });
      await lease.rollback();
      assert.deepEqual(await limiter.available(USER), { tpm: 1e12 });
    },
  },
  {
    title: 'a refund never lifts a balance above its capacity',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:60/min');
      const lease = await limiter.acquire(ask({ tpm: 50 }));
      await fixture.clock.advance(60_000);
      await lease.rollback();
      assert.deepEqual(await limiter.available(USER), { tpm: 60 });
      await limiter.acquire(ask({ tpm: 60 }));
      await assertExactWait(fixture, limiter, ask({ tpm: 1 }), 1_000);
    },
  },
  {
    title: 'a settlement after a long idle time is charged in full to a full bucket',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:60/min');
      const lease = await limiter.acquire(ask({ tpm: 10 }));
      await fixture.clock.advance(3_600_000);
      await lease.settle({ tpm: 50 });
      assert.deepEqual(await limiter.available(USER), { tpm: 20 });
    },
  },
];

const endings: readonly Case[] = [
  {
    title: 'commit keeps what rates took and gives the slots back',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/min', 'slots:2/concurrent');
      const lease = await limiter.acquire(ask({ tpm: 10, slots: 2 }));
      await lease.commit();
      assert.deepEqual([lease.state, await limiter.available(USER)], ['committed', { tpm: 90, slots: 2 }]);
    },
  },
  {
    title: 'commit settles the totals that it is given',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min', 'tpm:100/min', 'slots:2/concurrent');
      const lease = await limiter.acquire(ask({ rpm: 1, tpm: 10, slots: 1 }));
      await lease.commit({ tpm: 64 });
      assert.deepEqual(await limiter.available(USER), { rpm: 9, tpm: 36, slots: 2 });
      assert.deepEqual(lease.consumed, { rpm: 1, tpm: 64 });
    },
  },
  {
    title: 'rollback gives everything back, settled or not',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min', 'tpm:100/min', 'slots:2/concurrent');
      const lease = await limiter.acquire(ask({ rpm: 1, tpm: 10, slots: 2 }));
      await lease.settle({ tpm: 300 });
      await lease.rollback();
      assert.deepEqual(await limiter.available(USER), { rpm: 10, tpm: 100, slots: 2 });
      assert.equal(lease.state, 'rolled-back');
    },
  },
  ...((['commit', 'rollback', 'release'] as const).map((verb) => ({
    title: `${verb} counts once, however often it is called`,
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/day', 'slots:9/concurrent');
      const [lease] = [await limiter.acquire(ask({ tpm: 10, slots: 2 })), await limiter.acquire(ask({ slots: 3 }))];
      await Promise.all([lease[verb](), lease[verb]()]);
      await lease[verb]();
      assert.deepEqual(await limiter.available(USER), { tpm: verb === 'rollback' ? 100 : 90, slots: 6 });
    },
  })) satisfies Case[]),
  ...((['commit', 'rollback'] as const).map((verb) => ({
    title: `after ${verb} a lease refuses everything except ${verb} and release`,
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/min', 'slots:2/concurrent');
      const lease = await limiter.acquire(ask({ tpm: 10, slots: 1 }));
      await lease[verb]();
      const before = await limiter.status(USER);
      await assertRejects(verb === 'commit' ? lease.rollback() : lease.commit(), 'lease.closed');
      await assertRejects(lease.adjust({ tpm: 1 }), 'lease.closed');
      await assertRejects(lease.settle({ tpm: 1 }), 'lease.closed');
      await assertRejects(lease.extend(), 'lease.closed');
      await lease.release();
      assert.deepEqual(await limiter.status(USER), before);
    },
  })) satisfies Case[]),
  {
    title: 'release gives the slots back and leaves the lease open for settle and rollback',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/min', 'slots:2/concurrent');
      const lease = await limiter.acquire(ask({ tpm: 10, slots: 2 }));
      await lease.release();
      assert.deepEqual(await limiter.available(USER), { tpm: 90, slots: 2 });
      await lease.settle({ tpm: 40 });
      assert.deepEqual([lease.state, lease.consumed, lease.expiresAt], ['open', { tpm: 40 }, null]);
      await lease.rollback();
      assert.deepEqual(await limiter.available(USER), { tpm: 100, slots: 2 });
    },
  },
  {
    title: 'disposing of a lease commits it if it is open, and has no effect otherwise',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/min', 'slots:2/concurrent');
      const [open, ended] = [await limiter.acquire(ask({ tpm: 1, slots: 1 })), await limiter.acquire(ask({ tpm: 2 }))];
      await ended.rollback();
      await Promise.all([open[Symbol.asyncDispose](), ended[Symbol.asyncDispose]()]);
      assert.deepEqual([open.state, ended.state], ['committed', 'rolled-back']);
      assert.deepEqual(await limiter.available(USER), { tpm: 99, slots: 2 });
    },
  },
  {
    title: 'a lease without a holder has no expiry, and a lease with a holder has one from its start',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/min', 'slots:2/concurrent');
      const plain = await limiter.acquire(ask({ tpm: 1 }));
      const held = await limiter.acquire(ask({ slots: 1 }, { leaseTtlMs: 7_000 }));
      assert.deepEqual([plain.expiresAt, held.expiresAt], [null, new Date(fixture.clock.now() + 7_000)]);
      await plain.extend();
      assert.deepEqual([plain.entityId, plain.resource, plain.decidedBy], [USER.entityId, USER.resource, 'store']);
      assert.equal((await denial(limiter, ask({ slots: 2 }))).retryAfterMs, 7_000);
    },
  },
];

export const leases: readonly Case[] = [...corrections, ...debts, ...endings];
