import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import type { Granted } from '../../../limiter/acquire/decision.js';
import type { DecisionEvent } from '../../../limiter/acquire/decision-event.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { AcquireRequest } from '../../../limiter/acquire/request.js';
import {
  ask,
  COUNTS_ACQUIRES,
  countGranted,
  denial,
  listUsage,
  refusers,
  times,
  tokensOf,
  USER,
} from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';

async function grant(limiter: RateLimiter, request: AcquireRequest): Promise<Granted> {
  const decision = await limiter.tryAcquire(request);
  assert.ok(decision.granted, `denied instead of granted: ${JSON.stringify(request.consume)}`);
  return decision;
}

/** The names of the limits that a decision says are exceeded. */
function exceeded({ statuses }: Granted): string[] {
  return statuses.filter((status) => status.exceeded).map(({ limit }) => limit.name);
}

const deciding: readonly Case[] = [
  {
    title: 'a shadow that has room is taken, and one that is short is not taken and refuses nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:2/day!shadow');
      assert.deepEqual(exceeded(await grant(limiter, ask({ rpd: 2 }))), []);
      const { statuses, lease } = await grant(limiter, ask({ rpd: 1 }));
      const [status = assert.fail('no status')] = statuses;
      assert.deepEqual([status.exceeded, status.shadow, status.available, status.requested], [true, true, 0, 1]);
      assert.ok((status.retryAfterMs ?? 0) > 0);
      assert.deepEqual(lease.consumed, {});
      assert.deepEqual(await limiter.available(USER), { rpd: 0 });
    },
  },
  {
    title: 'a status says which limits are shadows, also before the first ask',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:2/day!shadow', 'tpd:100/day');
      const shadows = async () =>
        (await limiter.status(USER)).map(({ limit, available, shadow }) => [limit.name, available, shadow === true]);
      assert.deepEqual(await shadows(), [
        ['rpd', 2, true],
        ['tpd', 100, false],
      ]);
      await grant(limiter, ask({ rpd: 2, tpd: 40 }));
      assert.deepEqual(await shadows(), [
        ['rpd', 0, true],
        ['tpd', 60, false],
      ]);
    },
  },
  {
    title: 'a shadow that is short grants nothing to a limit that refuses, and is no violation',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:2/day!shadow', 'tpd:100/day');
      await grant(limiter, ask({ rpd: 2, tpd: 40 }));
      assert.deepEqual(exceeded(await grant(limiter, ask({ rpd: 1, tpd: 60 }))), ['rpd']);
      const denied = await denial(limiter, ask({ rpd: 1, tpd: 1 }));
      assert.deepEqual(refusers(denied), ['user-1 tpd']);
      assert.deepEqual(denied.statuses.filter((status) => status.exceeded).length, 2);
    },
  },
  {
    title: 'a shadow reports exactly the asks that the limit would refuse',
    run: async (fixture) => {
      const shadowed = await fixture.limited('rpm:60/min!shadow');
      const other = ask({ rpm: 25 }, { entityId: 'user-2' });
      const enforced = [Limit.perMinute('rpm', 60)];
      for (let step = 0; step < 8; step++) {
        const wouldRefuse = !(await shadowed.tryAcquire({ ...other, limits: enforced })).granted;
        const isReported = exceeded(await grant(shadowed, ask({ rpm: 25 }))).length > 0;
        assert.equal(isReported, wouldRefuse, `step ${step}`);
        await fixture.clock.advance(7_000);
      }
    },
  },
  {
    title: 'an ask larger than the capacity of a shadow goes on and is reported',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:2/day!shadow', 'tpd:9/day');
      const { statuses } = await grant(limiter, ask({ rpd: 3, tpd: 1 }));
      const waits = new Map(statuses.map(({ limit, retryAfterMs }) => [limit.name, retryAfterMs]));
      assert.deepEqual([waits.get('rpd'), waits.get('tpd')], [null, 0]);
      assert.deepEqual(await limiter.available(USER), { rpd: 2, tpd: 8 });
    },
  },
  {
    title: 'a shadow that takes nothing gets no debt, and refills as if the ask had not been made',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min!shadow');
      await grant(limiter, ask({ rpm: 60 }));
      for (let step = 0; step < 5; step++) await grant(limiter, ask({ rpm: 50 }));
      await fixture.clock.advance(50_000);
      assert.deepEqual(exceeded(await grant(limiter, ask({ rpm: 50 }))), []);
      assert.deepEqual(await limiter.available(USER), { rpm: 0 });
    },
  },
  {
    title: 'a rollback gives back what was taken, and nothing of a shadow that was short',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!shadow', 'tpd:100/day');
      const first = await limiter.acquire(ask({ rpd: 8, tpd: 10 }));
      const second = await limiter.acquire(ask({ rpd: 8, tpd: 10 }));
      await second.rollback();
      assert.deepEqual(await limiter.available(USER), { rpd: 2, tpd: 90 });
      await first.rollback();
      assert.deepEqual(await limiter.available(USER), { rpd: 10, tpd: 100 });
    },
  },
  {
    title: 'corrections of a shadow that was not taken change nothing, and those of one that was taken count',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!shadow', 'tpd:100/day');
      const taken = await limiter.acquire(ask({ rpd: 8, tpd: 10 }));
      const untaken = await limiter.acquire(ask({ rpd: 8, tpd: 10 }));
      await untaken.adjust({ rpd: 5, tpd: 5 });
      await untaken.commit({ rpd: 1, tpd: 20 });
      assert.deepEqual(await limiter.available(USER), { rpd: 2, tpd: 70 });
      await taken.commit({ rpd: 3 });
      assert.deepEqual(await limiter.available(USER), { rpd: 7, tpd: 70 });
    },
  },
  {
    title: 'the usage of a shadow counts every ask, also those that it did not take',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:2/day!shadow');
      for (let step = 0; step < 5; step++) await limiter.acquire(ask({ rpd: 1 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpd: 5 }]);
      assert.equal((await listUsage(fixture, limiter))[0]?.acquires, 5);
    },
  },
  {
    title: 'the slots of a shadow that is short are not held, and a lease gives back the slots that it took',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:2/concurrent!shadow');
      const holding = await limiter.acquire(ask({ slots: 2 }));
      const passing = await limiter.acquire(ask({ slots: 1 }));
      assert.deepEqual([holding.consumed, passing.consumed], [{ slots: 2 }, {}]);
      await passing.release();
      assert.deepEqual(await limiter.available(USER), { slots: 0 });
      await holding.release();
      assert.deepEqual(await limiter.available(USER), { slots: 2 });
    },
  },
  {
    title: 'a shadow finds the slots of expired leases free',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:1/concurrent!shadow');
      await limiter.acquire(ask({ slots: 1 }, { leaseTtlMs: 10_000 }));
      await fixture.clock.advance(10_000);
      assert.deepEqual(exceeded(await grant(limiter, ask({ slots: 1 }))), []);
    },
  },
  {
    title: 'an expiry that refunds gives back nothing of a shadow that was short',
    run: async (fixture) => {
      const rules = limits('rpd:10/day!shadow', 'tpd:100/day', 'slots:1/concurrent');
      const limiter = await fixture.limiter({ limits: rules, onExpiry: 'refund' });
      await (await limiter.acquire(ask({ rpd: 8, tpd: 10 }))).commit();
      await limiter.acquire(ask({ rpd: 8, tpd: 10, slots: 1 }, { leaseTtlMs: 10_000 }));
      await fixture.clock.advance(10_000);
      await limiter.acquire(ask({ slots: 1 }));
      assert.deepEqual(await limiter.available(USER), { rpd: 2, tpd: 90, slots: 0 });
    },
  },
  {
    title: 'a shadow with a reserve reports an ask of the class that would not leave it',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:10/day!reserve.batch=0.5!shadow');
      assert.deepEqual(exceeded(await grant(limiter, ask({ tpd: 5 }, { priority: 'batch' }))), []);
      assert.deepEqual(exceeded(await grant(limiter, ask({ tpd: 1 }, { priority: 'batch' }))), ['tpd']);
      assert.deepEqual(exceeded(await grant(limiter, ask({ tpd: 5 }))), []);
    },
  },
];

const levels: readonly Case[] = [
  {
    title: 'a shadow at a parent refuses nothing, and the levels of a denial count nothing of it',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
      await limiter.config.setEntityDefault('team', { limits: limits('rpd:2/day!shadow', 'tpd:50/day') });
      await limiter.config.setEntityDefault(USER.entityId, { limits: limits('rpd:9/day', 'tpd:90/day') });
      await limiter.acquire(ask({ rpd: 2, tpd: 10 }));
      const { statuses } = await grant(limiter, ask({ rpd: 2, tpd: 10 }));
      assert.deepEqual(
        statuses.filter((status) => status.exceeded).map(({ entityId }) => entityId),
        ['team'],
      );
      assert.deepEqual(refusers(await denial(limiter, ask({ rpd: 1, tpd: 31 }))), ['team tpd']);
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter, { entityId: 'team' })), [{ rpd: 4, tpd: 20 }]);
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpd: 4, tpd: 20 }]);
    },
  },
  {
    title: 'a shadow of the entity counts nothing of an ask that its parent denies',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
      await limiter.config.setEntityDefault('team', { limits: limits('tpd:5/day') });
      await limiter.config.setEntityDefault(USER.entityId, { limits: limits('rpd:1/day!shadow', 'tpd:90/day') });
      await limiter.acquire(ask({ rpd: 1, tpd: 5 }));
      for (let step = 0; step < 3; step++) await denial(limiter, ask({ rpd: 1, tpd: 1 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpd: 1, tpd: 5 }]);
    },
  },
  {
    title: 'all levels of a transaction leave a shadow that is short',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:2/day!shadow', 'tpd:50/day');
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
      for (let step = 0; step < 2; step++) await limiter.acquire(ask({ rpd: 2, tpd: 10 }, { atomic: true }));
      assert.deepEqual(await limiter.available(USER), { rpd: 0, tpd: 30 });
    },
  },
];

const looking: readonly Case[] = [
  {
    title: 'peek shows a shadow that is short, and timeUntilAvailable does not wait for it',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min!shadow');
      await limiter.acquire(ask({ rpm: 60 }));
      assert.equal(await limiter.timeUntilAvailable(ask({ rpm: 5 })), 0);
      const [status] = await limiter.peek(ask({ rpm: 5 }));
      assert.deepEqual([status?.exceeded, status?.shadow, status?.retryAfterMs], [true, true, 5_000]);
    },
  },
  {
    title: 'a call that would wait is granted at once where only a shadow is short',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min!shadow');
      await limiter.acquire(ask({ rpm: 60 }));
      await limiter.acquire(ask({ rpm: 5 }, { wait: { timeoutMs: 60_000 } }));
      assert.deepEqual(limiter.waiting(), []);
    },
  },
  {
    title: 'onDecision is told that a grant would have been refused',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const told: DecisionEvent[] = [];
      const limiter = await fixture.limiter({
        limits: limits('rpd:1/day!shadow'),
        onDecision: (event) => told.push(event),
      });
      await limiter.acquire(ask({ rpd: 1 }));
      await limiter.acquire(ask({ rpd: 1 }));
      assert.deepEqual(
        told.map(({ granted, exceeded: isExceeded }) => [granted, isExceeded]),
        [
          [true, undefined],
          [true, true],
        ],
      );
    },
  },
];

const changing: readonly Case[] = [
  {
    title: 'a limit that becomes a shadow, and back, keeps its balance',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setSystem({ limits: limits('rpd:5/day') });
      await limiter.acquire(ask({ rpd: 4 }));
      await denial(limiter, ask({ rpd: 2 }));
      await fixture.clock.advance(1_000);
      await limiter.config.setSystem({ limits: limits('rpd:5/day!shadow') });
      assert.deepEqual(exceeded(await grant(limiter, ask({ rpd: 2 }))), ['rpd']);
      await fixture.clock.advance(1_000);
      await limiter.config.setSystem({ limits: limits('rpd:5/day') });
      await denial(limiter, ask({ rpd: 2 }));
      await limiter.acquire(ask({ rpd: 1 }));
    },
  },
  {
    title: 'a bucket stores a shadow as a plain rule: each ask brings the option',
    run: async (fixture) => {
      const [shadowing, enforcing] = [await fixture.limited('rpd:2/day!shadow'), await fixture.limited('rpd:2/day')];
      await shadowing.acquire(ask({ rpd: 2 }));
      await denial(enforcing, ask({ rpd: 1 }));
      assert.deepEqual(exceeded(await grant(shadowing, ask({ rpd: 1 }))), ['rpd']);
      const bucket = await enforcing.buckets.get(USER);
      assert.deepEqual(
        bucket?.limits.map(({ limit }) => String(limit)),
        ['rpd:2/day'],
      );
    },
  },
  {
    title: 'of concurrent asks all are granted, and a shadow is taken as often as it fits',
    alone: 'it makes its own groups',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!shadow');
      const others = await fixture.limited('rpd:10/day!shadow');
      const asks = times(40, async (at) => (at % 2 === 0 ? limiter : others).tryAcquire(ask({ rpd: 3 })));
      assert.equal(await countGranted(asks), 40);
      const decisions = await Promise.all(asks);
      const short = decisions.filter(({ statuses }) => statuses.some((status) => status.exceeded));
      assert.equal(short.length, 37);
      assert.deepEqual(await limiter.available(USER), { rpd: 1 });
    },
  },
];

export const shadow: readonly Case[] = [...deciding, ...levels, ...looking, ...changing];
