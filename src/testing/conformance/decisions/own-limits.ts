import assert from 'node:assert/strict';
import {
  ask,
  assertExactWait,
  assertRejects,
  COUNTS_ACQUIRES,
  denial,
  refusers,
  tokensOf,
  listUsage,
  USER,
} from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';

export const ownLimits: readonly Case[] = [
  {
    title: 'per-call limits have a separate bucket, and do not change the bucket of the stored limits',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.acquire(ask({ rpm: 8 }));
      await limiter.acquire(ask({ rpm: 5 }, { limits: limits('rpm:5/min') }));
      await denial(limiter, ask({ rpm: 1 }, { limits: limits('rpm:5/min') }));
      assert.deepEqual(await limiter.available(USER), { rpm: 2 });
      await limiter.acquire(ask({ rpm: 2 }));
    },
  },
  {
    title: 'the same per-call limits share a bucket, whatever their order and cost, and different ones do not',
    run: async (fixture) => {
      const [limiter, other] = [await fixture.limiter(), await fixture.limiter()];
      await limiter.acquire(ask({ a: 3 }, { limits: limits('a:5/min', 'b:7/min') }));
      await other.acquire(ask({ a: 2 }, { limits: limits('b:7/min@1', 'a:5/min') }));
      await denial(limiter, ask({ a: 1 }, { limits: limits('a:5/min', 'b:7/min') }));
      for (const rules of [
        ['a:5/min'],
        ['a:5/hour', 'b:7/min'],
        ['a:5/min:6', 'b:7/min'],
        ['a:5/concurrent', 'b:7/min'],
      ]) {
        await limiter.acquire(ask({ a: 5 }, { limits: limits(...rules) }));
      }
    },
  },
  {
    title: 'per-call limits need no stored limits, and each entity and resource has its own bucket of them',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const own = limits('rpm:1/min');
      await limiter.acquire(ask({ rpm: 1 }, { limits: own }));
      await limiter.acquire(ask({ rpm: 1 }, { limits: own, entityId: 'user-2' }));
      await limiter.acquire(ask({ rpm: 1 }, { limits: own, resource: 'gpt-5' }));
      await assertRejects(limiter.acquire(ask({ rpm: 1 })), 'limits.missing');
      await assertRejects(limiter.acquire(ask({ tpm: 1 }, { limits: own })), 'input.invalid');
    },
  },
  {
    title: 'waiting, settling and holding work with per-call limits as with stored limits',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const own = limits('rpm:60/min', 'slots:1/concurrent');
      const lease = await limiter.acquire(ask({ rpm: 1, slots: 1 }, { limits: own }));
      await lease.settle({ rpm: 90 });
      assert.deepEqual(refusers(await denial(limiter, ask({ rpm: 1, slots: 1 }, { limits: own }))), [
        'user-1 rpm',
        'user-1 slots',
      ]);
      assert.equal(await limiter.timeUntilAvailable(ask({ slots: 1 }, { limits: own })), 60_000);
      await lease.commit();
      await assertExactWait(fixture, limiter, ask({ rpm: 1, slots: 1 }, { limits: own }), 31_000);
    },
  },
  {
    title: 'per-call limits replace the limits of the entity, and its parents keep theirs',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await limiter.acquire(ask({ rpm: 9 }, { limits: limits('rpm:50/min') }));
      assert.deepEqual(await limiter.available({ ...USER, entityId: 'team' }), { rpm: 1 });
      const denied = await denial(limiter, ask({ rpm: 2 }, { limits: limits('rpm:50/min') }));
      assert.deepEqual(refusers(denied), ['team rpm']);
    },
  },
  {
    title: 'a change of the stored limits does not change buckets of per-call limits',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.acquire(ask({ rpm: 2 }, { limits: limits('rpm:5/min') }));
      await limiter.config.setEntity(USER.entityId, USER.resource, { limits: limits('rpm:1/min') });
      await limiter.acquire(ask({ rpm: 3 }, { limits: limits('rpm:5/min') }));
      await denial(limiter, ask({ rpm: 1 }, { limits: limits('rpm:5/min') }));
    },
  },
  {
    title: 'usage with per-call limits is recorded under the plain name of the resource',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.acquire(ask({ rpm: 2 }));
      await limiter.acquire(ask({ rpm: 3, tpm: 5 }, { limits: limits('rpm:5/min', 'tpm:9/min') }));
      const [usage, ...others] = await listUsage(fixture, limiter);
      assert.deepEqual(
        [usage?.resource, usage?.tokens, usage?.acquires, others],
        [USER.resource, { rpm: 5, tpm: 5 }, 2, []],
      );
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter, { window: 'daily' })), [{ rpm: 5, tpm: 5 }]);
    },
  },
];
