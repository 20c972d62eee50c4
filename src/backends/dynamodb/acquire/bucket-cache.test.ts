import { expect, test } from 'vitest';
import type { Executor } from '../bucket/executor.js';
import { PRESSURE } from '../bucket/pressure.js';
import { BucketCache } from './bucket-shards.js';

const BOUND = 20_000;
const NO_STORE = { ns: 'n', random: Math.random } as Executor;

const open = (): ((entity: number) => ReturnType<BucketCache['of']>) => {
  const cache = new BucketCache(() => NO_STORE, Math.random, PRESSURE);
  return (entity) => cache.of('n', `user-${entity}`, 'gpt-4');
};

test('beyond its bound the cache evicts the oldest buckets that were not used again, in their order', () => {
  const of = open();
  const first = Array.from({ length: BOUND }, (_, entity) => of(entity));
  // Used again, so that the next eviction takes the second bucket.
  of(0);
  for (let entity = BOUND; entity < BOUND + 3; entity++) of(entity);
  expect(of(0)).toBe(first[0]);
  expect(of(4)).toBe(first[4]);
  for (const evicted of [1, 2, 3]) expect(of(evicted)).not.toBe(first[evicted]);
});

test('a bucket with a write under way is not evicted, and is evicted once the write has ended', () => {
  const of = open();
  const first = Array.from({ length: BOUND }, (_, entity) => of(entity));
  let isBusy = true;
  Object.defineProperty(first[0] as object, 'busy', { get: () => isBusy });
  for (let entity = BOUND; entity < 2 * BOUND; entity++) of(entity);
  expect([...first.keys()].filter((entity) => entity < 3 && of(entity) === first[entity])).toEqual([0]);
  isBusy = false;
  for (let entity = 2 * BOUND; entity < 4 * BOUND; entity++) of(entity);
  expect(of(0)).not.toBe(first[0]);
});

test('a cache whose buckets all have a write under way evicts none', () => {
  const of = open();
  const busy = (entity: number) => Object.defineProperty(of(entity), 'busy', { value: true });
  const first = Array.from({ length: BOUND }, (_, entity) => busy(entity));
  busy(BOUND);
  expect(of(0)).toBe(first[0]);
});

test('a bucket that is used once in each round of evictions is never evicted, and one that is not used any more is', () => {
  const of = open();
  const [busy, left] = [of(0), of(1)];
  of(1);
  for (let entity = 2; entity < 3 * BOUND; entity++) {
    of(entity);
    if (entity % (BOUND / 2) === 0) expect(of(0)).toBe(busy);
  }
  expect(of(1)).not.toBe(left);
});

test('a new bucket is not the one that is evicted for it, also when all others have a write under way', () => {
  const of = open();
  for (let entity = 0; entity < BOUND; entity++) Object.defineProperty(of(entity), 'busy', { value: true });
  expect(of(BOUND)).toBe(of(BOUND));
});
