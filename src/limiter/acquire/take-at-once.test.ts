import { expect, test } from 'vitest';
import type { Backend } from '../../backend.js';
import { memory } from '../../backends/embedded/memory.js';
import { Limit } from '../../core/limit.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { RateLimiter } from '../rate-limiter.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
const LIMITS = [Limit.perMinute('rpm', 10), Limit.perMinute('tpm', 10), Limit.concurrent('slots', 2)];

/** Counts the acquires that reach `consume`, without replacing it, and those that a resident bucket grants. */
function counted(): { readonly backend: Backend; readonly counts: { resident: number } } {
  const inner = memory();
  const counts = { resident: 0 };
  const resident = inner.resident!;
  const take: typeof resident.take = (...args) => {
    const taken = resident.take(...args);
    if (taken) counts.resident += 1;
    return taken;
  };
  return { backend: { ...inner, resident: { ...resident, take } }, counts };
}

test('the second acquire of an entity takes from its resident bucket, and both count the same', async () => {
  const { backend, counts } = counted();
  const limiter = await RateLimiter.open(backend, { limits: LIMITS, clock: fakeClock() });
  const [first, second] = [await limiter.acquire(ASK), await limiter.acquire(ASK)];
  expect(counts.resident).toBe(1);
  const viewOf = ({ entityId, resource, consumed, decidedBy, state, expiresAt }: typeof first) => {
    return { entityId, resource, consumed, decidedBy, state, expiresAt };
  };
  expect(viewOf(second)).toEqual(viewOf(first));
  expect(await limiter.available(ASK)).toMatchObject({ rpm: 8, tpm: 10 });
  await second.rollback();
  expect(await limiter.available(ASK)).toMatchObject({ rpm: 9 });
});

test('a lease of a resident bucket keeps its amounts when the caller changes the request object', async () => {
  const limiter = await RateLimiter.open(memory(), { limits: LIMITS, clock: fakeClock() });
  const request = { ...ASK, consume: { rpm: 2 } };
  await limiter.acquire(request);
  const lease = await limiter.acquire(request);
  request.consume.rpm = 7;
  request.entityId = 'user-2';
  expect([lease.entityId, lease.consumed]).toEqual(['user-1', { rpm: 2 }]);
});

test('a wrapper that replaces consume sees every acquire', async () => {
  const inner = memory();
  let seen = 0;
  const consume: Backend['consume'] = (call, request) => {
    seen += 1;
    return inner.consume(call, request);
  };
  const limiter = await RateLimiter.open({ ...inner, consume }, { limits: LIMITS, clock: fakeClock() });
  for (let time = 0; time < 5; time++) await limiter.acquire(ASK);
  expect(seen).toBe(5);
});

test.each([
  ['brings its own limits', { limits: [Limit.perMinute('rpm', 5)] }],
  ['has a leaseTtlMs', { leaseTtlMs: 5_000 }],
  ['asks for slots', { consume: { slots: 1 } }],
])('a request that %s does not take from the resident bucket', async (_, change) => {
  const { backend, counts } = counted();
  const limiter = await RateLimiter.open(backend, { limits: LIMITS, clock: fakeClock() });
  await limiter.acquire(ASK);
  await limiter.acquire({ ...ASK, ...change });
  expect(counts.resident).toBe(0);
});

test('a resident bucket that has room for one of two limits takes from neither', async () => {
  const limiter = await RateLimiter.open(memory(), { limits: LIMITS, clock: fakeClock() });
  await limiter.acquire({ ...ASK, consume: { rpm: 1, tpm: 9 } });
  await expect(limiter.acquire({ ...ASK, consume: { rpm: 1, tpm: 2 } })).rejects.toThrow();
  expect(await limiter.available(ASK)).toMatchObject({ rpm: 9, tpm: 1 });
});

test('onDecision is called for an acquire from a resident bucket', async () => {
  const granted: boolean[] = [];
  const onDecision = (event: { readonly granted: boolean }) => granted.push(event.granted);
  const limiter = await RateLimiter.open(memory(), { limits: LIMITS, clock: fakeClock(), onDecision });
  await limiter.acquire(ASK);
  await limiter.acquire(ASK);
  expect(granted).toEqual([true, true]);
});

test('a closed limiter does not take from a resident bucket', async () => {
  const backend = memory();
  const limiter = await RateLimiter.open(backend, { limits: LIMITS, clock: fakeClock() });
  await limiter.acquire(ASK);
  await limiter.close();
  await expect(limiter.acquire(ASK)).rejects.toThrow('closed');
});
