import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { portableParts } from '../../../../../tests/support/features/portable-part.js';
import type { Amount, Holder } from '../../../../core/bucket/decide.js';
import { type Int, toInt } from '../../../../core/int.js';
import { Limit } from '../../../../core/limit.js';
import type { UsageCounts } from '../../../../core/usage/usage.js';
import type { Account, Bucket } from '../../bucket.js';
import { decodeBucket, decodeCounts, decodeLimits, encodeBucket, encodeCounts, encodeLimits } from './codec.js';

const RUNS = { numRuns: 2_000 };
/** Records as the code creates them: with the prototype of every object. */
const PLAIN = { noNullPrototype: true };
const YEAR_MS = 366 * 86_400_000;

const name = fc.oneof(
  fc.constantFrom('rpm', 'tpm', 'slots', 'constructor', 'toString', 'concurrent'),
  fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/).filter((text) => text !== 'wcu'),
);
const capacity = fc.oneof(fc.nat({ max: 1_000 }), fc.integer({ min: 0, max: 1e12 }));
const cost = fc.option(capacity, { nil: undefined });
const rate = fc
  .record({ name, capacity, refillAmount: fc.integer({ min: 1, max: 1e12 }), cost })
  .chain((rule) => fc.integer({ min: 1, max: YEAR_MS }).map((refillPeriodMs) => ({ ...rule, refillPeriodMs })))
  .map(({ name: named, cost: costs, ...rule }) =>
    Limit.custom(named, { ...rule, ...(costs === undefined ? {} : { cost: costs }) }),
  );
const slots = fc
  .tuple(name, capacity, cost)
  .map(([named, most, costs]) => Limit.concurrent(named, most, costs === undefined ? {} : { cost: costs }));
const limit: fc.Arbitrary<Limit> = fc.oneof(rate, slots);

/** Integers of any size in the form of the arithmetic: bigint only beyond 2^53. */
const int: fc.Arbitrary<Int> = fc.oneof(
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).map(toInt),
  fc.constantFrom<Int>(0, -1, 2 ** 53 - 1, 1 - 2 ** 53, 2n ** 53n, -(2n ** 53n), 9007199254740993n),
);
const instant = fc.integer({ min: 0, max: 8.64e15 });
const count = fc.nat({ max: 2 ** 31 - 1 });

const amounts: fc.Arbitrary<readonly Amount[]> = fc.array(fc.record({ name, milli: int }, PLAIN), { maxLength: 4 });
const account: fc.Arbitrary<Account> = fc.record(
  { limit, tokensMilli: int, consumedMilli: int, foldedMilli: int },
  PLAIN,
);
const portable = portableParts(amounts, fc.string());
const plainHolder: fc.Arbitrary<Holder> = fc.record(
  {
    expiresAtMs: instant,
    acquiredAtMs: instant,
    slots: amounts,
    rates: fc.option(amounts),
    caller: fc.option(
      fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('\0', '\u{d800}', '"', '😀')),
    ),
  },
  PLAIN,
);
const holder: fc.Arbitrary<Holder> = fc
  .tuple(plainHolder, fc.option(portable))
  .map(([plain, part]) => (part === null ? plain : { ...plain, portable: part }));
const leaseId = fc.stringMatching(/^[0-9A-Za-z_~]{11}$/);
const bucket: fc.Arbitrary<Bucket> = fc.record(
  {
    home: fc.constant(null),
    baseMs: instant,
    hourMs: instant,
    version: fc.record({ sequence: count, openedAtMs: instant }, PLAIN),
    limits: fc.array(account, { maxLength: 5 }),
    retired: fc.array(account, { maxLength: 3 }),
    holders: fc.array(fc.tuple(leaseId, holder), { maxLength: 5 }).map((entries) => new Map(entries)),
    acquires: count,
    expired: count,
    foldedAcquires: count,
    foldedExpired: count,
    pause: fc.option(fc.record({ endMs: fc.constantFrom(1, 1_700_000_000_000, 8.64e15), reason: fc.string() }, PLAIN)),
  },
  PLAIN,
);
const counts: fc.Arbitrary<UsageCounts> = fc.record(
  {
    acquires: count,
    expired: count,
    consumedMilli: fc.array(fc.tuple(name, int), { maxLength: 5 }).map((entries) => new Map(entries)),
  },
  PLAIN,
);

describe('the codec of the file store', () => {
  test('decoding an encoded bucket gives the same bucket, with its holders and the accounts of removed limits', () => {
    fc.assert(
      fc.property(bucket, (given) => {
        const read = decodeBucket(encodeBucket(given));
        expect(read).toStrictEqual(given);
        // Equality of maps ignores their order, but holders are reclaimed in that order.
        expect([...read.holders.keys()]).toEqual([...given.holders.keys()]);
      }),
      RUNS,
    );
  });

  test('decoding and encoding a bucket gives the same text', () => {
    fc.assert(
      fc.property(bucket, (given) => {
        const text = encodeBucket(given);
        expect(encodeBucket(decodeBucket(text))).toBe(text);
      }),
      RUNS,
    );
  });

  test('decoding encoded limits gives the same list, or null', () => {
    fc.assert(
      fc.property(fc.option(fc.array(limit, { maxLength: 6 })), (given) => {
        expect(decodeLimits(encodeLimits(given))).toStrictEqual(given);
      }),
      RUNS,
    );
  });

  test('decoding encoded usage counts gives the same counts', () => {
    fc.assert(
      fc.property(counts, (given) => {
        const read = decodeCounts(encodeCounts(given));
        expect(read).toStrictEqual(given);
        expect([...read.consumedMilli.keys()]).toEqual([...given.consumedMilli.keys()]);
      }),
      RUNS,
    );
  });
});

test('two reads of one bucket share no mutable state', () => {
  const text = encodeBucket({
    home: null,
    baseMs: 1,
    hourMs: 0,
    version: { sequence: 1, openedAtMs: 0 },
    limits: [{ limit: Limit.perMinute('rpm', 60), tokensMilli: 5, consumedMilli: 0, foldedMilli: 0 }],
    retired: [],
    holders: new Map(),
    acquires: 0,
    expired: 0,
    foldedAcquires: 0,
    foldedExpired: 0,
    pause: null,
  });
  const [one, other] = [decodeBucket(text), decodeBucket(text)];
  one.limits[0]!.tokensMilli = 99;
  one.acquires = 7;
  expect(encodeBucket(other)).toBe(text);
});
