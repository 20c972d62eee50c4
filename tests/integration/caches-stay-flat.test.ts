import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { BucketCache } from '../../src/backends/dynamodb/acquire/bucket-shards.js';
import type { Executor } from '../../src/backends/dynamodb/bucket/executor.js';
import { PRESSURE } from '../../src/backends/dynamodb/bucket/pressure.js';
import { FOREVER_MS } from '../../src/core/pause.js';
import { ConfigCache, type ResolvedRead } from '../../src/limiter/config/config-cache.js';
import { KnownPauses } from '../../src/limiter/outage/known-pauses.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const LOOK_UPS = 1_000_000;
/** A stale iterator over a map of 10,000 entries keeps about 80 MB after a million changes. */
const MOST_MB = 5;

/** How much the heap grows while each of the keys is used in turn. */
function growthMb(keys: readonly string[], use: (key: string) => void): number {
  for (const key of keys) use(key);
  const before = heapMb();
  for (let at = 0; at < LOOK_UPS; at++) use(keys[at % keys.length] ?? '');
  return heapMb() - before;
}

function heapMb(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

const keysOf = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from }, (_, at) => `user-${from + at}`);

test.each([9_000, 15_000, 19_999, 20_000])('look-ups of %d cached buckets take no memory', (count) => {
  const cache = new BucketCache(() => ({ ns: 'n', random: Math.random }) as Executor, Math.random, PRESSURE);
  const use = (key: string): void => void cache.of('n', key, 'gpt-4');
  // One more bucket than fits, so that an eviction has begun to iterate.
  if (count === 20_000) for (const key of keysOf(0, 20_001)) use(key);
  expect(growthMb(keysOf(20_001 - count, 20_001), use)).toBeLessThan(MOST_MB);
});

test('refreshes of 9,900 entries of a config cache that was full take no memory', () => {
  const cache = new ConfigCache();
  const keep = (entityId: string): void => {
    const resolved = {} as ResolvedRead;
    cache.keep({ entityId, resource: 'gpt-4', resolved, bucket: null, fetchedAtMs: 0, generation: 0 }, 0);
  };
  for (const key of keysOf(0, 10_001)) keep(key);
  expect(growthMb(keysOf(101, 10_001), keep)).toBeLessThan(MOST_MB);
});

test('denials of 9,900 paused entities, of which there were more than are kept, take no memory', () => {
  const pauses = new KnownPauses();
  const pause = { endMs: FOREVER_MS, reason: 'billing' };
  const note = (entityId: string): void => pauses.note(entityId, { entityId, resource: null, pause });
  for (const key of keysOf(0, 10_001)) note(key);
  expect(growthMb(keysOf(101, 10_001), note)).toBeLessThan(MOST_MB);
});
