import { describe, expect, test } from 'vitest';
import { imageOf, KEY, NOW_MS } from '../../../../tests/support/dynamodb/shard/shard-images.js';
import type { Executor } from '../bucket/executor.js';
import { PRESSURE } from '../bucket/pressure.js';
import { Shard } from './shard.js';

const IMAGE = imageOf([]);
/** Nothing here is sent. */
const UNUSED = {} as Executor;

const openShard = (): Shard => new Shard(UNUSED, KEY, PRESSURE);

describe('the cached image of a shard', () => {
  test('a new cache has no image, and denies nothing', () => {
    const shard = openShard();
    expect(shard.image).toBeNull();
    expect(shard.cachedAt(NOW_MS, 1_000).trust).toBe('guess');
    expect(shard.cachedAt(NOW_MS, 1_000).isAbsent).toBe(false);
  });

  test('an image is young for denyCacheMs and a guess after that', () => {
    const shard = openShard();
    shard.see(IMAGE, NOW_MS);
    expect(shard.image).toBe(IMAGE);
    expect([0, 999, 1_000].map((ageMs) => shard.cachedAt(NOW_MS + ageMs, 1_000).trust)).toEqual([
      'young',
      'young',
      'guess',
    ]);
  });

  test('an image is never young if denyCacheMs is 0 or the clock went back', () => {
    const shard = openShard();
    shard.see(IMAGE, NOW_MS);
    expect(shard.cachedAt(NOW_MS, 0).trust).toBe('guess');
    expect(shard.cachedAt(NOW_MS - 1, 1_000).trust).toBe('guess');
  });

  test('an absent shard is known to be absent for denyCacheMs', () => {
    const shard = openShard();
    shard.see(null, NOW_MS);
    expect([0, 999, 1_000].map((ageMs) => shard.cachedAt(NOW_MS + ageMs, 1_000).isAbsent)).toEqual([true, true, false]);
    shard.see(IMAGE, NOW_MS);
    expect(shard.cachedAt(NOW_MS, 1_000).isAbsent).toBe(false);
  });

  test('a cache that was cleared knows neither an image nor an absence', () => {
    const shard = openShard();
    shard.see(IMAGE, NOW_MS);
    shard.forget();
    expect(shard.image).toBeNull();
    shard.see(null, NOW_MS);
    shard.forget();
    expect(shard.cachedAt(NOW_MS, 1_000).isAbsent).toBe(false);
  });
});
