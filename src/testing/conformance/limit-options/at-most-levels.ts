import assert from 'node:assert/strict';
import type { Granted } from '../../../limiter/acquire/decision.js';
import type { LimiterOptions } from '../../../limiter/options.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { AcquireRequest, Amounts } from '../../../limiter/acquire/request.js';
import { ask, denial, refusers, times, USER } from '../kit/asking.js';
import { type Case, type Fixture, limits } from '../kit/fixture.js';

const SECRETS: LimiterOptions = { leaseSecrets: ['a secret of at least 32 characters, for tests'] };

function cut(consume: Amounts, more: Partial<AcquireRequest> = {}): AcquireRequest {
  return ask(consume, { atMost: 'tpd', ...more });
}

async function grant(limiter: RateLimiter, request: AcquireRequest): Promise<Granted> {
  const decision = await limiter.tryAcquire(request);
  assert.ok(decision.granted, `denied instead of granted: ${JSON.stringify(request.consume)}`);
  return decision;
}

/** A user under a team, with these limits. */
async function inTeam(fixture: Fixture, own: readonly string[], team: readonly string[]): Promise<RateLimiter> {
  const limiter = await fixture.limiter();
  await limiter.entities.create({ id: 'team' });
  await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
  await limiter.config.setEntityDefault('team', { limits: limits(...team) });
  await limiter.config.setEntityDefault(USER.entityId, { limits: limits(...own) });
  return limiter;
}

const TEAM = { ...USER, entityId: 'team' };

export const atMostLevels: readonly Case[] = [
  {
    title: 'all levels of a cascade take what the level with the least can give',
    run: async (fixture) => {
      const limiter = await inTeam(fixture, ['tpd:100/day'], ['tpd:40/day']);
      const { lease, statuses } = await grant(limiter, cut({ tpd: 90 }));
      assert.deepEqual(lease.consumed, { tpd: 40 });
      assert.deepEqual(
        statuses.map(({ requested, available }) => [requested, available]),
        [
          [40, 60],
          [40, 0],
        ],
      );
      await lease.rollback();
      assert.deepEqual(await limiter.available(USER), { tpd: 40 });
      assert.deepEqual(await limiter.available(TEAM), { tpd: 40 });
    },
  },
  {
    title: 'a cascade takes the least also where this process knows no balance yet',
    run: async (fixture) => {
      const limiter = await inTeam(fixture, ['tpd:100/day', 'rpd:10/day'], ['tpd:400/day']);
      await limiter.acquire(ask({ tpd: 370 }, { entityId: 'team' }));
      const other = await fixture.limiter();
      await (await other.acquire(ask({ tpd: 10 }))).commit();
      const fresh = await fixture.limiter();
      const { lease } = await grant(fresh, cut({ tpd: 90, rpd: 3 }));
      assert.deepEqual(lease.consumed, { tpd: 20, rpd: 3 });
      assert.deepEqual(await fresh.available(USER), { tpd: 0, rpd: 7 });
      await lease.commit({ tpd: 5 });
      assert.deepEqual(await fresh.available(TEAM), { tpd: 15 });
    },
  },
  {
    title: 'a cascade is denied if a level has less than one token, and takes nothing elsewhere',
    run: async (fixture) => {
      const limiter = await inTeam(fixture, ['tpd:100/day'], ['tpd:86400/day:40']);
      await limiter.acquire(ask({ tpd: 40 }, { entityId: 'team' }));
      const denied = await denial(limiter, cut({ tpd: 90 }));
      assert.deepEqual([refusers(denied), denied.retryAfterMs], [['team tpd'], 1_000]);
      assert.deepEqual(await limiter.available({ ...USER }), { tpd: 0 });
      await fixture.clock.advance(3_000);
      assert.deepEqual((await grant(limiter, cut({ tpd: 90 }))).lease.consumed, { tpd: 3 });
    },
  },
  {
    title: 'all levels of a transaction take what the level with the least can give',
    run: async (fixture) => {
      const limiter = await inTeam(fixture, ['tpd:100/day'], ['tpd:40/day']);
      const { lease } = await grant(limiter, cut({ tpd: 90 }, { atomic: true, leaseTtlMs: 60_000 }));
      assert.deepEqual(lease.consumed, { tpd: 40 });
      assert.deepEqual(await limiter.available(TEAM), { tpd: 0 });
      await lease.rollback();
      assert.deepEqual(await limiter.available(USER), { tpd: 40 });
    },
  },
  {
    title: 'a level with slots and one with a portable holder give back what the cascade took',
    run: async (fixture) => {
      await inTeam(fixture, ['tpd:100/day', 'slots:2/concurrent'], ['tpd:40/day']);
      const limiter = await fixture.limiter(SECRETS);
      const { lease } = await grant(limiter, cut({ tpd: 90, slots: 1 }, { portable: true }));
      assert.deepEqual(lease.consumed, { tpd: 40, slots: 1 });
      await lease.rollback();
      assert.deepEqual(await limiter.available(TEAM), { tpd: 40 });
      assert.deepEqual(await limiter.available(USER), { tpd: 40, slots: 2 });
    },
  },
  {
    title: 'a level that has the limit as a shadow, or has it not, does not cut',
    run: async (fixture) => {
      const limiter = await inTeam(fixture, ['tpd:100/day', 'rpd:9/day'], ['tpd:40/day!shadow']);
      const { lease, statuses } = await grant(limiter, cut({ tpd: 90, rpd: 1 }));
      assert.deepEqual(lease.consumed, { tpd: 90, rpd: 1 });
      assert.deepEqual(
        statuses.filter((status) => status.exceeded).map(({ entityId }) => entityId),
        ['team'],
      );
      await lease.rollback();
      assert.deepEqual(await limiter.available(TEAM), { tpd: 40 });
    },
  },
  {
    title: 'peek shows what an ask would take, and timeUntilAvailable waits for one token',
    run: async (fixture) => {
      const limiter = await inTeam(fixture, ['tpd:100/day'], ['tpd:86400/day:40']);
      const peeked = await limiter.peek(cut({ tpd: 90 }));
      assert.deepEqual(
        peeked.map(({ requested, exceeded }) => [requested, exceeded]),
        [
          [40, false],
          [40, false],
        ],
      );
      await limiter.acquire(ask({ tpd: 40 }));
      assert.equal(await limiter.timeUntilAvailable(cut({ tpd: 90 })), 1_000);
    },
  },
  {
    title: 'concurrent asks of a cascade take the same at all levels, and never more than there is',
    alone: 'it makes its own groups',
    run: async (fixture) => {
      const limiter = await inTeam(fixture, ['tpd:100/day'], ['tpd:70/day']);
      const other = await fixture.limiter();
      const asks = times(6, async (at) => (at % 2 === 0 ? limiter : other).tryAcquire(cut({ tpd: 30 })));
      const leases = (await Promise.all(asks)).flatMap((decision) => (decision.granted ? [decision.lease] : []));
      const taken = leases.reduce((sum, { consumed }) => sum + (consumed['tpd'] ?? 0), 0);
      assert.ok(taken > 0 && taken <= 70, `${taken} of 70`);
      const own = (await limiter.status(USER)).map(({ available }) => available);
      assert.deepEqual(own, [100 - taken, 70 - taken]);
      for (const lease of leases) await lease.rollback();
      assert.deepEqual(
        (await limiter.status(USER)).map(({ available }) => available),
        [100, 70],
      );
    },
  },
];
