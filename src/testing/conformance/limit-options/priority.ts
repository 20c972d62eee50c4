import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { AcquireRequest, Amounts } from '../../../limiter/acquire/request.js';
import { ask, assertExactWait, assertRejects, COUNTS_ACQUIRES, denial, refusers, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';

/** An ask of class `batch`. */
function batch(consume: Amounts, more: Partial<AcquireRequest> = {}): AcquireRequest {
  return ask(consume, { ...more, priority: 'batch' });
}

/** Creates `team` with a child that spends from it too. */
async function createTeam(limiter: RateLimiter): Promise<void> {
  await limiter.entities.create({ id: 'team' });
  await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
}

const deciding: readonly Case[] = [
  {
    title: 'an ask of a priority class is granted down to its reserve and not below, and other asks down to 0',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!reserve.batch=0.3');
      await limiter.acquire(batch({ tpd: 69 }));
      assert.deepEqual(refusers(await denial(limiter, batch({ tpd: 2 }))), ['user-1 tpd']);
      await limiter.acquire(batch({ tpd: 1 }));
      await denial(limiter, batch({ tpd: 1 }));
      await limiter.acquire(ask({ tpd: 30 }));
      await denial(limiter, ask({ tpd: 1 }));
    },
  },
  {
    title: 'the wait of a priority class is exact and includes its reserve',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min!reserve.batch=0.5');
      await limiter.acquire(ask({ rpm: 60 }));
      await assertExactWait(fixture, limiter, batch({ rpm: 2 }), 32_000);
      await assertExactWait(fixture, limiter, ask({ rpm: 31 }), 1_000);
    },
  },
  {
    title: 'an ask that is larger than the capacity without its reserve is impossible, also on a full bucket',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!reserve.batch=0.3');
      const denied = await denial(limiter, batch({ tpd: 71 }));
      assert.deepEqual([denied.reason, denied.retryAfterMs], ['impossible', null]);
      await limiter.acquire(batch({ tpd: 70 }));
      assert.equal((await denial(limiter, batch({ tpd: 71 }))).reason, 'impossible');
      assert.equal((await denial(limiter, batch({ tpd: 70 }))).reason, 'exhausted');
    },
  },
  {
    title: 'a reserve of a part of a token is kept exactly',
    run: async (fixture) => {
      // 0.3 of 7 tokens is 2.1 tokens: after 4 tokens there are 3, and the next take would leave 2.
      const limiter = await fixture.limited('tpd:7/day!reserve.batch=0.3');
      await limiter.acquire(batch({ tpd: 4 }));
      await assertExactWait(fixture, limiter, batch({ tpd: 1 }));
      assert.deepEqual(await limiter.available(USER), { tpd: 2 });
    },
  },
  {
    title: 'an ask of 0 of a priority class is granted while its reserve is there',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:10/day!reserve.batch=0.5');
      await limiter.acquire(ask({ tpd: 5 }));
      await limiter.acquire(batch({ tpd: 0 }));
      await limiter.acquire(ask({ tpd: 1 }));
      await denial(limiter, batch({ tpd: 0 }));
      await limiter.acquire(ask({ tpd: 0 }));
    },
  },
  {
    title: 'each priority class has its own reserve',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!reserve.batch=0.5!reserve.web=0.1');
      const web = ask({ tpd: 40 }, { priority: 'web' });
      await limiter.acquire(batch({ tpd: 50 }));
      await denial(limiter, batch({ tpd: 1 }));
      await limiter.acquire(web);
      await denial(limiter, ask({ tpd: 1 }, { priority: 'web' }));
      await limiter.acquire(ask({ tpd: 10 }));
    },
  },
  {
    title: 'a priority class with a reserve of 0 is served like an ask without a class',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:10/day!reserve.web=0');
      await limiter.acquire(ask({ tpd: 10 }, { priority: 'web' }));
      await denial(limiter, ask({ tpd: 1 }, { priority: 'web' }));
    },
  },
  {
    title: 'a priority class with a reserve of 1 is never granted anything',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:10/day!reserve.batch=1');
      assert.equal((await denial(limiter, batch({ tpd: 1 }))).reason, 'impossible');
      await limiter.acquire(batch({ tpd: 0 }));
    },
  },
  {
    title: 'a priority class has a reserve only at the limits that name it',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day', 'tpd:100/day!reserve.batch=0.5');
      await limiter.acquire(batch({ rpd: 10, tpd: 50 }));
      assert.deepEqual(refusers(await denial(limiter, batch({ rpd: 1, tpd: 1 }))), ['user-1 rpd', 'user-1 tpd']);
      assert.deepEqual(await limiter.available(USER), { rpd: 0, tpd: 50 });
    },
  },
  {
    title: 'the reserve of slots is in whole slots, rounded up',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:5/concurrent!reserve.batch=0.3');
      const held = [await limiter.acquire(batch({ slots: 2 })), await limiter.acquire(batch({ slots: 1 }))];
      await denial(limiter, batch({ slots: 1 }));
      await limiter.acquire(ask({ slots: 2 }));
      await held[1]?.release();
      await denial(limiter, batch({ slots: 1 }));
      await limiter.acquire(ask({ slots: 1 }));
    },
  },
  {
    title: 'the wait of a priority class for slots is until enough leases have expired to leave its reserve',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:4/concurrent!reserve.batch=0.5');
      for (const leaseTtlMs of [10_000, 20_000, 30_000]) await limiter.acquire(ask({ slots: 1 }, { leaseTtlMs }));
      await assertExactWait(fixture, limiter, batch({ slots: 1 }), 20_000);
    },
  },
  {
    title: 'a class that no limit names is refused, also if another class is named',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!reserve.batch=0.5');
      await assertRejects(limiter.acquire(ask({ tpd: 1 }, { priority: 'bacth' })), 'input.invalid');
      await assertRejects(limiter.acquire(ask({ tpd: 1 }, { priority: 'constructor' })), 'input.invalid');
      await assertRejects(limiter.acquire(ask({ tpd: 1 }, { priority: '' })), 'input.invalid');
      assert.deepEqual(await limiter.available(USER), { tpd: 100 });
    },
  },
  {
    title: 'a class that only an unlimited limit names is known and reserves nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:5/day', 'tpd:unlimited!reserve.batch=0.5');
      await limiter.acquire(batch({ rpd: 5, tpd: 1_000 }));
      assert.deepEqual(refusers(await denial(limiter, batch({ rpd: 1, tpd: 1 }))), ['user-1 rpd']);
    },
  },
  {
    title: 'a refused ask of a priority class changes nothing, and its rollback gives everything back',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:9/day', 'tpd:100/day!reserve.batch=0.3');
      const lease = await limiter.acquire(batch({ rpd: 1, tpd: 70 }));
      await denial(limiter, batch({ rpd: 1, tpd: 1 }));
      assert.deepEqual(await limiter.available(USER), { rpd: 8, tpd: 30 });
      await lease.rollback();
      assert.deepEqual(await limiter.available(USER), { rpd: 9, tpd: 100 });
    },
  },
  {
    title: 'a lease of a priority class may settle above its reserve, into debt',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!reserve.batch=0.3');
      const lease = await limiter.acquire(batch({ tpd: 70 }));
      await lease.adjust({ tpd: 40 });
      assert.deepEqual(await limiter.available(USER), { tpd: -10 });
      await lease.commit({ tpd: 20 });
      assert.deepEqual(await limiter.available(USER), { tpd: 80 });
    },
  },
  {
    title: 'per-call limits bring their own reserve, and share the bucket of the same rule without one',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:5/day');
      const own = [Limit.perDay('tpd', 100, { reserve: { batch: 0.4 } })];
      await limiter.acquire(batch({ tpd: 60 }, { limits: own }));
      await denial(limiter, batch({ tpd: 1 }, { limits: own }));
      await limiter.acquire(ask({ tpd: 40 }, { limits: [Limit.perDay('tpd', 100)] }));
      await denial(limiter, ask({ tpd: 1 }, { limits: own }));
    },
  },
];

const cascading: readonly Case[] = [
  {
    title: 'a priority class applies at each level whose limits name it',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await createTeam(limiter);
      await limiter.config.setEntityDefault('team', { limits: limits('tpd:100/day!reserve.batch=0.5') });
      await limiter.config.setEntityDefault(USER.entityId, { limits: limits('tpd:80/day') });
      await limiter.acquire(batch({ tpd: 50 }));
      assert.deepEqual(refusers(await denial(limiter, batch({ tpd: 1 }))), ['team tpd']);
      await limiter.acquire(ask({ tpd: 30 }));
      assert.deepEqual(refusers(await denial(limiter, batch({ tpd: 1 }))), ['team tpd', 'user-1 tpd']);
      assert.deepEqual(await limiter.available(USER), { tpd: 0 });
    },
  },
  {
    title: 'all levels of a transaction keep their reserves',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!reserve.batch=0.25');
      await createTeam(limiter);
      await limiter.acquire(batch({ tpd: 75 }, { atomic: true }));
      assert.deepEqual(refusers(await denial(limiter, batch({ tpd: 1 }, { atomic: true }))), [
        'team tpd',
        'user-1 tpd',
      ]);
      await limiter.acquire(ask({ tpd: 25 }, { atomic: true }));
    },
  },
];

const looking: readonly Case[] = [
  {
    title: 'timeUntilAvailable and peek answer as an ask of the class would be answered',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min!reserve.batch=0.5');
      assert.equal(await limiter.timeUntilAvailable(batch({ rpm: 30 })), 0);
      assert.equal(await limiter.timeUntilAvailable(batch({ rpm: 31 })), null);
      await limiter.acquire(ask({ rpm: 40 }));
      assert.equal(await limiter.timeUntilAvailable(batch({ rpm: 1 })), 11_000);
      assert.equal(await limiter.timeUntilAvailable(ask({ rpm: 20 })), 0);
      const [status] = await limiter.peek(batch({ rpm: 1 }));
      assert.deepEqual([status?.exceeded, status?.retryAfterMs, status?.reserved], [true, 11_000, 30]);
    },
  },
  {
    title: 'a status shows what had to stay, and status and available show the whole balance',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:10/day!reserve.batch=0.4');
      const { statuses } = await limiter.tryAcquire(batch({ tpd: 2 }));
      assert.deepEqual([statuses[0]?.available, statuses[0]?.reserved], [8, 4]);
      const [plain] = (await limiter.tryAcquire(ask({ tpd: 1 }))).statuses;
      assert.equal(plain !== undefined && 'reserved' in plain, false);
      assert.deepEqual(await limiter.available(USER), { tpd: 7 });
      assert.deepEqual(
        (await limiter.status(USER)).map(({ available }) => available),
        [7],
      );
    },
  },
];

const changing: readonly Case[] = [
  {
    title: 'a changed reserve applies to the next ask, and neither fills nor empties the bucket',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setSystem({ limits: limits('tpd:100/day!reserve.batch=0.9') });
      await limiter.acquire(batch({ tpd: 10 }));
      await denial(limiter, batch({ tpd: 1 }));
      await fixture.clock.advance(1_000);
      await limiter.config.setSystem({ limits: limits('tpd:100/day!reserve.batch=0.2') });
      await limiter.acquire(batch({ tpd: 70 }));
      await denial(limiter, batch({ tpd: 1 }));
      await fixture.clock.advance(1_000);
      await limiter.config.setSystem({ limits: limits('tpd:100/day') });
      await assertRejects(limiter.acquire(batch({ tpd: 1 })), 'input.invalid');
      assert.deepEqual(await limiter.available(USER), { tpd: 20 });
    },
  },
  {
    title: 'a bucket that another process created keeps no reserve: each ask brings its own',
    run: async (fixture) => {
      const first = await fixture.limited('tpd:100/day!reserve.batch=0.9');
      const second = await fixture.limited('tpd:100/day!reserve.batch=0.5');
      await first.acquire(batch({ tpd: 10 }));
      await denial(first, batch({ tpd: 1 }));
      await second.acquire(batch({ tpd: 40 }));
      await denial(second, batch({ tpd: 1 }));
      const bucket = await second.buckets.get(USER);
      assert.deepEqual(
        bucket?.limits.map(({ limit }) => String(limit)),
        ['tpd:100/day'],
      );
    },
  },
  {
    title: 'stored limits keep their reserves in their text',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const rules = [
        'rpd:9/day@1!reserve.batch=0.3',
        'slots:4/concurrent!reserve.a.b=0.25!reserve.web=0',
        'tpd:unlimited!reserve.x=1',
      ];
      await limiter.config.setEntity(USER.entityId, USER.resource, { limits: limits(...rules) });
      const other = await fixture.limiter();
      const { limits: found } = await other.config.resolve(USER.entityId, USER.resource);
      assert.deepEqual(found.map(String).toSorted(), rules);
      await limiter.config.setEntity(USER.entityId, USER.resource, { limits: limits('rpd:9/day') });
      assert.deepEqual((await other.config.get(USER))?.limits?.map(String), ['rpd:9/day']);
    },
  },
];

export const priority: readonly Case[] = [...deciding, ...cascading, ...looking, ...changing];
