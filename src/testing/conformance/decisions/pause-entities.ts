import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertRejects, USER } from '../kit/asking.js';
import { type Case, type Fixture, limits, until } from '../kit/fixture.js';
import { ALL, family, pausedDenial, REASON, twoWarm } from '../kit/pausing.js';

const entities: readonly Case[] = [
  {
    title: 'a revoked key is refused on every resource, with every limit, named, unnamed, unknown, or of the call',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min', 'tpm:unlimited@1');
      await limiter.pause({ ...ALL, forMs: 'forever', reason: 'leaked' });
      const asks = [{ rpm: 1 }, { tpm: 1 }, {}, { misspelt: 1 }, { rpm: 99 }];
      for (const resource of [USER.resource, 'other', 'new']) {
        for (const consume of asks) await pausedDenial(limiter, ask(consume, { resource }));
        await pausedDenial(limiter, ask({ own: 1 }, { resource, limits: [Limit.unlimited('own')] }));
        await assertRejects(limiter.acquire(ask({ rpm: 1 }, { resource })), 'entity.paused');
      }
      await limiter.acquire(ask({ rpm: 1 }, { entityId: 'user-2' }));
    },
  },
  {
    title: 'a revoked key stays refused whatever limits it gets',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.pause({ ...ALL, forMs: 'forever', reason: 'leaked' });
      await pausedDenial(limiter, ask({ rpm: 1 }));
      await limiter.config.setSystem({ limits: limits('rpm:10/min') });
      await limiter.config.setEntity(USER.entityId, USER.resource, { limits: limits('rpm:1000/min') });
      await limiter.buckets.reset(USER);
      await limiter.entities.update(USER.entityId, { name: 'renamed' });
      for (const other of [limiter, await fixture.limiter()]) await pausedDenial(other, ask({ rpm: 1 }));
    },
  },
  {
    title: 'a pause of an entity reaches another process within configCacheMs, at once after its cache is cleared',
    run: async (fixture) => {
      const [one, other] = await twoWarm(fixture, 'rpm:100/min');
      const third = await fixture.limited('rpm:100/min');
      await third.acquire(ask({ rpm: 1 }));
      await one.pause({ ...ALL, forMs: 'forever', reason: REASON });
      await pausedDenial(one, ask({ rpm: 1 }));
      third.config.cache.clear();
      await pausedDenial(third, ask({ rpm: 1 }));
      await fixture.clock.advance(60_000);
      await pausedDenial(other, ask({ rpm: 1 }));
    },
  },
  {
    title: 'a resume of an entity reaches another process within denyCacheMs',
    run: async (fixture) => {
      const [one, other] = await twoWarm(fixture, 'rpm:100/min');
      await one.pause({ ...ALL, forMs: 'forever', reason: REASON });
      other.config.cache.clear();
      await pausedDenial(other, ask({ rpm: 1 }));
      await one.resume(ALL);
      await fixture.clock.advance(1_000);
      await other.acquire(ask({ rpm: 1 }));
    },
  },
  {
    title: 'a pause of a parent stops its children, on every resource or on one',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await family(limiter);
      await limiter.acquire(ask({ rpm: 1 }));
      for (const resource of [undefined, USER.resource]) {
        const target = { entityId: 'team', ...(resource === undefined ? {} : { resource }) };
        await limiter.pause({ ...target, forMs: 20_000, reason: REASON });
        const { paused } = await pausedDenial(limiter, ask({ rpm: 1 }));
        assert.deepEqual([paused?.entityId, paused?.resource], ['team', resource ?? null]);
        if (resource === undefined) await pausedDenial(limiter, ask({ rpm: 1 }, { resource: 'other' }));
        else await limiter.acquire(ask({ rpm: 1 }, { resource: 'other' }));
        await limiter.resume(target);
      }
      await limiter.acquire(ask({ rpm: 1 }));
    },
  },
  {
    title: 'a pause of the bucket of a parent stops the children of another process, and takes nothing from them',
    run: async (fixture) => {
      const one = await fixture.limited('rpm:100/hour');
      const other = await fixture.limited('rpm:100/hour');
      await family(one);
      for (const limiter of [one, other]) await limiter.acquire(ask({ rpm: 1 }));
      await one.pause({ entityId: 'team', resource: USER.resource, forMs: 20_000, reason: REASON });
      for (const atomic of [false, true]) await pausedDenial(other, ask({ rpm: 1 }, { atomic }));
      assert.equal((await other.buckets.get(USER))?.limits[0]?.available, 98);
    },
  },
  {
    title: 'a paused parent without a limit that the ask names stops the ask',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await family(limiter);
      await limiter.config.setEntityDefault(USER.entityId, { limits: limits('rpm:10/min') });
      await limiter.config.setEntityDefault('team', { limits: limits('tpm:10/min') });
      await limiter.acquire(ask({ rpm: 1 }));
      await limiter.pause({ entityId: 'team', resource: USER.resource, forMs: 20_000, reason: REASON });
      await pausedDenial(limiter, ask({ rpm: 1 }));
    },
  },
  {
    title: 'a pause of a parent does not stop a child whose spending does not cascade',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await family(limiter);
      await limiter.entities.update(USER.entityId, { cascade: false });
      await limiter.pause({ entityId: 'team', forMs: 'forever', reason: REASON });
      await limiter.acquire(ask({ rpm: 1 }));
    },
  },
];

/** A call that waits, and what has become of it so far. */
function waiting(fixture: Fixture, limiter: RateLimiter, timeoutMs: number) {
  let state = 'waits';
  const decision = limiter.tryAcquire(ask({ rpm: 1 }, { wait: { timeoutMs } })).then((made) => {
    state = made.granted ? 'granted' : made.reason;
    return made;
  });
  return { decision, state: () => state, asleep: async () => fixture.asleep(1) };
}

const waits: readonly Case[] = [
  {
    title: 'a caller that waits on a paused bucket is granted at the end of the pause and not 1 ms earlier',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.pause({ ...USER, forMs: 4_000, reason: REASON });
      const caller = waiting(fixture, limiter, 5_000);
      await caller.asleep();
      await fixture.clock.advance(3_999);
      assert.equal(caller.state(), 'waits');
      await fixture.clock.advance(1);
      assert.equal((await caller.decision).granted, true);
    },
  },
  {
    title: 'a caller is denied at once if a pause lasts longer than its wait, or forever',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.pause({ ...USER, forMs: 5_001, reason: REASON });
      const late = await pausedDenial(limiter, ask({ rpm: 1 }, { wait: { timeoutMs: 5_000 } }));
      assert.equal(late.retryAfterMs, 5_001);
      await limiter.pause({ ...ALL, forMs: 'forever', reason: REASON });
      const never = await pausedDenial(limiter, ask({ rpm: 1 }, { wait: { timeoutMs: 5_000 } }));
      assert.equal(never.retryAfterMs, null);
    },
  },
  {
    title: 'a caller is denied at once as paused while others wait in the line of the limit',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min:1');
      await limiter.acquire(ask({ rpm: 1 }));
      const first = waiting(fixture, limiter, 5_000);
      await first.asleep();
      await limiter.pause({ ...ALL, forMs: 'forever', reason: REASON });
      await pausedDenial(limiter, ask({ rpm: 1 }, { wait: { timeoutMs: 5_000 } }));
      await fixture.clock.advance(1_000);
      const denied = await first.decision;
      assert.equal(denied.granted ? null : denied.reason, 'paused');
    },
  },
  {
    title: 'a resume wakes the callers of its process that wait for the end of the pause',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      for (const target of [USER, ALL]) {
        await limiter.pause({ ...target, forMs: 4_000, reason: REASON });
        const caller = waiting(fixture, limiter, 5_000);
        await caller.asleep();
        await limiter.resume(target);
        await until('the waiter to be granted', () => caller.state() === 'granted');
        await fixture.clock.advance(10_000);
      }
    },
  },
  {
    title: 'a caller that waits for tokens of a bucket that is paused meanwhile waits for the end of the pause',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min:1');
      await limiter.acquire(ask({ rpm: 1 }));
      const caller = waiting(fixture, limiter, 10_000);
      await caller.asleep();
      await limiter.pause({ ...USER, forMs: 4_000, reason: REASON });
      await fixture.clock.advance(1_000);
      await fixture.asleep(1);
      await fixture.clock.advance(2_999);
      assert.equal(caller.state(), 'waits');
      await fixture.clock.advance(1);
      assert.equal((await caller.decision).granted, true);
    },
  },
];

export const entityPauses: readonly Case[] = [...entities, ...waits];
