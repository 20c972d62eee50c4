import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { until } from '../../tests/support/models/hand-time.js';
import { memory } from '../backends/embedded/memory.js';
import { Limit } from '../core/limit.js';
import { RateLimiter } from './rate-limiter.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** More than are kept without a limiter. */
const OTHERS = Array.from({ length: 1_010 }, (_, at) => `other-${at}`);
const LIMITS = [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 1)];
const ASK = { entityId: 'user-1', resource: 'gpt-4' };

/** A limiter of a store with a namespace `acme` and many others. */
async function openWithOthers(backend = memory()): Promise<RateLimiter> {
  const first = await RateLimiter.open(backend, { limits: LIMITS });
  for (const name of ['acme', ...OTHERS]) await first.namespaces.register(name);
  return first;
}

/** Opens and closes a limiter in each of the other namespaces. */
async function useOthers(first: RateLimiter): Promise<void> {
  for (const name of OTHERS) await (await first.in(name)).close();
}

async function cachedConfigs(first: RateLimiter): Promise<number> {
  const limiter = await first.in('acme');
  const { entries } = limiter.config.cache.stats();
  await limiter.close();
  return entries;
}

test('a namespace keeps its caches after its last limiter was closed, until 1,000 others were left later', async () => {
  await using first = await openWithOthers();
  const limiters = [await first.in('acme'), await first.in('acme')];
  await limiters[0]?.available(ASK);
  await limiters[0]?.close();
  await useOthers(first);
  expect(limiters[1]?.config.cache.stats().entries).toBe(1);
  expect(await cachedConfigs(first)).toBe(1);
  await limiters[1]?.close();
  expect(await cachedConfigs(first)).toBe(1);
  await useOthers(first);
  expect(await cachedConfigs(first)).toBe(0);
});

test('a namespace whose limiter the process has dropped loses its caches, too', async () => {
  await using first = await openWithOthers();
  await (await first.in('acme')).available(ASK);
  await until(async () => {
    collectGarbage();
    await useOthers(first);
    return (await cachedConfigs(first)) === 0;
  });
});

test('slots that are held in a namespace without a limiter are given back when the store is closed', async () => {
  const backend = memory();
  const first = await openWithOthers(backend);
  await using other = await RateLimiter.open(backend, { limits: LIMITS });
  const limiter = await first.in('acme');
  await limiter.acquire({ ...ASK, consume: { slots: 1 } });
  await limiter.close();
  await useOthers(first);
  const seen = await other.in('acme');
  expect(await seen.available(ASK)).toMatchObject({ slots: 0 });
  await first.close();
  expect(await seen.available(ASK)).toMatchObject({ slots: 1 });
});
