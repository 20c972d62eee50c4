import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Limit } from '../../../core/limit.js';
import { decodeKind, encodePeriod } from './stored-period.js';

const limit = fc.oneof(
  fc
    .integer({ min: 1, max: 366 * 86_400_000 })
    .map((refillPeriodMs) => Limit.custom('a', { capacity: 1, refillAmount: 1, refillPeriodMs })),
  fc.nat(1_000).map((slots) => Limit.concurrent('a', slots)),
  fc.constant(Limit.unlimited('a')),
);

test('the stored period tells the kind of every limit', () => {
  fc.assert(
    fc.property(limit, (of) => {
      expect(decodeKind(encodePeriod(of))).toBe(of.kind);
    }),
  );
});

test('a stored period of 0 means slots, -1 unlimited, and any other the milliseconds of a rate', () => {
  expect(encodePeriod(Limit.concurrent('a', 5))).toBe(0);
  expect(encodePeriod(Limit.unlimited('a'))).toBe(-1);
  expect(encodePeriod(Limit.perMinute('a', 5))).toBe(60_000);
});
