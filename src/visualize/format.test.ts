import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatCount, formatDuration, formatInstant, printable } from './format.js';

test.each([
  [0, '0'],
  [999, '999'],
  [1000, '1,000'],
  [-1234567, '-1,234,567'],
  [12.5, '12.5'],
  [1 / 3, '0.33'],
  [1e12, '1,000,000,000,000'],
])('formatCount writes %d as %s', (value, text) => {
  expect(formatCount(value)).toBe(text);
});

test.each([
  [0, '0 ms'],
  [1, '1 ms'],
  [0.2, '1 ms'],
  [999, '999 ms'],
  [1000, '1 s'],
  [1001, '1.1 s'],
  [12_000, '12 s'],
  [60_000, '1 min'],
  [90_500, '1 min 31 s'],
  [3_599_999, '1 h'],
  [3_600_000 * 25, '1 d 1 h'],
])('formatDuration writes %d ms as %s', (durationMs, text) => {
  expect(formatDuration(durationMs)).toBe(text);
});

const UNITS_MS: Record<string, number> = { d: 86_400_000, h: 3_600_000, min: 60_000, s: 1_000, ms: 1 };

test('formatDuration never writes a shorter duration', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e11 }), (durationMs) => {
      const parts = [...formatDuration(durationMs).matchAll(/([\d.]+) (\w+)/g)];
      const writtenMs = parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS_MS[unit!]!, 0);
      expect(Math.round(writtenMs)).toBeGreaterThanOrEqual(durationMs);
    }),
  );
});

test('formatInstant writes UTC, to the second', () => {
  expect(formatInstant(new Date('2027-01-15T10:00:05.678Z'))).toBe('2027-01-15 10:00:05Z');
});

test('printable escapes control characters', () => {
  expect(printable('a\u001B]0;title\u0007\u202Eb')).toBe('a\\u001b]0;title\\u0007\\u202eb');
  expect(printable('Prodüktion 東京')).toBe('Prodüktion 東京');
});
