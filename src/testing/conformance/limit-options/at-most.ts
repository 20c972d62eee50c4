import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import type { DecisionEvent } from '../../../limiter/acquire/decision-event.js';
import type { Granted } from '../../../limiter/acquire/decision.js';
import type { LimiterOptions } from '../../../limiter/options.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { AcquireRequest, Amounts } from '../../../limiter/acquire/request.js';
import {
  ask,
  assertExactWait,
  assertRejects,
  COUNTS_ACQUIRES,
  denial,
  listUsage,
  refusers,
  times,
  tokensOf,
  USER,
} from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';

const SECRETS: LimiterOptions = { leaseSecrets: ['a secret of at least 32 characters, for tests'] };

const OWN_GROUPS = 'it makes its own groups';

function cut(consume: Amounts, more: Partial<AcquireRequest> = {}): AcquireRequest {
  return ask(consume, { atMost: 'tpd', ...more });
}

async function grant(limiter: RateLimiter, request: AcquireRequest): Promise<Granted> {
  const decision = await limiter.tryAcquire(request);
  assert.ok(decision.granted, `denied instead of granted: ${JSON.stringify(request.consume)}`);
  return decision;
}

const amounts: readonly Case[] = [
  {
    title: 'an ask takes the whole amount where there is enough',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      const { lease, statuses } = await grant(limiter, cut({ tpd: 60 }));
      assert.deepEqual(lease.consumed, { tpd: 60 });
      assert.deepEqual([statuses[0]?.requested, statuses[0]?.available, statuses[0]?.exceeded], [60, 40, false]);
    },
  },
  {
    title: 'an ask takes what there is where that is less, and the others stay whole',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day', 'rpd:10/day');
      await limiter.acquire(ask({ tpd: 70 }));
      const { lease, statuses } = await grant(limiter, cut({ rpd: 2, tpd: 60 }));
      assert.deepEqual(lease.consumed, { rpd: 2, tpd: 30 });
      assert.equal(statuses.find(({ limit }) => limit.name === 'tpd')?.requested, 30);
      assert.deepEqual(await limiter.available(USER), { tpd: 0, rpd: 8 });
    },
  },
  {
    title: 'an ask larger than the capacity takes the capacity',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      assert.deepEqual((await grant(limiter, cut({ tpd: 5_000 }))).lease.consumed, { tpd: 100 });
    },
  },
  {
    title: 'an ask is denied if there is less than one token, and fits once there is one',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:86400/day:10');
      await limiter.acquire(ask({ tpd: 10 }));
      const request = cut({ tpd: 8 });
      const denied = await denial(limiter, request);
      assert.deepEqual([denied.reason, denied.violations[0]?.requested], ['exhausted', 1]);
      assert.equal(await assertExactWait(fixture, limiter, request, 1_000), 1_000);
      assert.deepEqual(await limiter.available(USER), { tpd: 0 });
    },
  },
  {
    title: 'an ask takes whole tokens, and leaves the part of one',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:60/min');
      await limiter.acquire(ask({ tpm: 60 }));
      await fixture.clock.advance(2_999);
      assert.deepEqual((await grant(limiter, ask({ tpm: 9 }, { atMost: 'tpm' }))).lease.consumed, { tpm: 2 });
      await fixture.clock.advance(1);
      assert.deepEqual((await grant(limiter, ask({ tpm: 9 }, { atMost: 'tpm' }))).lease.consumed, { tpm: 1 });
    },
  },
  {
    title: 'an ask is denied in debt, with the wait until one token is there',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:60/min');
      const lease = await limiter.acquire(ask({ tpm: 60 }));
      await lease.adjust({ tpm: 5 });
      await assertExactWait(fixture, limiter, ask({ tpm: 9 }, { atMost: 'tpm' }), 6_000);
    },
  },
  {
    title: 'another limit refuses as usual, and nothing is taken',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day', 'rpd:1/day');
      await limiter.acquire(ask({ rpd: 1 }));
      assert.deepEqual(refusers(await denial(limiter, cut({ rpd: 1, tpd: 500 }))), ['user-1 rpd']);
      assert.deepEqual(await limiter.available(USER), { tpd: 100, rpd: 0 });
    },
  },
  {
    title: 'a capacity of 0 makes the ask impossible',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:0/day');
      assert.equal((await denial(limiter, cut({ tpd: 5 }))).reason, 'impossible');
    },
  },
  {
    title: 'slots are cut to those that are free',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:5/concurrent');
      const first = await limiter.acquire(ask({ slots: 3 }));
      const { lease } = await grant(limiter, ask({ slots: 4 }, { atMost: 'slots' }));
      assert.deepEqual(lease.consumed, { slots: 2 });
      await denial(limiter, ask({ slots: 1 }, { atMost: 'slots' }));
      await lease.release();
      assert.deepEqual(await limiter.available(USER), { slots: 2 });
      await first.release();
      assert.deepEqual(await limiter.available(USER), { slots: 5 });
    },
  },
  {
    title: 'an unlimited limit is not cut',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:unlimited');
      assert.deepEqual((await grant(limiter, cut({ tpd: 5_000 }))).lease.consumed, { tpd: 5_000 });
    },
  },
  {
    title: 'per-call limits are cut too',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:9/day');
      const own = { limits: [Limit.perDay('tpd', 4)] };
      assert.deepEqual((await grant(limiter, cut({ tpd: 6 }, own))).lease.consumed, { tpd: 4 });
    },
  },
  {
    title: 'a name that `consume` does not have, or with an amount of 0, is refused',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:9/day', 'rpd:9/day');
      for (const request of [
        ask({ rpd: 1 }, { atMost: 'tpd' }),
        ask({ rpd: 1, tpd: 0 }, { atMost: 'tpd' }),
        ask({ rpd: 1 }, { atMost: 'constructor' }),
        ask({ rpd: 1 }, { atMost: 5 as never }),
      ]) {
        await assertRejects(limiter.acquire(request), 'input.invalid');
      }
    },
  },
];

const returning: readonly Case[] = [
  {
    title: 'a rollback gives back exactly what was taken',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.acquire(ask({ tpd: 70 }));
      const { lease } = await grant(limiter, cut({ tpd: 60 }));
      await lease.rollback();
      assert.deepEqual(await limiter.available(USER), { tpd: 30 });
    },
  },
  {
    title: 'settle, adjust and commit start from what was taken',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.acquire(ask({ tpd: 70 }));
      const { lease } = await grant(limiter, cut({ tpd: 60 }));
      await lease.adjust({ tpd: -5 });
      assert.deepEqual(await limiter.available(USER), { tpd: 5 });
      await lease.settle({ tpd: 10 });
      assert.deepEqual(await limiter.available(USER), { tpd: 20 });
      await lease.commit({ tpd: 35 });
      assert.deepEqual(await limiter.available(USER), { tpd: -5 });
    },
  },
  {
    title: 'an expiry that refunds gives back exactly what was taken',
    run: async (fixture) => {
      const rules = limits('tpd:100/day', 'slots:1/concurrent');
      const limiter = await fixture.limiter({ limits: rules, onExpiry: 'refund' });
      await limiter.acquire(ask({ tpd: 70 }));
      const { lease } = await grant(limiter, cut({ tpd: 60, slots: 1 }, { leaseTtlMs: 10_000 }));
      assert.deepEqual(lease.consumed, { tpd: 30, slots: 1 });
      await fixture.clock.advance(10_000);
      await (await limiter.acquire(ask({ slots: 1 }))).release();
      assert.deepEqual(await limiter.available(USER), { tpd: 30, slots: 1 });
    },
  },
  {
    title: 'a portable lease gives back exactly what was taken, also in another process',
    run: async (fixture) => {
      const open = async () => fixture.limiter({ limits: limits('tpd:100/day'), ...SECRETS });
      const [limiter, other] = [await open(), await open()];
      await limiter.acquire(ask({ tpd: 70 }));
      const { lease } = await grant(limiter, cut({ tpd: 60 }, { portable: true }));
      const resumed = await other.leases.resume(await lease.token());
      assert.deepEqual(resumed.consumed, { tpd: 30 });
      await resumed.settle({ tpd: 20 });
      assert.deepEqual(await other.available(USER), { tpd: 10 });
      await resumed.rollback();
      assert.deepEqual(await other.available(USER), { tpd: 30 });
    },
  },
  {
    title: 'usage counts what was taken',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.acquire(cut({ tpd: 70 }));
      await limiter.acquire(cut({ tpd: 70 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpd: 100 }]);
    },
  },
];

const together: readonly Case[] = [
  {
    title: 'onDecision is told what was taken',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const told: DecisionEvent[] = [];
      const limiter = await fixture.limiter({
        limits: limits('tpd:100/day', 'rpd:9/day'),
        onDecision: (event) => told.push(event),
      });
      await limiter.acquire(cut({ tpd: 60, rpd: 1 }));
      await limiter.acquire(cut({ tpd: 60, rpd: 1 }));
      await denial(limiter, cut({ tpd: 60, rpd: 1 }));
      assert.deepEqual(
        told.map(({ consume }) => consume['tpd']),
        [60, 40, 60],
      );
    },
  },
  {
    title: 'an ask of a class is cut to what is above its reserve',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!reserve.batch=0.3');
      assert.deepEqual((await grant(limiter, cut({ tpd: 90 }, { priority: 'batch' }))).lease.consumed, { tpd: 70 });
      await denial(limiter, cut({ tpd: 90 }, { priority: 'batch' }));
      assert.deepEqual((await grant(limiter, cut({ tpd: 90 }))).lease.consumed, { tpd: 30 });
    },
  },
  {
    title: 'a shadow is not cut: it is taken whole or not at all',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!shadow');
      assert.deepEqual((await grant(limiter, cut({ tpd: 90 }))).lease.consumed, { tpd: 90 });
      assert.deepEqual((await grant(limiter, cut({ tpd: 90 }))).lease.consumed, {});
      assert.deepEqual(await limiter.available(USER), { tpd: 10 });
    },
  },
  {
    title: 'a limit is near after a cut take',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!warnAt=0.9');
      await limiter.acquire(ask({ tpd: 70 }));
      assert.equal((await grant(limiter, cut({ tpd: 60 }))).statuses[0]?.near, true);
    },
  },
  {
    title: 'a paused bucket denies',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.pause({ ...USER, forMs: 60_000, reason: 'a test' });
      assert.equal((await denial(limiter, cut({ tpd: 5 }))).reason, 'paused');
    },
  },
  {
    title: 'a charge into debt comes first, and a credit is there for the next ask',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.charge({ ...USER, amounts: { tpd: 120 } });
      await denial(limiter, cut({ tpd: 60 }));
      await limiter.credit({ ...USER, amounts: { tpd: 45 } });
      assert.deepEqual((await grant(limiter, cut({ tpd: 60 }))).lease.consumed, { tpd: 25 });
    },
  },
  {
    title: 'a call that waits gets what there is as soon as there is one token',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:60/min');
      await limiter.acquire(ask({ tpm: 60 }));
      const waiting = limiter.acquire(ask({ tpm: 50 }, { atMost: 'tpm', wait: { timeoutMs: 60_000 } }));
      await fixture.asleep(1);
      await fixture.clock.advance(1_000);
      assert.deepEqual((await waiting).consumed, { tpm: 1 });
    },
  },
  {
    title: 'concurrent asks take everything, and never more than there is',
    alone: OWN_GROUPS,
    run: async (fixture) => {
      const [limiter, other] = [await fixture.limited('tpd:100/day'), await fixture.limited('tpd:100/day')];
      const decisions = await Promise.all(
        times(12, async (at) => (at % 2 === 0 ? limiter : other).tryAcquire(cut({ tpd: 30 }))),
      );
      const taken = decisions.map((decision) => (decision.granted ? (decision.lease.consumed['tpd'] ?? 0) : 0));
      assert.equal(
        taken.reduce((sum, tpd) => sum + tpd, 0),
        100,
      );
      assert.deepEqual(await limiter.available(USER), { tpd: 0 });
    },
  },
];

export const atMost: readonly Case[] = [...amounts, ...returning, ...together];
