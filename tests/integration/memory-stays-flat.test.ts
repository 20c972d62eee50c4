import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { memory } from '../../src/backends/embedded/memory.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapMb(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

test('1,000,000 one-shot entities do not increase the memory of the process', { timeout: 120_000 }, async () => {
  const clock = fakeClock();
  const limits = [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 6_000)];
  const limiter = await RateLimiter.open(memory(), { limits, clock });
  const oneShots = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n++) {
      await limiter.acquire({ entityId: `visitor-${n}`, resource: 'gpt-4', consume: { rpm: 1, tpm: 50 } });
      clock.set(clock.now() + 1);
    }
  };
  // Caches and usage windows are bounded. They are full after these entities, and must not grow further.
  await oneShots(0, 100_000);
  const early = heapMb();
  await oneShots(100_000, 1_000_000);
  expect(heapMb() - early).toBeLessThan(5);
});

test('a bucket that was evicted gives the same answers as before', async () => {
  const clock = fakeClock();
  const limiter = await RateLimiter.open(memory(), { limits: [Limit.perMinute('rpm', 60)], clock });
  const visit = (n: number) =>
    limiter.tryAcquire({ entityId: `visitor-${n}`, resource: 'gpt-4', consume: { rpm: 60 } });
  await visit(0);
  await clock.advance(30_000);
  for (let n = 1; n < 30_000; n++) await visit(n);
  expect(await limiter.available({ entityId: 'visitor-0', resource: 'gpt-4' })).toEqual({ rpm: 30 });
  await clock.advance(60_000);
  for (let n = 30_000; n < 60_000; n++) await visit(n);
  expect(await limiter.available({ entityId: 'visitor-0', resource: 'gpt-4' })).toEqual({ rpm: 60 });
});
