import assert from 'node:assert/strict';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { OnThrow } from '../../../core/lease-scope.js';
import { ask, assertRejects, denial, USER } from './asking.js';
import type { Fixture, Case } from './fixture.js';

async function limiterOf(fixture: Fixture): Promise<RateLimiter> {
  return fixture.limited('rpm:10/min', 'tpm:100/min', 'slots:1/concurrent');
}

const ALL = ask({ rpm: 1, tpm: 20, slots: 1 });

async function fail(): Promise<never> {
  throw new Error('the vendor is down');
}

const ways: readonly (readonly [way: string, onThrow: OnThrow, left: Record<string, number>])[] = [
  ['rollback', 'rollback', { rpm: 10, tpm: 100, slots: 1 }],
  ['commit', 'commit', { rpm: 9, tpm: 80, slots: 1 }],
  [
    'the answer of a function',
    (error) => (String(error).includes('down') ? 'commit' : 'rollback'),
    { rpm: 9, tpm: 80, slots: 1 },
  ],
];

export const run: readonly Case[] = [
  {
    title: 'run returns the result of its function, and commits',
    run: async (fixture) => {
      const limiter = await limiterOf(fixture);
      const given = await limiter.run(ALL, async (lease) => {
        await lease.settle({ tpm: 33 });
        assert.deepEqual(await limiter.available(USER), { rpm: 9, tpm: 67, slots: 0 });
        return 'text';
      });
      assert.equal(given, 'text');
      assert.deepEqual(await limiter.available(USER), { rpm: 9, tpm: 67, slots: 1 });
    },
  },
  {
    title: 'run rolls back and throws the same error when its function throws',
    run: async (fixture) => {
      const limiter = await limiterOf(fixture);
      await assert.rejects(limiter.run(ALL, fail), /the vendor is down/);
      assert.deepEqual(await limiter.available(USER), { rpm: 10, tpm: 100, slots: 1 });
    },
  },
  ...(ways.map(([way, onThrow, left]) => ({
    title: `run follows onThrow when its function throws: ${way}`,
    run: async (fixture) => {
      const limiter = await limiterOf(fixture);
      await assert.rejects(limiter.run({ ...ALL, onThrow }, fail), /the vendor is down/);
      assert.deepEqual(await limiter.available(USER), left);
    },
  })) satisfies Case[]),
  {
    title: 'run keeps settled limits when its function throws, and gives the others back',
    run: async (fixture) => {
      const limiter = await limiterOf(fixture);
      const work = limiter.run(ALL, async (lease) => {
        await lease.settle({ tpm: 45 });
        await fail();
      });
      await assert.rejects(work, /the vendor is down/);
      assert.deepEqual(await limiter.available(USER), { rpm: 10, tpm: 55, slots: 1 });
    },
  },
  {
    title: 'run does not change a lease that its function has ended',
    run: async (fixture) => {
      const limiter = await limiterOf(fixture);
      await limiter.run(ALL, async (lease) => lease.rollback());
      await assert.rejects(
        limiter.run(ALL, async (lease) => {
          await lease.commit();
          await fail();
        }),
      );
      assert.deepEqual(await limiter.available(USER), { rpm: 9, tpm: 80, slots: 1 });
    },
  },
  {
    title: 'run does not call its function after a denial',
    run: async (fixture) => {
      const limiter = await limiterOf(fixture);
      await limiter.acquire(ask({ slots: 1 }));
      await assertRejects(
        limiter.run(ALL, () => assert.fail('called')),
        'limit.exceeded',
      );
      assert.deepEqual(await limiter.available(USER), { rpm: 10, tpm: 100, slots: 0 });
    },
  },
  {
    title: 'run extends its lease while its function runs',
    run: async (fixture) => {
      const limiter = await limiterOf(fixture);
      await limiter.run(ALL, async (lease) => {
        for (let third = 0; third < 10; third++) {
          await fixture.asleep(1);
          await fixture.clock.advance(20_000);
        }
        await fixture.asleep(1);
        assert.equal(lease.state, 'open');
        assert.equal((await denial(limiter, ask({ slots: 1 }))).retryAfterMs, 60_000);
      });
      assert.deepEqual((await limiter.available(USER))['slots'], 1);
      assert.equal(fixture.clock.sleepers, 0);
    },
  },
  ...((['to its end', 'in part'] as const).map((how) => ({
    title: `run ${how === 'in part' ? 'rolls back' : 'commits'} the lease of a generator that is read ${how}`,
    run: async (fixture) => {
      const limiter = await limiterOf(fixture);
      const stream = await limiter.run(ALL, async function* read() {
        yield* ['a', 'b', 'c'];
      });
      assert.deepEqual((await limiter.available(USER))['slots'], 0);
      for await (const chunk of stream) if (how === 'in part' && chunk === 'b') break;
      const left = how === 'in part' ? { rpm: 10, tpm: 100, slots: 1 } : { rpm: 9, tpm: 80, slots: 1 };
      assert.deepEqual(await limiter.available(USER), left);
    },
  })) satisfies Case[]),
];
