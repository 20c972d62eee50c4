import { expect, test } from 'vitest';
import type { Backend } from '../backend.js';
import { memory } from '../backends/embedded/memory.js';
import { Limit } from '../core/limit.js';
import { RateLimiter } from './rate-limiter.js';

const STORE_MS = Date.parse('2040-01-15T08:00:00Z');
const ASK = { entityId: 'ann', resource: 'gpt', consume: { slots: 1 }, leaseTtlMs: 60_000 };
const LIMITS = [Limit.concurrent('slots', 1)];

/** A store that has its own time, known after its first answer. */
function storeWithTime(storeMs: number | null): Backend {
  const store = memory({ namespaces: ['default'] });
  let toldMs: number | null = null;
  return {
    ...store,
    open: (timeoutMs) => {
      toldMs = storeMs;
      return store.open(timeoutMs);
    },
    storeTimeMs: () => toldMs,
  };
}

test('a limiter decides by the time of its store', async () => {
  const limiter = await RateLimiter.open(storeWithTime(STORE_MS), { limits: LIMITS });
  expect((await limiter.acquire(ASK)).expiresAt).toEqual(new Date(STORE_MS + 60_000));
});

test('a limiter decides by the clock of its machine while the time of the store is not known', async () => {
  const limiter = await RateLimiter.open(storeWithTime(null), { limits: LIMITS });
  const { expiresAt } = await limiter.acquire(ASK);
  expect(expiresAt?.getUTCFullYear()).toBe(new Date(Date.now() + 60_000).getUTCFullYear());
});

test('a clock that the caller passes is used unchanged', async () => {
  const limiter = await RateLimiter.open(storeWithTime(STORE_MS), { limits: LIMITS, clock: { now: () => 5_000 } });
  expect((await limiter.acquire(ASK)).expiresAt).toEqual(new Date(65_000));
});
