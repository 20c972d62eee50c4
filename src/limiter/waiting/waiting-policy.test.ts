import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ASK_SLOT, openLimiter } from '../../../tests/support/models/open-limiter.js';
import { distantBackend } from '../../../tests/support/models/distant-backend.js';
import { memory } from '../../backends/embedded/memory.js';
import { ON_UNAVAILABLE } from '../../core/config/config.js';
import { Limit } from '../../core/limit.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { RateLimiter } from '../rate-limiter.js';

test('a store that answers acquires decides every wait, whatever the policy and whichever other call fails', async () => {
  const property = fc.asyncProperty(
    fc.constantFrom(...ON_UNAVAILABLE),
    fc.array(fc.record({ timeoutMs: fc.integer({ min: 0, max: 1_500 }), slots: fc.integer({ min: 1, max: 2 }) }), {
      minLength: 1,
      maxLength: 12,
    }),
    async (onUnavailable, waits) => {
      const { limiter, clock, store } = await openLimiter({ onUnavailable });
      await limiter.acquire({ ...ASK_SLOT, consume: { slots: 2 } });
      store.start({ only: ['peek', 'config.readFor'] });
      const decisions = waits.map(async ({ timeoutMs, slots }) =>
        limiter.tryAcquire({ ...ASK_SLOT, consume: { slots }, wait: { timeoutMs } }),
      );
      await clock.advance(2_000);
      for (const decision of await Promise.all(decisions)) {
        expect(decision).toMatchObject({ granted: false, decidedBy: expect.stringMatching(/^(store|deny-cache)$/) });
      }
      expect(clock.sleepers).toBe(0);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test('1,000 waiters for 4 slots that are held are all denied under the policy allow', async () => {
  const clock = fakeClock();
  // At most 300 calls are in flight at a time, as with a client that has a connection pool.
  const store = distantBackend(memory(), clock, 200, 300);
  const limits = [Limit.concurrent('slots', 4)];
  const limiter = await RateLimiter.open(store.backend, { limits, clock, onUnavailable: 'allow' });
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { slots: 1 } };
  const held = limiter.acquire({ ...ask, consume: { slots: 4 } });
  await clock.advance(200);
  await held;
  const decisions = Array.from({ length: 1_000 }, async () =>
    limiter.tryAcquire({ ...ask, wait: { timeoutMs: 1_000 } }),
  );
  await clock.advance(5_000);
  const answers = (await Promise.all(decisions)).map(({ granted, decidedBy }) => `${granted} by ${decidedBy}`);
  expect(new Set(answers)).toEqual(new Set(['false by store']));
  expect(store.calls.filter((name) => name === 'peek')).toEqual([]);
});
