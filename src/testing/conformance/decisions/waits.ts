import assert from 'node:assert/strict';
import { ask, assertExactWait, assertRejects, denial, times, USER } from '../kit/asking.js';
import { type Fixture, type Case, limits, until } from '../kit/fixture.js';

/** Includes rates whose periods do not divide evenly, to test rounding. */
const ODD_RATES = ['rpm:60/min', 'rpm:7/977ms', 'rpm:1/day', 'rpm:1000/7ms', 'rpm:3/101ms:50', 'rpm:999999999999/day'];

const exact: readonly Case[] = [
  ...(ODD_RATES.map((rule) => ({
    title: `the limit ${rule} grants at the announced time and not 1 ms before`,
    run: async (fixture) => {
      await fixture.clock.advance(12_347);
      const limiter = await fixture.limited(rule);
      const [{ limit } = assert.fail('no limit')] = await limiter.status(USER);
      await limiter.acquire(ask({ rpm: limit.capacity }));
      for (const rpm of new Set([1, Math.ceil(limit.capacity / 2), limit.capacity])) {
        await assertExactWait(fixture, limiter, ask({ rpm }));
      }
    },
  })) satisfies Case[]),
  {
    title: 'the wait of a denial is that of the slowest limit, and each limit shows its own',
    run: async (fixture) => {
      const limiter = await fixture.limited('rps:10/sec', 'rpm:60/min', 'rph:60/hour');
      await limiter.acquire(ask({ rps: 10, rpm: 60, rph: 60 }));
      const { violations } = await denial(limiter, ask({ rps: 1, rpm: 2, rph: 3 }));
      assert.deepEqual(Object.fromEntries(violations.map(({ limit, retryAfterMs }) => [limit.name, retryAfterMs])), {
        rps: 100,
        rpm: 2_000,
        rph: 180_000,
      });
      await assertExactWait(fixture, limiter, ask({ rps: 1, rpm: 2, rph: 3 }), 180_000);
    },
  },
  {
    title: 'the announced wait is shorter by what was refilled since the last take',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      await fixture.clock.advance(1_700);
      await limiter.acquire(ask({ rpm: 1 }));
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 300);
    },
  },
  {
    title: 'a bucket never refills above its capacity',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 10 }));
      await fixture.clock.advance(86_400_000);
      await limiter.acquire(ask({ rpm: 60 }));
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 1_000);
    },
  },
  {
    title: 'a slow limit refills although another limit of the bucket is used often',
    run: async (fixture) => {
      const limiter = await fixture.limited('busy:1000/sec', 'slow:1/hour');
      await limiter.acquire(ask({ busy: 1, slow: 1 }));
      for (let step = 0; step < 100; step++) {
        await fixture.clock.advance(7);
        await limiter.acquire(ask({ busy: 1 }));
      }
      await assertExactWait(fixture, limiter, ask({ slow: 1 }), 3_600_000 - 700);
    },
  },
  {
    title: 'a bucket that is asked every millisecond refills no more than its rate',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:3/101ms');
      await limiter.acquire(ask({ rpm: 3 }));
      const grantedAt: number[] = [];
      for (let ms = 1; ms <= 101; ms++) {
        await fixture.clock.advance(1);
        if ((await limiter.tryAcquire(ask({ rpm: 1 }))).granted) grantedAt.push(ms);
      }
      assert.deepEqual(grantedAt, [34, 68, 101]);
    },
  },
  {
    title: 'a process whose clock is behind gains no tokens, and does not change the balance for other processes',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      const behind = await fixture.limiter({ clock: { now: () => fixture.clock.now() - 300_000 } });
      await limiter.config.setSystem({ limits: limits('rpm:60/min') });
      await limiter.acquire(ask({ rpm: 50 }));
      await fixture.clock.advance(5_000);
      assert.deepEqual([await limiter.available(USER), await behind.available(USER)], [{ rpm: 15 }, { rpm: 10 }]);
      await behind.acquire(ask({ rpm: 10 }));
      assert.equal((await denial(behind, ask({ rpm: 1 }))).retryAfterMs, 296_000);
      await limiter.acquire(ask({ rpm: 5 }));
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 1_000);
    },
  },
  {
    title: 'a refill that a process with a clock ahead has already counted is not counted again',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const ahead = await fixture.limiter({ clock: { now: () => fixture.clock.now() + 5_000 } });
      await limiter.config.setSystem({ limits: limits('rpm:60/min') });
      await limiter.acquire(ask({ rpm: 60 }));
      await ahead.acquire(ask({ rpm: 5 }));
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 6_000);
    },
  },
];

const untilAvailable: readonly Case[] = [
  {
    title: 'timeUntilAvailable returns the time until an ask would fit, and takes nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min', 'slots:1/concurrent');
      assert.equal(await limiter.timeUntilAvailable(ask({ rpm: 60, slots: 1 })), 0);
      await limiter.acquire(ask({ rpm: 60 }));
      assert.equal(await limiter.timeUntilAvailable(ask({ rpm: 4 })), 4_000);
      assert.equal(await limiter.timeUntilAvailable(ask({ rpm: 61 })), null);
      assert.equal(await limiter.timeUntilAvailable(ask({ slots: 1 })), 0);
    },
  },
  {
    title: 'timeUntilAvailable returns the wait of a denial, for rates and slots together',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min', 'slots:1/concurrent');
      await limiter.acquire(ask({ rpm: 60, slots: 1 }, { leaseTtlMs: 30_000 }));
      const both = ask({ rpm: 2, slots: 1 });
      assert.equal(await limiter.timeUntilAvailable(both), 30_000);
      await assertExactWait(fixture, limiter, both, 30_000);
    },
  },
];

/** Advances the clock, while calls sleep on it, until the promise is settled. */
async function passUntil(fixture: Fixture, promise: Promise<unknown>): Promise<void> {
  const settled = new AbortController();
  const note = (): void => settled.abort();
  promise.then(note, note);
  while (!settled.signal.aborted) {
    await until('a promise to settle', () => settled.signal.aborted || fixture.clock.sleepers > 0);
    if (!settled.signal.aborted) await fixture.clock.advance(10);
  }
}

const inLine: readonly Case[] = [
  {
    title: 'an acquire that waits is granted at the announced time',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      const waiter = limiter.acquire(ask({ rpm: 3 }, { wait: { timeoutMs: 5_000 } }));
      const startMs = fixture.clock.now();
      await fixture.asleep(1);
      await passUntil(fixture, waiter);
      assert.deepEqual((await waiter).consumed, { rpm: 3 });
      assert.equal(fixture.clock.now() - startMs, 3_000);
    },
  },
  {
    title: 'an acquire is denied at once if the announced wait is longer than its timeout',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      assert.equal((await denial(limiter, ask({ rpm: 6 }, { wait: { timeoutMs: 5_000 } }))).retryAfterMs, 6_000);
      assert.equal((await denial(limiter, ask({ rpm: 61 }, { wait: { timeoutMs: 5_000 } }))).reason, 'impossible');
      assert.equal(fixture.clock.sleepers, 0);
    },
  },
  {
    title: 'an acquire that waits for a slot is granted when its own process gives one back',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:1/concurrent');
      const holder = await limiter.acquire(ask({ slots: 1 }));
      const waiter = limiter.acquire(ask({ slots: 1 }, { wait: { timeoutMs: 50_000 } }));
      await fixture.asleep(1);
      await holder.release();
      assert.deepEqual((await waiter).consumed, { slots: 1 });
      assert.equal(fixture.clock.sleepers, 0);
    },
  },
  {
    title: 'an acquire that waits for a slot finds one that another process gave back',
    run: async (fixture) => {
      const [limiter, other] = [
        await fixture.limited('slots:1/concurrent'),
        await fixture.limited('slots:1/concurrent'),
      ];
      const holder = await other.acquire(ask({ slots: 1 }));
      const waiter = limiter.acquire(ask({ slots: 1 }, { wait: { timeoutMs: 50_000 } }));
      await fixture.asleep(1);
      await holder.release();
      await passUntil(fixture, waiter);
      assert.deepEqual((await waiter).consumed, { slots: 1 });
    },
  },
  {
    title: 'an acquire that waits for a slot is denied after its timeout',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:1/concurrent');
      await limiter.acquire(ask({ slots: 1 }));
      const waiter = limiter.acquire(ask({ slots: 1 }, { wait: { timeoutMs: 1_000 } }));
      const rejected = assertRejects(waiter, 'limit.exceeded');
      await passUntil(fixture, waiter);
      await rejected;
      assert.deepEqual(await limiter.available(USER), { slots: 0 });
    },
  },
  {
    title: 'acquires that wait in one process are granted in the order of their arrival',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      const wait = { timeoutMs: 60_000 };
      const waiters = times(3, async (at) => limiter.acquire(ask({ rpm: 3 - at }, { wait })));
      for (const [at, waiter] of waiters.entries()) {
        await fixture.asleep(3 - at);
        await fixture.clock.advance(1_000 * (3 - at));
        assert.deepEqual((await waiter).consumed, { rpm: 3 - at });
      }
    },
  },
  {
    title: 'a wait that is aborted rejects with the reason of its signal, and takes nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      const leaving = new AbortController();
      const waiter = limiter.acquire(ask({ rpm: 1 }, { wait: { timeoutMs: 5_000 }, signal: leaving.signal }));
      const rejected = assert.rejects(waiter, /gone home/);
      await fixture.asleep(1);
      leaving.abort(new Error('gone home'));
      await rejected;
      await fixture.clock.advance(1_000);
      assert.deepEqual(await limiter.available(USER), { rpm: 1 });
    },
  },
];

export const waits: readonly Case[] = [...exact, ...untilAvailable, ...inLine];
