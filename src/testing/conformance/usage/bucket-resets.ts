import assert from 'node:assert/strict';
import { ask, assertExactWait, assertRejects, denial, tokensOf, listUsage, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { balancesOf } from './buckets.js';

const TEAM = { entityId: 'team', resource: USER.resource } as const;

export const bucketResets: readonly Case[] = [
  {
    title: 'a reset fills every limit, removes the holders, and keeps the counters',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day', 'tpd:100/day', 'slots:2/concurrent');
      await (await limiter.acquire(ask({ rpd: 8, tpd: 90 }))).settle({ tpd: 400 });
      await limiter.acquire(ask({ rpd: 2, slots: 2 }, { leaseTtlMs: 5_000 }));
      const before = await limiter.buckets.get(USER);
      assert.deepEqual([balancesOf(before), before?.holders], [['rpd 0 10', 'slots 0 2', 'tpd -300 400'], 1]);
      assert.equal(await limiter.buckets.reset(USER), true);
      assert.deepEqual(await limiter.available(USER), { rpd: 10, tpd: 100, slots: 2 });
      const after = (await limiter.buckets.get(USER)) ?? assert.fail('no bucket');
      const { holders, acquires, expired } = after;
      assert.deepEqual([holders, acquires, expired], [0, 2, 0]);
      assert.deepEqual(
        balancesOf(after).filter((told) => !told.startsWith('slots')),
        ['rpd 10 10', 'tpd 100 400'],
      );
      assert.deepEqual((await limiter.leases.list(USER)).items, []);
      await limiter.acquire(ask({ rpd: 10, tpd: 100, slots: 2 }));
    },
  },
  {
    title: 'a reset of a bucket that does not exist returns false, and creates none',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      await limiter.acquire(ask({ rpd: 4 }, { entityId: 'user-2' }));
      assert.equal(await limiter.buckets.reset(USER), false);
      assert.equal(await limiter.buckets.get(USER), null);
    },
  },
  {
    title: 'a bucket refills normally after a reset, up to its capacity',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      await fixture.clock.advance(10_500);
      await limiter.buckets.reset(USER);
      await limiter.acquire(ask({ rpm: 60 }));
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 1_000);
      await assertExactWait(fixture, limiter, ask({ rpm: 2 }), 2_000);
    },
  },
  {
    title: 'several resets in one instant fill a bucket once',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      await Promise.all([limiter.buckets.reset(USER), limiter.buckets.reset(USER)]);
      await limiter.buckets.reset(USER);
      await limiter.acquire(ask({ rpm: 60 }));
      await denial(limiter, ask({ rpm: 1 }));
    },
  },
  {
    title: 'a lease that was open at a reset gives no slots back with its release, commit or rollback',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day', 'slots:3/concurrent');
      const take = async (): ReturnType<typeof limiter.acquire> => limiter.acquire(ask({ rpd: 2, slots: 1 }));
      const [released, committed, undone] = [await take(), await take(), await take()];
      await limiter.buckets.reset(USER);
      await limiter.acquire(ask({ slots: 3 }));
      await released.release();
      await committed.commit();
      await undone.rollback();
      assert.deepEqual(await limiter.available(USER), { rpd: 10, slots: 0 });
    },
  },
  {
    title: 'a lease with a holder that was open at a reset settles by the difference, and cannot be extended',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day', 'slots:3/concurrent');
      const [more, less] = [
        await limiter.acquire(ask({ rpd: 2, slots: 1 })),
        await limiter.acquire(ask({ rpd: 5, slots: 1 })),
      ];
      await limiter.buckets.reset(USER);
      await more.settle({ rpd: 6 });
      assert.deepEqual(await limiter.available(USER), { rpd: 6, slots: 3 });
      await less.commit({ rpd: 4 });
      assert.deepEqual(await limiter.available(USER), { rpd: 7, slots: 3 });
      await assertRejects(more.extend(), 'lease.closed');
    },
  },
  {
    title: 'a lease without a holder that was open at a reset settles by the difference',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      const lease = await limiter.acquire(ask({ rpd: 2 }));
      await limiter.buckets.reset(USER);
      await lease.settle({ rpd: 13 });
      assert.deepEqual(await limiter.available(USER), { rpd: -1 });
    },
  },
  {
    title: 'a reset changes no other bucket: not of the parent, another resource, or per-call limits',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day', 'slots:3/concurrent');
      const own = limits('rpd:5/day');
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      const lease = await limiter.acquire(ask({ rpd: 3, slots: 1 }));
      await limiter.acquire(ask({ rpd: 4 }, { resource: 'gpt-4o' }));
      await limiter.acquire(ask({ rpd: 5 }, { limits: own }));
      await limiter.buckets.reset(USER);
      const [user] = await limiter.status(USER);
      assert.equal(user?.available, 10);
      assert.deepEqual(await limiter.available(TEAM), { rpd: 2, slots: 2 });
      assert.deepEqual(await limiter.available({ ...USER, resource: 'gpt-4o' }), { rpd: 6, slots: 3 });
      await denial(limiter, ask({ rpd: 1 }, { limits: own }));
      await lease.commit();
      assert.deepEqual(await limiter.available(TEAM), { rpd: 2, slots: 3 });
    },
  },
  {
    title: 'a reset does not change the usage, and later spending is added to it',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      await limiter.acquire(ask({ rpd: 9 }));
      await limiter.buckets.reset(USER);
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpd: 9 }]);
      await fixture.clock.advance(3_600_000);
      await limiter.buckets.reset(USER);
      await limiter.acquire(ask({ rpd: 5 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpd: 9 }, { rpd: 5 }]);
      assert.deepEqual(balancesOf(await limiter.buckets.get(USER)), ['rpd 5 14']);
    },
  },
  {
    title: 'a bucket with capacity 0 still denies after a reset',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setSystem({ limits: limits('rpd:10/day') });
      await limiter.acquire(ask({ rpd: 5 }));
      await fixture.clock.advance(1_000);
      await limiter.config.setEntity(USER.entityId, USER.resource, { limits: limits('rpd:0/day') });
      await denial(limiter, ask({ rpd: 1 }));
      await limiter.buckets.reset(USER);
      assert.equal((await denial(limiter, ask({ rpd: 1 }))).reason, 'impossible');
    },
  },
];
