import fc from 'fast-check';
import { expect, test } from 'vitest';
import { add, exactFloor, floorDiv, type Int, min, mul, mulDivCeil, mulDivFloor, sub, toInt } from './int.js';

const RUNS = { numRuns: 3_000 };
const EDGE = 2n ** 53n;

const around = (center: bigint): fc.Arbitrary<Int> =>
  fc.bigInt({ min: center - 3n, max: center + 3n }).map((value) => toInt(value));
const small = fc.integer({ min: -1_000, max: 1_000 });
const safe = fc.oneof(fc.maxSafeInteger(), small);
const anyInt = fc.oneof(safe, around(EDGE), around(-EDGE), fc.bigInt({ min: -(2n ** 90n), max: 2n ** 90n }).map(toInt));
const natural = fc.oneof(fc.maxSafeNat(), fc.nat({ max: 1_000 }), fc.constantFrom(2 ** 53 - 1, 2 ** 53 - 2, 2 ** 52));
const naturalInt = anyInt.map((value) => (value < 0 ? sub(0, value) : value));
const divisor = natural.map((value) => Math.max(1, value));

function floorOf(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}

/** The same whole number, in its smallest exact form. */
function expectExact(result: Int, expected: bigint): void {
  expect(BigInt(result)).toBe(expected);
  const isSafe = expected >= -(EDGE - 1n) && expected <= EDGE - 1n;
  expect(typeof result).toBe(isSafe ? 'number' : 'bigint');
}

test('sums and differences are exact, and numbers whenever that is safe', () => {
  fc.assert(
    fc.property(anyInt, anyInt, (a, b) => {
      expectExact(add(a, b), BigInt(a) + BigInt(b));
      expectExact(sub(a, b), BigInt(a) - BigInt(b));
    }),
    RUNS,
  );
});

test('products are exact, and numbers whenever that is safe', () => {
  fc.assert(
    fc.property(safe, safe, (a, b) => expectExact(mul(a, b), BigInt(a) * BigInt(b))),
    RUNS,
  );
});

test('the smaller of a number and a bigint is found', () => {
  fc.assert(
    fc.property(anyInt, anyInt, (a, b) => {
      const [wideA, wideB] = [BigInt(a), BigInt(b)];
      expectExact(min(a, b), wideA < wideB ? wideA : wideB);
    }),
    RUNS,
  );
});

test('division rounds towards minus infinity', () => {
  fc.assert(
    fc.property(anyInt, divisor, (value, by) => expectExact(floorDiv(value, by), floorOf(BigInt(value), BigInt(by)))),
    RUNS,
  );
});

test('division of safe numbers is exact just below a whole quotient', () => {
  const nearMultiple = fc
    .tuple(divisor, natural, fc.integer({ min: -2, max: 2 }))
    .map(([by, times, off]) => ({ by, value: Number(BigInt(by) * BigInt(times)) + off }))
    .filter(({ value }) => Number.isSafeInteger(value));
  fc.assert(
    fc.property(fc.oneof(nearMultiple, fc.record({ by: divisor, value: safe })), ({ by, value }) => {
      expect(BigInt(exactFloor(value, by))).toBe(floorOf(BigInt(value), BigInt(by)));
      expect(BigInt(exactFloor(-value, by))).toBe(floorOf(-BigInt(value), BigInt(by)));
    }),
    RUNS,
  );
});

test('a product is divided exactly, rounded down or up', () => {
  fc.assert(
    fc.property(naturalInt, natural, divisor, (a, b, by) => {
      const product = BigInt(a) * BigInt(b);
      expectExact(mulDivFloor(a, b, by), product / BigInt(by));
      expectExact(mulDivCeil(a, b, by), -floorOf(-product, BigInt(by)));
    }),
    RUNS,
  );
});

test('sums and products are right where doubles would be wrong', () => {
  const value = 2 ** 53 - 1;
  expect(add(value, value)).toBe(2n ** 54n - 2n);
  expect(mul(94_906_267, 94_906_267)).toBe(9_007_199_515_875_289n);
  expect(exactFloor(-value, 53)).toBe(-169_947_155_749_831);
  expect(mulDivCeil(value, 1, 53)).toBe(169_947_155_749_831);
});

test('a result of zero is never -0', () => {
  expect(Object.is(mulDivCeil(0, 5, 7), 0)).toBe(true);
  expect(Object.is(sub(0, 0), 0)).toBe(true);
  expect(Object.is(floorDiv(0n, 3), 0)).toBe(true);
});
