import { expect, test } from 'vitest';
import { Durations } from './durations.js';
import { formatAtMost } from './format.js';

test('a quantile is of the last one to two windows: a spike that is over leaves it', () => {
  const durations = new Durations(30_000);
  for (let second = 0; second < 60; second++) durations.add(second * 1_000, 400);
  expect(durations.quantile(59_000, 0.95)).toBe(500);
  for (let second = 60; second < 120; second++) durations.add(second * 1_000, 3);
  expect(durations.quantile(119_000, 0.95)).toBe(5);
  expect(durations.quantile(300_000, 0.5)).toBeNull();
});

test('durations above 60 s have a quantile too', () => {
  const waits = new Durations(30_000);
  for (const waitMs of [1, 90_000, 90_000]) waits.add(0, waitMs);
  const texts = [0.3, 0.5, 0.95].map((share) => formatAtMost(waits.quantile(0, share)));
  expect(texts).toEqual(['≤ 1 ms', '> 60 s', '> 60 s']);
});
