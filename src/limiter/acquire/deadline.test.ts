import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Awaitable, Backend } from '../../backend.js';
import { memory } from '../../backends/embedded/memory.js';
import { isHeadgateError } from '../../core/errors.js';
import { Limit } from '../../core/limit.js';
import { type FakeClock, fakeClock } from '../../testing/fake-clock.js';
import { RateLimiter } from '../rate-limiter.js';

const ASK = { entityId: 'level-0', resource: 'gpt-4', consume: { rpm: 1 } };
const LIMITS = [Limit.perMinute('rpm', 60)];

interface Delays {
  /** The delay of the config read of each level, the entity first. */
  readonly configMs: readonly number[];
  readonly bucketMs: number;
}

const CALLS = {
  acquire: (limiter: RateLimiter) => limiter.acquire(ASK),
  tryAcquire: (limiter: RateLimiter) => limiter.tryAcquire(ASK),
  status: (limiter: RateLimiter) => limiter.status(ASK),
  available: (limiter: RateLimiter) => limiter.available(ASK),
  peek: (limiter: RateLimiter) => limiter.peek(ASK),
  timeUntilAvailable: (limiter: RateLimiter) => limiter.timeUntilAvailable(ASK),
} as const;

/** A store whose answers are delayed. */
function slowBackend(clock: FakeClock, delays: () => Delays): Backend {
  const inner = memory();
  const late = async <T>(ms: number, work: () => Awaitable<T>): Promise<T> => {
    await clock.sleep(ms);
    return work();
  };
  return {
    ...inner,
    consume: (...args) => late(delays().bucketMs, () => inner.consume(...args)),
    peek: (...args) => late(delays().bucketMs, () => inner.peek(...args)),
    config: {
      ...inner.config,
      readFor: (call, entityId, ...rest) =>
        late(delays().configMs[Number(entityId.slice('level-'.length))] ?? 0, () =>
          inner.config.readFor(call, entityId, ...rest),
        ),
    },
  };
}

/** Creates `level-0` under `level-1` and so on, in a store that is slow afterwards. */
async function chainOf(delays: Delays, timeouts: { readonly callMs: number; readonly acquireMs: number }) {
  const clock = fakeClock();
  let current: Delays = { configMs: [], bucketMs: 0 };
  const limiter = await RateLimiter.open(
    slowBackend(clock, () => current),
    { clock, timeouts, limits: LIMITS },
  );
  for (let level = delays.configMs.length - 1; level >= 0; level--) {
    const isTop = level === delays.configMs.length - 1;
    const under = isTop ? {} : { parentId: `level-${level + 1}`, cascade: true };
    await limiter.entities.create({ id: `level-${level}`, ...under });
  }
  current = delays;
  return { clock, limiter };
}

/** The outcome of a call and how long it took. */
async function outcomeOf(clock: FakeClock, call: Promise<unknown>, advanceMs = 60_000) {
  const startMs = clock.now();
  const ended = call.then(
    () => ({ ok: true, afterMs: clock.now() - startMs }),
    (error: unknown) => {
      if (!isHeadgateError(error, 'backend.unavailable')) throw error;
      return { ok: false, afterMs: clock.now() - startMs };
    },
  );
  await clock.advance(advanceMs);
  return ended;
}

describe('the deadline of a call', () => {
  test.each(Object.entries(CALLS))(
    '%s over a chain of 8 levels, each read of which takes 0.9 s, ends after acquireMs',
    async (_, call) => {
      const delays = { configMs: Array.from({ length: 8 }, () => 900), bucketMs: 900 };
      const { clock, limiter } = await chainOf(delays, { callMs: 1_000, acquireMs: 2_000 });
      expect(await outcomeOf(clock, call(limiter))).toEqual({ ok: false, afterMs: 2_000 });
    },
  );

  test('a call ends within acquireMs whatever the delays, and succeeds if they are short enough', async () => {
    const delay = fc.integer({ min: 0, max: 1_200 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(delay, { minLength: 1, maxLength: 8 }),
        delay,
        fc.integer({ min: 1, max: 1_500 }),
        fc.integer({ min: 1, max: 4_000 }),
        fc.constantFrom(...Object.values(CALLS)),
        async (configMs, bucketMs, callMs, acquireMs, call) => {
          const { clock, limiter } = await chainOf({ configMs, bucketMs }, { callMs, acquireMs });
          const { ok, afterMs } = await outcomeOf(clock, call(limiter));
          expect(afterMs).toBeLessThanOrEqual(acquireMs);
          const neededMs = configMs.reduce((sum, ms) => sum + ms, bucketMs);
          const isPossible = Math.max(bucketMs, ...configMs) < callMs && neededMs < acquireMs;
          expect(ok).toBe(isPossible || (ok && neededMs <= acquireMs));
        },
      ),
      // Two calls of the store that each take the whole time.
      { numRuns: 60, examples: [[[1], 1, 1, 1, CALLS.timeUntilAvailable]] },
    );
  });

  test('no write is sent after the config reads have used up the time', async () => {
    const delays = { configMs: [900, 900, 900], bucketMs: 0 };
    const { clock, limiter } = await chainOf(delays, { callMs: 1_000, acquireMs: 2_000 });
    expect(await outcomeOf(clock, limiter.acquire(ASK))).toEqual({ ok: false, afterMs: 2_000 });
    expect(await limiter.buckets.get(ASK)).toBeNull();
  });

  test('a caller that times out does not end a read that another caller shares', async () => {
    const { clock, limiter } = await chainOf(
      { configMs: [900, 900, 900], bucketMs: 0 },
      { callMs: 1_000, acquireMs: 2_000 },
    );
    const long = outcomeOf(clock, limiter.acquire(ASK), 0);
    await clock.advance(1_900);
    // The read of level-2 began 100 ms ago, for a caller that has 100 ms left.
    const short = limiter.acquire({ ...ASK, entityId: 'level-2' });
    await clock.advance(900);
    expect(await long).toEqual({ ok: false, afterMs: 2_000 });
    expect((await short).state).toBe('open');
  });

  test('after a failed read of the first level the cached configs of its parents are used', async () => {
    const delays = { configMs: [10, 10, 10], bucketMs: 10 };
    const { clock, limiter } = await chainOf(delays, { callMs: 1_000, acquireMs: 2_000 });
    expect(await outcomeOf(clock, limiter.acquire(ASK))).toMatchObject({ ok: true });
    await clock.advance(60_000);
    delays.configMs.fill(5_000);
    expect(await outcomeOf(clock, limiter.acquire(ASK))).toEqual({ ok: true, afterMs: 1_010 });
  });

  test('a call leaves no timer behind', async () => {
    const { clock, limiter } = await chainOf(
      { configMs: [900, 900], bucketMs: 10 },
      { callMs: 1_000, acquireMs: 2_000 },
    );
    const asked = limiter.acquire(ASK);
    await clock.advance(1_810);
    await asked;
    expect(clock.sleepers).toBe(0);
  });
});
