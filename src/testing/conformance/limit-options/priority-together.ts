import assert from 'node:assert/strict';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { AcquireRequest, Amounts } from '../../../limiter/acquire/request.js';
import { ask, countGranted, denial, times, USER } from '../kit/asking.js';
import { type Case, until } from '../kit/fixture.js';

/** An ask of class `batch`. */
function batch(consume: Amounts, more: Partial<AcquireRequest> = {}): AcquireRequest {
  return ask(consume, { ...more, priority: 'batch' });
}

const together: readonly Case[] = [
  {
    title: 'of concurrent asks that do not all fit, as many of a class are granted as leave its reserve',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!reserve.batch=0.3');
      const others = await fixture.limited('tpd:100/day!reserve.batch=0.3');
      const asks = times(60, async (at) => (at % 2 === 0 ? limiter : others).tryAcquire(batch({ tpd: 3 })));
      assert.equal(await countGranted(asks), 23);
      assert.deepEqual(await limiter.available(USER), { tpd: 31 });
      assert.equal(await countGranted(times(40, async () => limiter.tryAcquire(ask({ tpd: 1 })))), 31);
    },
    alone: 'it makes its own groups',
  },
  {
    title: 'asks without a class get everything that asks of a class leave, in any order of arrival',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day!reserve.batch=0.4');
      const asks = times(150, (at) => (at % 3 === 0 ? ask({ tpd: 1 }) : batch({ tpd: 1 })));
      const decisions = await Promise.all(asks.map(async (request) => limiter.tryAcquire(request)));
      const production = decisions.filter(({ granted }, at) => granted && at % 3 === 0).length;
      const granted = decisions.filter((decision) => decision.granted).length;
      assert.equal(production, 50, 'an ask without a class was refused although the reserve was there');
      assert.ok(granted >= 60 && granted <= 100, `${granted} were granted`);
      const left = (await limiter.available(USER))['tpd'] ?? 0;
      assert.equal(left, 100 - granted);
      assert.equal(await countGranted(times(left + 1, async () => limiter.tryAcquire(ask({ tpd: 1 })))), left);
    },
    alone: 'it makes its own groups',
  },
];

/** Resolves when this many calls wait in lines. */
async function inLines(limiter: RateLimiter, count: number): Promise<void> {
  await until(`${count} to wait`, () => limiter.waiting().reduce((sum, { depth }) => sum + depth, 0) === count);
}

const waiting: readonly Case[] = [
  {
    title: 'waiting calls without a class are served before those of a class, which keep their order',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min!reserve.batch=0.1');
      await limiter.acquire(ask({ rpm: 60 }));
      const served: string[] = [];
      const wait = { timeoutMs: 3_600_000 };
      const call = async (name: string, request: AcquireRequest): Promise<void> => {
        await limiter.acquire(request);
        served.push(name);
      };
      const calls = [call('batch 1', batch({ rpm: 1 }, { wait })), call('batch 2', batch({ rpm: 1 }, { wait }))];
      await inLines(limiter, 2);
      calls.push(call('web 1', ask({ rpm: 2 }, { wait })), call('web 2', ask({ rpm: 2 }, { wait })));
      for (let step = 0; step < 200 && served.length < 4; step++) {
        await fixture.clock.advance(100);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(calls);
      assert.deepEqual(served, ['web 1', 'web 2', 'batch 1', 'batch 2']);
    },
  },
  {
    title: 'a call is denied at once if its line has as many waiters as it allows',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min!reserve.batch=0.5');
      await limiter.acquire(ask({ rpm: 60 }));
      const wait = { timeoutMs: 60_000, maxWaiting: 2 };
      const left = new AbortController();
      const waiters = times(2, async () => limiter.acquire(ask({ rpm: 1 }, { wait, signal: left.signal })));
      const ended = Promise.allSettled(waiters);
      await inLines(limiter, 2);
      const denied = await denial(limiter, ask({ rpm: 1 }, { wait }));
      assert.equal(denied.reason, 'exhausted');
      assert.ok((denied.retryAfterMs ?? 0) > 0);
      assert.deepEqual(
        limiter.waiting().map(({ depth }) => depth),
        [2],
      );
      left.abort();
      await ended;
      assert.deepEqual(limiter.waiting(), []);
    },
  },
  {
    title: 'waiting shows each line with its limit, class, depth and oldest wait',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min!reserve.batch=0.5');
      await limiter.acquire(ask({ rpm: 60 }));
      const left = new AbortController();
      const wait = { timeoutMs: 60_000 };
      const ended = Promise.allSettled([
        limiter.acquire(batch({ rpm: 1 }, { wait, signal: left.signal })),
        limiter.acquire(ask({ rpm: 9 }, { wait, signal: left.signal })),
      ]);
      await inLines(limiter, 2);
      await fixture.clock.advance(700);
      const line = { ...USER, limit: 'rpm', depth: 1, oldestWaitMs: 700 };
      const lines = [...limiter.waiting()].toSorted((a, b) => ((a.priority ?? '') < (b.priority ?? '') ? -1 : 1));
      assert.deepEqual(lines, [
        { ...line, priority: null },
        { ...line, priority: 'batch' },
      ]);
      left.abort();
      await ended;
    },
  },
];

export const priorityTogether: readonly Case[] = [...together, ...waiting];
