import { expect, test } from 'vitest';
import { LargestAsks } from './pressure.js';

const NOW_MS = 1_800_000_000_000;

test('the largest asks are kept for each limit, and a limit that was not asked for has 0', () => {
  const largest = new LargestAsks();
  largest.note([{ name: 'rpm', milli: 1_000 }], NOW_MS);
  largest.note(
    [
      { name: 'rpm', milli: 500 },
      { name: 'tpm', milli: 2n ** 60n },
    ],
    NOW_MS + 1,
  );
  expect(largest.of('rpm')).toBe(1_000);
  expect(largest.of('tpm')).toBe(2 ** 60);
  expect(largest.of('jobs')).toBe(0);
});

test('the largest asks start anew a minute after the first of them', () => {
  const largest = new LargestAsks();
  largest.note([{ name: 'rpm', milli: 9_000 }], NOW_MS);
  largest.note([{ name: 'rpm', milli: 1_000 }], NOW_MS + 59_999);
  expect(largest.of('rpm')).toBe(9_000);
  largest.note([{ name: 'rpm', milli: 2_000 }], NOW_MS + 60_000);
  expect(largest.of('rpm')).toBe(2_000);
});
