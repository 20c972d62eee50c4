import { describe, expect, test } from 'vitest';
import { imageOf, NOW_MS } from '../../../../tests/support/dynamodb/shard-images.js';
import { ImageMemory } from './image-memory.js';

const IMAGE = imageOf([]);

describe('the cached image of a shard', () => {
  test('a new cache has no image, and denies nothing', () => {
    const memory = new ImageMemory();
    expect(memory.image).toBeNull();
    expect(memory.trustAt(NOW_MS, 1_000)).toBe('guess');
    expect(memory.isKnownAbsent(NOW_MS, 1_000)).toBe(false);
  });

  test('an image is young for denyCacheMs and a guess after that', () => {
    const memory = new ImageMemory();
    memory.keep(IMAGE, NOW_MS);
    expect(memory.image).toBe(IMAGE);
    expect([0, 999, 1_000].map((ageMs) => memory.trustAt(NOW_MS + ageMs, 1_000))).toEqual(['young', 'young', 'guess']);
  });

  test('an image is never young if denyCacheMs is 0 or the clock went back', () => {
    const memory = new ImageMemory();
    memory.keep(IMAGE, NOW_MS);
    expect(memory.trustAt(NOW_MS, 0)).toBe('guess');
    expect(memory.trustAt(NOW_MS - 1, 1_000)).toBe('guess');
  });

  test('an absent shard is known to be absent for denyCacheMs', () => {
    const memory = new ImageMemory();
    memory.keep(null, NOW_MS);
    expect([0, 999, 1_000].map((ageMs) => memory.isKnownAbsent(NOW_MS + ageMs, 1_000))).toEqual([true, true, false]);
    memory.keep(IMAGE, NOW_MS);
    expect(memory.isKnownAbsent(NOW_MS, 1_000)).toBe(false);
  });

  test('a cache that was cleared knows neither an image nor an absence', () => {
    const memory = new ImageMemory();
    memory.keep(IMAGE, NOW_MS);
    memory.forget();
    expect(memory.image).toBeNull();
    memory.keep(null, NOW_MS);
    memory.forget();
    expect(memory.isKnownAbsent(NOW_MS, 1_000)).toBe(false);
  });
});
