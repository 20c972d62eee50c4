import { expect, test } from 'vitest';
import type { Backend } from '../backend.js';
import { memory } from '../backends/embedded/memory.js';
import { Limit } from '../core/limit.js';
import { RateLimiter } from './rate-limiter.js';

const FIVE_MINUTES_MS = 300_000;

/** A store whose clock differs from this machine's by `offsetMs`, which its first answer tells. */
function storeThatIsOff(offsetMs: number): Backend {
  const store = memory({ namespaces: ['default'] });
  let toldMs: number | null = null;
  return {
    ...store,
    open: (timeoutMs) => {
      toldMs = offsetMs;
      return store.open(timeoutMs);
    },
    clockOffsetMs: () => toldMs,
  };
}

test.each([-FIVE_MINUTES_MS, FIVE_MINUTES_MS])(
  'decides by the time of a store that is off by %d ms',
  async (offset) => {
    const limiter = await RateLimiter.open(storeThatIsOff(offset), { limits: [Limit.concurrent('slots', 1)] });
    const before = Date.now();
    const lease = await limiter.acquire({
      entityId: 'ann',
      resource: 'gpt',
      consume: { slots: 1 },
      leaseTtlMs: 60_000,
    });
    const acquiredMs = (lease.expiresAt?.getTime() ?? 0) - 60_000;
    expect(acquiredMs).toBeGreaterThanOrEqual(before + offset);
    expect(acquiredMs).toBeLessThanOrEqual(Date.now() + offset);
  },
);
