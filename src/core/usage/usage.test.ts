import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Int, toInt } from '../int.js';
import {
  addUsage,
  NO_USAGE,
  USAGE_WINDOWS,
  type UsageCounts,
  type UsageWindow,
  windowEnd,
  windowStart,
} from './usage.js';

const RUNS = { numRuns: 2_000 };

const instant = fc.oneof(
  fc.integer({ min: 0, max: Date.UTC(2200, 0, 1) }),
  // Near the ends of days and months, where one window ends and the next begins.
  fc
    .tuple(fc.integer({ min: 0, max: 80_000 }), fc.integer({ min: -2, max: 2 }))
    .map(([day, off]) => Math.max(0, day * 86_400_000 + off)),
);
const anyWindow = fc.constantFrom<UsageWindow>(...USAGE_WINDOWS);

/** The window's start by the calendar: the ISO text of the instant, truncated. */
function startByCalendar(window: UsageWindow, atMs: number): string {
  const text = new Date(atMs).toISOString();
  if (window === 'hourly') return `${text.slice(0, 13)}:00:00.000Z`;
  if (window === 'daily') return `${text.slice(0, 10)}T00:00:00.000Z`;
  return `${text.slice(0, 7)}-01T00:00:00.000Z`;
}

test('usage windows begin where the UTC calendar says', () => {
  fc.assert(
    fc.property(anyWindow, instant, (window, atMs) => {
      expect(new Date(windowStart(window, atMs)).toISOString()).toBe(startByCalendar(window, atMs));
    }),
    RUNS,
  );
});

test('a usage window ends where the next begins, so that each instant is in exactly one', () => {
  fc.assert(
    fc.property(anyWindow, instant, (window, atMs) => {
      const startMs = windowStart(window, atMs);
      const endMs = windowEnd(window, startMs);
      expect(startMs <= atMs && atMs < endMs).toBe(true);
      expect(windowStart(window, startMs)).toBe(startMs);
      expect(windowStart(window, endMs)).toBe(endMs);
      expect(windowStart(window, endMs - 1)).toBe(startMs);
    }),
    RUNS,
  );
});

test('usage windows are a whole number of hours long', () => {
  fc.assert(
    fc.property(anyWindow, instant, (window, atMs) => {
      const startMs = windowStart(window, atMs);
      expect(startMs).toBe(windowStart(window, windowStart('hourly', atMs)));
      expect((windowEnd(window, startMs) - startMs) % 3_600_000).toBe(0);
    }),
    RUNS,
  );
});

test('hourly, daily and monthly windows that begin at the same midnight stay separate', () => {
  const midnight = Date.UTC(2027, 2, 1);
  for (const window of USAGE_WINDOWS) {
    expect(windowStart(window, midnight)).toBe(midnight);
    expect(windowStart(window, midnight - 1)).toBeLessThan(midnight);
  }
  expect(windowStart('hourly', midnight - 1)).toBe(Date.UTC(2027, 1, 28, 23));
  expect(windowStart('daily', midnight - 1)).toBe(Date.UTC(2027, 1, 28));
  expect(windowStart('monthly', midnight - 1)).toBe(Date.UTC(2027, 1, 1));
});

test('monthly windows have the lengths of the calendar, also in leap years', () => {
  const days = (year: number, month: number): number => {
    const startMs = Date.UTC(year, month, 1);
    return (windowEnd('monthly', startMs) - startMs) / 86_400_000;
  };
  expect(Array.from({ length: 12 }, (_, month) => days(2027, month))).toEqual([
    31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31,
  ]);
  expect([days(2028, 1), days(2000, 1), days(2100, 1)]).toEqual([29, 29, 28]);
  expect(windowEnd('monthly', Date.UTC(2027, 11, 1))).toBe(Date.UTC(2028, 0, 1));
});

const amount: fc.Arbitrary<Int> = fc.bigInt({ min: -(2n ** 60n), max: 2n ** 60n }).map(toInt);
const name = fc.constantFrom('rpm', 'tpm', 'constructor');
const counts: fc.Arbitrary<UsageCounts> = fc.record({
  consumedMilli: fc.array(fc.tuple(name, amount)).map((entries) => new Map(entries)),
  acquires: fc.nat(),
  expired: fc.nat(),
});

test('adding usage adds each count exactly', () => {
  fc.assert(
    fc.property(counts, counts, (a, b) => {
      const sum = addUsage(a, b);
      for (const limit of ['rpm', 'tpm', 'constructor']) {
        const expected = BigInt(a.consumedMilli.get(limit) ?? 0) + BigInt(b.consumedMilli.get(limit) ?? 0);
        expect(BigInt(sum.consumedMilli.get(limit) ?? 0)).toBe(expected);
      }
      expect([sum.acquires, sum.expired]).toEqual([a.acquires + b.acquires, a.expired + b.expired]);
    }),
    RUNS,
  );
});

test('adding empty usage changes nothing, and empty plus empty is empty', () => {
  fc.assert(
    fc.property(counts, (a) => {
      expect(addUsage(a, NO_USAGE)).toEqual(a);
      expect(addUsage(NO_USAGE, a)).toEqual(a);
      expect(NO_USAGE.consumedMilli.size).toBe(0);
    }),
    RUNS,
  );
});
