import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import type { LimitStatus } from '../../../core/bucket/decide.js';
import type { DecisionEvent } from '../../../limiter/acquire/decision-event.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { AcquireRequest } from '../../../limiter/acquire/request.js';
import { ask, COUNTS_ACQUIRES, denial, times, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';

/** The statuses that say `near`, as `entity limit`. */
function near(statuses: readonly LimitStatus[]): string[] {
  return statuses.filter((status) => status.near === true).map(({ entityId, limit }) => `${entityId} ${limit.name}`);
}

async function granted(limiter: RateLimiter, request: AcquireRequest): Promise<readonly LimitStatus[]> {
  const decision = await limiter.tryAcquire(request);
  assert.ok(decision.granted, `denied instead of granted: ${JSON.stringify(request.consume)}`);
  return decision.statuses;
}

const used: readonly Case[] = [
  {
    title: 'a grant is near from the take on that uses the share of the limit, and not one token before',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!warnAt=0.8');
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 7 }))), []);
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 1 }))), ['user-1 rpd']);
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 2 }))), ['user-1 rpd']);
    },
  },
  {
    title: 'a status that is not near has no such field',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!warnAt=0.8', 'tpd:10/day');
      const statuses = await granted(limiter, ask({ rpd: 1, tpd: 9 }));
      assert.deepEqual(
        statuses.map((status) => 'near' in status),
        [false, false],
      );
    },
  },
  {
    title: 'a refill ends it, to the millisecond',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min!warnAt=0.5');
      assert.deepEqual(near(await granted(limiter, ask({ rpm: 32 }))), ['user-1 rpm']);
      await fixture.clock.advance(2_000);
      assert.deepEqual(near(await limiter.status(USER)), ['user-1 rpm']);
      await fixture.clock.advance(1);
      assert.deepEqual(near(await limiter.status(USER)), []);
    },
  },
  {
    title: 'a limit in debt is near',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!warnAt=1');
      const lease = await limiter.acquire(ask({ rpd: 9 }));
      assert.deepEqual(near(await limiter.status(USER)), []);
      await lease.adjust({ rpd: 5 });
      assert.deepEqual(near(await limiter.status(USER)), ['user-1 rpd']);
    },
  },
  {
    title: 'the burst is the whole of which a share is used',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day:100!warnAt=0.5');
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 49 }))), []);
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 1 }))), ['user-1 rpd']);
    },
  },
  {
    title: 'slots are near by what is held, and no longer after a release',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:3/concurrent!warnAt=0.5');
      assert.deepEqual(near(await granted(limiter, ask({ slots: 1 }))), []);
      const lease = await limiter.acquire(ask({ slots: 1 }));
      assert.deepEqual(near(await limiter.status(USER)), ['user-1 slots']);
      await lease.release();
      assert.deepEqual(near(await limiter.status(USER)), []);
    },
  },
  {
    title: 'slots of expired leases do not count as used',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:2/concurrent!warnAt=1');
      await limiter.acquire(ask({ slots: 2 }, { leaseTtlMs: 10_000 }));
      assert.deepEqual(near(await limiter.status(USER)), ['user-1 slots']);
      await fixture.clock.advance(10_000);
      assert.deepEqual(near(await limiter.status(USER)), []);
    },
  },
  {
    title: 'a rollback ends it',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!warnAt=0.8');
      const lease = await limiter.acquire(ask({ rpd: 9 }));
      await lease.rollback();
      assert.deepEqual(near(await limiter.status(USER)), []);
    },
  },
];

const answers: readonly Case[] = [
  {
    title: 'a denial is near by what is used, also where only another limit refuses',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!warnAt=0.8', 'tpd:10/day!warnAt=0.8');
      await limiter.acquire(ask({ rpd: 8 }));
      const denied = await denial(limiter, ask({ rpd: 1, tpd: 11 }));
      assert.deepEqual(near(denied.statuses), ['user-1 rpd']);
      assert.deepEqual(near((await denial(limiter, ask({ rpd: 3 }))).violations), ['user-1 rpd']);
    },
  },
  {
    title: 'peek is near by what is used before the ask',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!warnAt=0.8');
      await limiter.acquire(ask({ rpd: 7 }));
      assert.deepEqual(near(await limiter.peek(ask({ rpd: 1 }))), []);
      await limiter.acquire(ask({ rpd: 1 }));
      assert.deepEqual(near(await limiter.peek(ask({ rpd: 1 }))), ['user-1 rpd']);
    },
  },
  {
    title: 'each level of a cascade is near by its own limit',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
      await limiter.config.setEntityDefault('team', { limits: limits('rpd:10/day!warnAt=0.5') });
      await limiter.config.setEntityDefault(USER.entityId, { limits: limits('rpd:10/day!warnAt=0.9') });
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 5 }))), ['team rpd']);
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 4 }, { atomic: true }))), ['user-1 rpd', 'team rpd']);
      assert.deepEqual(near(await limiter.status(USER)), ['user-1 rpd', 'team rpd']);
    },
  },
  {
    title: 'a shadow is near too, and one that was not taken by what is used',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!shadow!warnAt=0.8');
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 7 }))), []);
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 4 }))), []);
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 1 }))), ['user-1 rpd']);
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 4 }))), ['user-1 rpd']);
    },
  },
  {
    title: 'a reserve does not count as used',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!reserve.batch=0.5!warnAt=0.6');
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 5 }, { priority: 'batch' }))), []);
      assert.deepEqual(near((await denial(limiter, ask({ rpd: 1 }, { priority: 'batch' }))).statuses), []);
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 1 }))), ['user-1 rpd']);
    },
  },
  {
    title: 'per-call limits bring their own share',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      const own = { limits: [Limit.perDay('rpd', 4, { warnAt: 0.5 })] };
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 1 }, own))), []);
      assert.deepEqual(near(await granted(limiter, ask({ rpd: 1 }, own))), ['user-1 rpd']);
    },
  },
  {
    title: 'onDecision is told of a grant and of a denial that are near',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const told: DecisionEvent[] = [];
      const limiter = await fixture.limiter({
        limits: limits('rpd:10/day!warnAt=0.8'),
        onDecision: (event) => told.push(event),
      });
      for (const rpd of [7, 1, 2]) await limiter.acquire(ask({ rpd }));
      await denial(limiter, ask({ rpd: 1 }));
      assert.deepEqual(
        told.map((event) => [event.granted, event.near]),
        [
          [true, undefined],
          [true, true],
          [true, true],
          [false, true],
        ],
      );
    },
  },
];

const changing: readonly Case[] = [
  {
    title: 'a change of the share takes effect without touching the balance',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setSystem({ limits: limits('rpd:10/day!warnAt=0.8') });
      await limiter.acquire(ask({ rpd: 5 }));
      assert.deepEqual(near(await limiter.status(USER)), []);
      await limiter.config.setSystem({ limits: limits('rpd:10/day!warnAt=0.5') });
      assert.deepEqual(near(await limiter.status(USER)), ['user-1 rpd']);
      assert.deepEqual(await limiter.available(USER), { rpd: 5 });
      const { limits: stored } = await limiter.config.resolve(USER.entityId, USER.resource);
      assert.deepEqual(stored.map(String), ['rpd:10/day!warnAt=0.5']);
    },
  },
  {
    title: 'a bucket stores a limit with a share as a plain rule: each ask brings the option',
    run: async (fixture) => {
      const [warning, plain] = [await fixture.limited('rpd:2/day!warnAt=0.5'), await fixture.limited('rpd:2/day')];
      await warning.acquire(ask({ rpd: 1 }));
      assert.deepEqual(near(await plain.status(USER)), []);
      assert.deepEqual(near(await warning.status(USER)), ['user-1 rpd']);
      const bucket = await warning.buckets.get(USER);
      assert.deepEqual(
        bucket?.limits.map(({ limit }) => String(limit)),
        ['rpd:2/day'],
      );
    },
  },
  {
    title: 'of concurrent asks those are near that leave no more than the share, each by what is left after it',
    alone: 'it makes its own groups',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day!warnAt=0.7');
      const decisions = await Promise.all(times(10, async () => limiter.tryAcquire(ask({ rpd: 1 }))));
      const counts = decisions.map(({ statuses: [status] }) => [status?.available, status?.near === true] as const);
      assert.deepEqual(
        counts.toSorted(([a = 0], [b = 0]) => b - a),
        times(10, (at) => [9 - at, at >= 6]),
      );
    },
  },
];

export const nearness: readonly Case[] = [...used, ...answers, ...changing];
