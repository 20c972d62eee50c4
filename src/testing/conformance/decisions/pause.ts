import assert from 'node:assert/strict';
import { ask, assertExactWait, assertRejects, denial, times, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { ALL, family, pausedDenial, REASON, twoWarm } from '../kit/pausing.js';

const buckets: readonly Case[] = [
  {
    title: 'a paused bucket denies with the exact wait, the end and the reason, and then grants again',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.pause({ ...USER, forMs: 20_000, reason: REASON });
      const untilMs = fixture.clock.now() + 20_000;
      const { paused, retryAfterMs } = await pausedDenial(limiter, ask({ rpm: 1 }));
      assert.deepEqual([paused, retryAfterMs], [{ ...USER, until: new Date(untilMs), reason: REASON }, 20_000]);
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 20_000);
      assert.deepEqual(await limiter.available(USER), { rpm: 9 });
    },
  },
  {
    title: 'a pause of a bucket stops the next ask of another process, whatever it has cached',
    run: async (fixture) => {
      const [one, other] = await twoWarm(fixture, 'rpm:10/min');
      await one.pause({ ...USER, forMs: 20_000, reason: REASON });
      await assertRejects(other.acquire(ask({ rpm: 1 })), 'limit.exceeded');
      assert.equal((await pausedDenial(other, ask({ rpm: 1 }))).retryAfterMs, 20_000);
      assert.deepEqual((await pausedDenial(other, ask({ rpm: 1 }))).paused?.reason, REASON);
    },
  },
  {
    title: 'a resume of a bucket reaches another process within denyCacheMs',
    run: async (fixture) => {
      const [one, other] = await twoWarm(fixture, 'rpm:10/min');
      await one.pause({ ...USER, untilMs: 'forever', reason: REASON });
      await pausedDenial(other, ask({ rpm: 1 }));
      assert.equal(await one.resume(USER), true);
      await fixture.clock.advance(1_000);
      await other.acquire(ask({ rpm: 1 }));
      await one.acquire(ask({ rpm: 1 }));
    },
  },
  {
    title: 'a resume reaches the process that made it at once',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      for (const target of [USER, ALL]) {
        await limiter.pause({ ...target, forMs: 'forever', reason: REASON });
        await pausedDenial(limiter, ask({ rpm: 1 }));
        assert.equal(await limiter.resume(target), true);
        await limiter.acquire(ask({ rpm: 1 }));
      }
    },
  },
  {
    title: 'a pause of a bucket that does not exist applies to the first ask of every process',
    run: async (fixture) => {
      const admin = await fixture.limiter();
      await admin.pause({ ...USER, forMs: 60_000, reason: REASON });
      const limiter = await fixture.limited('rpm:10/min');
      await pausedDenial(limiter, ask({ rpm: 1 }));
      await fixture.clock.advance(60_000);
      await limiter.acquire(ask({ rpm: 10 }));
      assert.equal((await denial(limiter, ask({ rpm: 1 }))).reason, 'exhausted');
    },
  },
  {
    title: 'a pause of a bucket stops no other resource and no other entity',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.pause({ ...USER, forMs: 20_000, reason: REASON });
      await limiter.acquire(ask({ rpm: 1 }, { resource: 'other' }));
      await limiter.acquire(ask({ rpm: 1 }, { entityId: 'user-2' }));
    },
  },
  {
    title: 'a pause of a bucket stops asks with per-call limits on the resource',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      const own = ask({ rpm: 1 }, { limits: limits('rpm:5/min') });
      await limiter.acquire(own);
      await limiter.pause({ ...USER, forMs: 20_000, reason: REASON });
      assert.equal((await pausedDenial(limiter, own)).paused?.resource, USER.resource);
    },
  },
  {
    title: 'a bucket without any limits can be paused, and stops asks with per-call limits',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.pause({ ...USER, forMs: 20_000, reason: REASON });
      await pausedDenial(limiter, ask({ rpm: 1 }, { limits: limits('rpm:5/min') }));
      assert.deepEqual((await limiter.buckets.get(USER))?.limits, []);
    },
  },
  {
    title: 'a pause of a bucket stops asks of slots, of unlimited limits, of 0, and of all levels in one transaction',
    run: async (fixture) => {
      const rules = ['rpm:10/min', 'slots:2/concurrent', 'tpm:unlimited'];
      const [one, other] = await twoWarm(fixture, ...rules);
      await one.pause({ ...USER, forMs: 20_000, reason: REASON });
      for (const consume of [{ slots: 1 }, { tpm: 5 }, { rpm: 0 }, { rpm: 1, slots: 1, tpm: 1 }]) {
        await pausedDenial(other, ask(consume));
        await pausedDenial(other, ask(consume, { atomic: true }));
        await pausedDenial(other, ask(consume, { leaseTtlMs: 5_000 }));
      }
    },
  },
  {
    title: 'a paused bucket denies an ask that exceeds the capacity as paused too',
    run: async (fixture) => {
      const [one, other] = await twoWarm(fixture, 'rpm:10/min');
      await one.pause({ ...USER, forMs: 20_000, reason: REASON });
      for (const limiter of [one, other])
        assert.equal((await pausedDenial(limiter, ask({ rpm: 99 }))).retryAfterMs, 20_000);
    },
  },
  {
    title: 'leases of a paused bucket can be settled, adjusted, released, committed and rolled back',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/hour', 'slots:3/concurrent');
      const leases = await Promise.all(times(3, async () => limiter.acquire(ask({ rpm: 2, slots: 1 }))));
      const [settled, released, undone] = leases;
      await limiter.pause({ ...USER, forMs: 20_000, reason: REASON });
      await settled?.settle({ rpm: 5 });
      await settled?.adjust({ rpm: -1 });
      await settled?.commit();
      await released?.extend(30_000);
      await released?.release();
      await undone?.rollback();
      assert.deepEqual(await limiter.available(USER), { rpm: 4, slots: 3 });
      await pausedDenial(limiter, ask({ rpm: 1 }));
    },
  },
  {
    title: 'a paused bucket refills, and a lease that expires during the pause gives its slots back',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min', 'slots:1/concurrent');
      await limiter.acquire(ask({ rpm: 60, slots: 1 }, { leaseTtlMs: 5_000 }));
      await limiter.pause({ ...USER, forMs: 10_000, reason: REASON });
      await fixture.clock.advance(10_000);
      await limiter.acquire(ask({ rpm: 10, slots: 1 }));
      assert.deepEqual(await limiter.available(USER), { rpm: 0, slots: 0 });
    },
  },
  {
    title: 'a change of limits reaches a paused bucket and leaves it paused',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/hour');
      await limiter.acquire(ask({ rpm: 4 }));
      await limiter.pause({ ...USER, forMs: 20_000, reason: REASON });
      await fixture.clock.advance(1_000);
      await limiter.config.setResource(USER.resource, { limits: limits('rpm:5/hour', 'tpm:7/hour') });
      await pausedDenial(limiter, ask({ tpm: 1 }));
      await fixture.clock.advance(19_000);
      await limiter.acquire(ask({ rpm: 5, tpm: 7 }));
    },
  },
  {
    title: 'a reset of a paused bucket fills it and leaves it paused',
    run: async (fixture) => {
      const [one, other] = await twoWarm(fixture, 'rpm:10/hour');
      await one.pause({ ...USER, forMs: 20_000, reason: REASON });
      assert.equal(await one.buckets.reset(USER), true);
      for (const limiter of [one, other]) await pausedDenial(limiter, ask({ rpm: 1 }));
      await fixture.clock.advance(20_000);
      await other.acquire(ask({ rpm: 10 }));
    },
  },
];

const ends: readonly Case[] = [
  {
    title: 'of two pauses the later end applies, whichever was made first',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      for (const target of [USER, ALL]) {
        await limiter.pause({ ...target, forMs: 20_000, reason: 'long' });
        assert.equal((await limiter.pause({ ...target, forMs: 5_000, reason: 'short' })).reason, 'long');
        const { retryAfterMs, paused } = await pausedDenial(limiter, ask({ rpm: 1 }));
        assert.deepEqual([retryAfterMs, paused?.reason], [20_000, 'long']);
        assert.equal((await limiter.pause({ ...target, forMs: 30_000, reason: 'longer' })).reason, 'longer');
        assert.equal((await pausedDenial(limiter, ask({ rpm: 1 }))).retryAfterMs, 30_000);
        await limiter.resume(target);
      }
    },
  },
  {
    title: 'of a pause of the bucket and one of the entity the later end denies, and both must be resumed',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.pause({ ...USER, forMs: 20_000, reason: 'bucket' });
      await limiter.pause({ ...ALL, forMs: 30_000, reason: 'entity' });
      assert.equal((await pausedDenial(limiter, ask({ rpm: 1 }))).paused?.reason, 'entity');
      await limiter.resume(ALL);
      assert.equal((await pausedDenial(limiter, ask({ rpm: 1 }))).paused?.reason, 'bucket');
      await limiter.resume(USER);
      await limiter.acquire(ask({ rpm: 1 }));
    },
  },
  {
    title: 'a pause that has ended needs no resume, and a resume reports that there was none',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      for (const target of [USER, ALL]) {
        assert.equal(await limiter.resume(target), false);
        await limiter.pause({ ...target, untilMs: fixture.clock.now() + 1_000, reason: REASON });
        await fixture.clock.advance(1_000);
        await limiter.acquire(ask({ rpm: 1 }));
        assert.equal(await limiter.resume(target), false);
      }
    },
  },
  {
    title: 'a pause forever has no wait and the code entity.paused, and one with an end has limit.exceeded',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.pause({ ...USER, forMs: 20_000, reason: REASON });
      await assertRejects(limiter.acquire(ask({ rpm: 1 })), 'limit.exceeded');
      await limiter.pause({ ...USER, untilMs: 'forever', reason: REASON });
      await assertRejects(limiter.acquire(ask({ rpm: 1 })), 'entity.paused');
      const { retryAfterMs, paused } = await pausedDenial(limiter, ask({ rpm: 1 }));
      assert.deepEqual([retryAfterMs, paused?.until], [null, null]);
      assert.equal(await limiter.timeUntilAvailable(ask({ rpm: 1 })), null);
      await fixture.clock.advance(400 * 86_400_000);
      await assertRejects(limiter.acquire(ask({ rpm: 1 })), 'entity.paused');
    },
  },
  {
    title: 'status and peek show the balances and the pause, of the bucket, of the entity or of its parent',
    run: async (fixture) => {
      const [one, other] = await twoWarm(fixture, 'rpm:10/min', 'jobs:5/hour');
      await family(one);
      const until = new Date(fixture.clock.now() + 20_000);
      for (const target of [USER, ALL, { ...USER, entityId: 'team' }, { entityId: 'team' }]) {
        await one.pause({ ...target, forMs: 20_000, reason: REASON });
        other.config.cache.clear();
        const paused = { resource: null, ...target, until, reason: REASON };
        for (const limiter of [one, other]) {
          for (const statuses of [await limiter.status(USER), await limiter.peek(ask({ rpm: 1 }))]) {
            assert.ok(statuses.length > 0 && statuses.every(({ available }) => available > 0));
            for (const status of statuses) assert.deepEqual(status.paused, paused);
          }
        }
        await one.resume(target);
        assert.ok((await one.status(USER)).every((status) => !('paused' in status)));
      }
      await one.pause({ ...USER, forMs: 20_000, reason: REASON });
      await fixture.clock.advance(20_000);
      assert.ok((await one.status(USER)).every((status) => !('paused' in status)));
    },
  },
  {
    title: 'timeUntilAvailable is the wait for the end of a pause that another process made',
    run: async (fixture) => {
      const [one, other] = await twoWarm(fixture, 'rpm:10/min');
      await one.pause({ ...USER, forMs: 20_000, reason: REASON });
      for (const limiter of [one, other]) assert.equal(await limiter.timeUntilAvailable(ask({ rpm: 1 })), 20_000);
      await one.resume(USER);
      for (const limiter of [one, other]) assert.equal(await limiter.timeUntilAvailable(ask({ rpm: 1 })), 0);
    },
  },
];

export const pause: readonly Case[] = [...buckets, ...ends];
