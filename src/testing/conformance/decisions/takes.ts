import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import { ask, assertRejects, denial, refusers, times, USER } from '../kit/asking.js';
import type { Case } from '../kit/fixture.js';

const boundaries: readonly Case[] = [
  {
    title: 'a new bucket grants its whole capacity, and then nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.acquire(ask({ rpm: 10 }));
      assert.deepEqual(refusers(await denial(limiter, ask({ rpm: 1 }))), ['user-1 rpm']);
    },
  },
  {
    title: 'a bucket grants one token at a time until its capacity is used up',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:3/min');
      for (const left of [2, 1, 0]) {
        await limiter.acquire(ask({ rpm: 1 }));
        assert.deepEqual(await limiter.available(USER), { rpm: left });
      }
      await denial(limiter, ask({ rpm: 1 }));
    },
  },
  {
    title: 'a bucket with a capacity of 1 grants once',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:1/min');
      await limiter.acquire(ask({ rpm: 1 }));
      assert.equal((await denial(limiter, ask({ rpm: 1 }))).retryAfterMs, 60_000);
    },
  },
  {
    title: 'a bucket grants its remaining tokens after larger asks were denied',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.acquire(ask({ rpm: 7 }));
      await denial(limiter, ask({ rpm: 4 }));
      await limiter.acquire(ask({ rpm: 3 }));
      assert.deepEqual(await limiter.available(USER), { rpm: 0 });
    },
  },
  {
    title: 'an ask for 0 is granted and takes nothing, also from an empty bucket',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:2/min');
      await limiter.acquire(ask({ rpm: 0 }));
      await limiter.acquire(ask({ rpm: 2 }));
      await limiter.acquire(ask({ rpm: 0 }));
      assert.deepEqual(await limiter.available(USER), { rpm: 0 });
    },
  },
  {
    title: 'an ask for more than the capacity is denied as impossible, without a wait, and takes nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      const { reason, retryAfterMs } = await denial(limiter, ask({ rpm: 11 }));
      assert.deepEqual({ reason, retryAfterMs }, { reason: 'impossible', retryAfterMs: null });
      await assertRejects(limiter.acquire(ask({ rpm: 11 })), 'limit.impossible');
      assert.deepEqual(await limiter.available(USER), { rpm: 10 });
    },
  },
  {
    title: 'an ask for more slots than the limit has is denied as impossible, and holds none',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:3/concurrent');
      assert.equal((await denial(limiter, ask({ slots: 4 }))).reason, 'impossible');
      assert.deepEqual((await limiter.leases.list(USER)).items, []);
      assert.deepEqual(await limiter.available(USER), { slots: 3 });
    },
  },
  ...(['rpm:0/min', 'rpm:0/concurrent'].map((rule) => ({
    title: `the limit ${rule} denies every ask except an ask for 0`,
    run: async (fixture) => {
      const limiter = await fixture.limited(rule);
      assert.equal((await denial(limiter, ask({ rpm: 1 }))).reason, 'impossible');
      await limiter.acquire(ask({ rpm: 0 }));
      assert.deepEqual(await limiter.available(USER), { rpm: 0 });
    },
  })) satisfies Case[]),
  {
    title: 'the largest amount is taken exactly',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:1000000000000/min', 'rpm:999999999999/min');
      await limiter.acquire(ask({ tpm: 999_999_999_999, rpm: 1 }));
      assert.deepEqual(await limiter.available(USER), { tpm: 1, rpm: 999_999_999_998 });
    },
  },
  {
    title: 'the capacity of a bucket is the burst, not the rate',
    run: async (fixture) => {
      const limiter = await fixture.limited('small:60/min:10', 'large:60/min:90');
      assert.equal((await denial(limiter, ask({ small: 11 }))).reason, 'impossible');
      await limiter.acquire(ask({ small: 10, large: 90 }));
      await fixture.clock.advance(60_000);
      assert.deepEqual(await limiter.available(USER), { small: 10, large: 60 });
    },
  },
  {
    title: 'each entity and resource has its own bucket',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:1/min');
      await limiter.acquire(ask({ rpm: 1 }));
      await limiter.acquire(ask({ rpm: 1 }, { entityId: 'user-2' }));
      await limiter.acquire(ask({ rpm: 1 }, { resource: 'gpt-5' }));
      await denial(limiter, ask({ rpm: 1 }));
    },
  },
];

const answers: readonly Case[] = [
  {
    title: 'a decision shows the requested and the available amount of each limit that was asked',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min', 'tpm:100/min', 'slots:2/concurrent');
      const { statuses } = await limiter.tryAcquire(ask({ rpm: 4, slots: 1 }));
      const seen = statuses.map((status) => ({ ...status, limit: String(status.limit) }));
      const common = { ...USER, exceeded: false, retryAfterMs: 0 };
      assert.deepEqual(
        seen.toSorted((a, b) => b.requested - a.requested),
        [
          { ...common, limit: 'rpm:10/min', requested: 4, available: 6 },
          { ...common, limit: 'slots:2/concurrent', requested: 1, available: 1 },
        ],
      );
    },
  },
  {
    title: 'a denial that is thrown has the same details as one that is returned',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      const { statuses, violations, retryAfterMs } = await denial(limiter, ask({ rpm: 2 }));
      await assert.rejects(limiter.acquire(ask({ rpm: 2 })), {
        code: 'limit.exceeded',
        statuses,
        violations,
        retryAfterMs,
      });
      assert.equal(retryAfterMs, 2_000);
    },
  },
  {
    title: 'an ask takes the named amount of a limit, or the default cost of a limit that it does not name',
    run: async (fixture) => {
      const limits = [Limit.perMinute('rpm', 10, { cost: 1 }), Limit.perMinute('tpm', 100, { cost: 20 })];
      const limiter = await fixture.limiter({ limits });
      await limiter.acquire(USER);
      await limiter.acquire(ask({ tpm: 5 }));
      const { consumed } = await limiter.acquire(ask({ rpm: 0 }));
      assert.deepEqual(consumed, { rpm: 0, tpm: 20 });
      assert.deepEqual(await limiter.available(USER), { rpm: 8, tpm: 55 });
    },
  },
  {
    title: 'the debt of a limit does not affect an ask for other limits',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min', 'tpm:100/min');
      await (await limiter.acquire(ask({ tpm: 1 }))).settle({ tpm: 500 });
      await limiter.acquire(ask({ rpm: 1 }));
      await denial(limiter, ask({ rpm: 1, tpm: 0 }));
    },
  },
];

const refusals: readonly Case[] = [
  {
    title: 'an ask with a misspelt limit name is refused and takes nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await assertRejects(limiter.tryAcquire(ask({ rpm: 1, rpn: 1 })), 'input.invalid');
      assert.deepEqual(await limiter.available(USER), { rpm: 10 });
    },
  },
  {
    title: 'an ask with a negative, fractional, missing or oversized amount is refused and takes nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      for (const rpm of [-1, 0.5, Number.NaN, 1e12 + 1, undefined as unknown as number]) {
        await assertRejects(limiter.acquire(ask({ rpm })), 'input.invalid');
      }
      assert.deepEqual(await limiter.available(USER), { rpm: 10 });
    },
  },
  {
    title: 'an ask without amounts is refused if no limit has a default cost',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await assertRejects(limiter.acquire(ask({})), 'input.invalid');
      await assertRejects(limiter.acquire(USER), 'input.invalid');
    },
  },
  {
    title: 'an ask is refused if no level has limits for its entity',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await assertRejects(limiter.acquire(ask({ rpm: 1 })), 'limits.missing');
      await assertRejects(limiter.status(USER), 'limits.missing');
    },
  },
];

/** Three limits with a capacity of ten, one of them concurrent. */
const RULES = ['rpm:10/day', 'tpm:10/hour', 'slots:10/concurrent'];
const NAMES = ['rpm', 'tpm', 'slots'];
const SUBSETS = times(7, (at) => NAMES.filter((_, bit) => ((at + 1) & (1 << bit)) !== 0));

function amounts(names: readonly string[], amount: number): Record<string, number> {
  return Object.fromEntries(names.map((name) => [name, amount]));
}

const subsets: readonly Case[] = SUBSETS.flatMap((names) => [
  {
    title: `an ask for ${names.join(' and ')} takes from these of three limits only`,
    run: async (fixture) => {
      const limiter = await fixture.limited(...RULES);
      const { consumed } = await limiter.acquire(ask(amounts(names, 4)));
      assert.deepEqual(consumed, amounts(names, 4));
      assert.deepEqual(await limiter.available(USER), { ...amounts(NAMES, 10), ...amounts(names, 6) });
    },
  },
  {
    title: `a denial names ${names.join(' and ')} if these of three limits have too few tokens, and takes from none`,
    run: async (fixture) => {
      const limiter = await fixture.limited(...RULES);
      await limiter.acquire(ask(amounts(names, 8)));
      const denied = await denial(limiter, ask(amounts(NAMES, 3)));
      assert.deepEqual(refusers(denied), names.map((name) => `user-1 ${name}`).toSorted());
      assert.deepEqual(await limiter.available(USER), { ...amounts(NAMES, 10), ...amounts(names, 2) });
    },
  },
]) satisfies Case[];

export const takes: readonly Case[] = [...boundaries, ...answers, ...refusals, ...subsets];
