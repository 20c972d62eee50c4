import { describe, expect, test } from 'vitest';
import { imageOf, NOW_MS } from '../../../../tests/support/shard-images.js';
import { ImageMemory } from './image-memory.js';

const IMAGE = imageOf([]);

describe('what a process remembers of a shard', () => {
  test('is nothing at first, and nothing that could deny', () => {
    const memory = new ImageMemory();
    expect(memory.image).toBeNull();
    expect(memory.trustAt(NOW_MS, 1_000)).toBe('guess');
    expect(memory.isKnownAbsent(NOW_MS, 1_000)).toBe(false);
  });

  test('is young for as long as denials may rest on it, and a guess from then on', () => {
    const memory = new ImageMemory();
    memory.keep(IMAGE, NOW_MS);
    expect(memory.image).toBe(IMAGE);
    expect([0, 999, 1_000].map((ageMs) => memory.trustAt(NOW_MS + ageMs, 1_000))).toEqual(['young', 'young', 'guess']);
  });

  test('is never young where denials may not rest on it, nor for a clock that went back', () => {
    const memory = new ImageMemory();
    memory.keep(IMAGE, NOW_MS);
    expect(memory.trustAt(NOW_MS, 0)).toBe('guess');
    expect(memory.trustAt(NOW_MS - 1, 1_000)).toBe('guess');
  });

  test('may be that there is no such shard, for as long', () => {
    const memory = new ImageMemory();
    memory.keep(null, NOW_MS);
    expect([0, 999, 1_000].map((ageMs) => memory.isKnownAbsent(NOW_MS + ageMs, 1_000))).toEqual([true, true, false]);
    memory.keep(IMAGE, NOW_MS);
    expect(memory.isKnownAbsent(NOW_MS, 1_000)).toBe(false);
  });

  test('can be forgotten: then nobody knows whether there is one', () => {
    const memory = new ImageMemory();
    memory.keep(IMAGE, NOW_MS);
    memory.forget();
    expect(memory.image).toBeNull();
    memory.keep(null, NOW_MS);
    memory.forget();
    expect(memory.isKnownAbsent(NOW_MS, 1_000)).toBe(false);
  });
});
