import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import { outage } from '../../../src/testing/outage.js';

/** rpm 60 (one a second), tpm 6,000 (100 a second), slots 2. */
export const LIMITS = [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 6_000), Limit.concurrent('slots', 2)];

export const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 500 } };
export const ASK_SLOT = { ...ASK, consume: { rpm: 1, tpm: 500, slots: 1 } };

/** A limiter over a memory store that can be made to fail, on a fake clock, with the errors of `onError`. */
export async function openLimiter(options: LimiterOptions = {}) {
  const clock = fakeClock();
  const store = outage(memory());
  const errors: { readonly error: unknown; readonly where: string }[] = [];
  const limiter = await RateLimiter.open(store.backend, {
    limits: LIMITS,
    clock,
    onError: (error, where) => errors.push({ error, where }),
    ...options,
  });
  return { clock, store, errors, limiter };
}

/** Calls of the store that write. */
export function writes(calls: readonly string[]): readonly string[] {
  const changing = ['consume', 'adjust', 'extend', 'config.write', 'entities.create', 'namespaces.register'];
  return calls.filter((call) => changing.includes(call));
}
