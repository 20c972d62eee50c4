import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { amount, changeEntry } from '../../../../tests/support/shard-images.js';
import type { LevelChange } from '../../../backend.js';
import { amountOf } from '../../../core/bucket/decide.js';
import { type Int, toInt } from '../../../core/int.js';
import { Limit } from '../../../core/limit.js';
import { divideChange, locationOf, readLocation, type ShardLocations } from './grant-location.js';

const NAMES = ['rpm', 'tpm', 'slots'];
const milli: fc.Arbitrary<Int> = fc.oneof(fc.nat(9_000), fc.bigInt({ min: 0n, max: 10n ** 20n }).map(toInt));
const places: fc.Arbitrary<ShardLocations> = fc
  .uniqueArray(fc.tuple(fc.nat(63), fc.tuple(milli, milli, milli), fc.nat(7)), {
    selector: ([shard]) => shard,
    minLength: 1,
    maxLength: 6,
  })
  .map((drawn) =>
    drawn.map(([shard, taken, mask]) =>
      locationOf(
        shard,
        NAMES.flatMap((name, at) => ((mask >> at) & 1 ? [amount(name, taken[at]!)] : [])),
      ),
    ),
  );
const amounts = (sign: bigint) =>
  fc
    .uniqueArray(fc.tuple(fc.constantFrom(...NAMES), milli), { selector: ([name]) => name })
    .map((drawn) => drawn.map(([name, value]) => amount(name, toInt(sign * BigInt(value)))));
const changes: fc.Arbitrary<LevelChange> = fc
  .tuple(fc.oneof(amounts(1n), amounts(-1n)), fc.option(amounts(1n), { nil: null }))
  .map(([deltas, totals]) => ({
    ...changeEntry([Limit.perMinute('rpm', 5)], {}).level,
    deltas,
    totals,
    holder: 'keep',
  }));

const sumOf = (parts: readonly (readonly { name: string; milli: Int }[])[], name: string): bigint =>
  parts.reduce((sum, part) => sum + BigInt(amountOf(part, name) ?? 0), 0n);

describe('a change of what was taken from several shards', () => {
  test('is divided among them without a rest', () => {
    fc.assert(
      fc.property(changes, places, (level, where) => {
        const parts = divideChange(level, where);
        expect(parts).toHaveLength(where.length);
        for (const name of NAMES) {
          const given = sumOf(
            parts.map(({ deltas }) => deltas),
            name,
          );
          expect(given).toBe(BigInt(amountOf(level.deltas, name) ?? 0));
        }
        for (const part of parts)
          expect(part).toMatchObject({ holder: 'keep', limits: level.limits, version: level.version });
      }),
      { numRuns: 1_000 },
    );
  });

  test('gives none more back than was taken there, unless more goes back than was taken at all', () => {
    fc.assert(
      fc.property(changes, places, (level, where) => {
        const parts = divideChange(level, where);
        for (const [at, { deltas }] of parts.entries()) {
          for (const { name, milli: back } of deltas) {
            const takenAt = (place: ShardLocations[number]): bigint =>
              BigInt(place.taken.find((one) => one.name === name)?.milli ?? 0);
            const whole = where.reduce((sum, place) => sum + takenAt(place), 0n);
            if (-BigInt(amountOf(level.deltas, name) ?? 0) > whole) continue;
            if (back < 0) expect(-BigInt(back) <= takenAt(where[at]!)).toBe(true);
          }
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('of a limit that the grant did not take is a matter of the first', () => {
    fc.assert(
      fc.property(amounts(1n), fc.integer({ min: 2, max: 6 }), (deltas, count) => {
        const where = Array.from({ length: count }, (_, shard) => locationOf(shard, []));
        const [first, ...rest] = divideChange({ ...changeEntry([], {}).level, deltas }, where);
        expect(first!.deltas).toEqual(deltas.filter((one) => one.milli !== 0));
        for (const part of rest) expect(part.deltas).toEqual([]);
      }),
    );
  });

  test('leaves totals that add up to what the lease will have taken', () => {
    fc.assert(
      fc.property(changes, places, (level, where) => {
        const parts = divideChange(level, where);
        if (level.totals === null) {
          for (const part of parts) expect(part.totals).toBeNull();
          return;
        }
        for (const { name, milli: wanted } of level.totals) {
          expect(
            sumOf(
              parts.map(({ totals }) => totals ?? []),
              name,
            ),
          ).toBe(BigInt(wanted));
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('is in proportion to what was taken there, also if it is made in steps', () => {
    const where = [
      locationOf(0, [amount('rpm', 6_000)]),
      locationOf(3, [amount('rpm', 2_000), amount('slots', 1_000)]),
    ];
    const level = { ...changeEntry([], { rpm: -4_000 }).level, totals: [amount('rpm', 4_000)] };
    expect(divideChange(level, where)).toMatchObject([
      { deltas: [amount('rpm', -3_000)], totals: [amount('rpm', 3_000)] },
      { deltas: [amount('rpm', -1_000)], totals: [amount('rpm', 1_000)] },
    ]);
    const later = { ...changeEntry([], { rpm: -4_000 }).level, totals: [amount('rpm', 0)] };
    expect(divideChange(later, where)).toMatchObject([
      { deltas: [amount('rpm', -3_000)], totals: [amount('rpm', 0)] },
      { deltas: [amount('rpm', -1_000)], totals: [amount('rpm', 0)] },
    ]);
  });

  test('of one shard is left as it is', () => {
    const { level } = changeEntry([], { rpm: -5_000 });
    expect(divideChange(level, readLocation(undefined))).toEqual([level]);
    expect(divideChange(level, [locationOf(3, [])])[0]).toBe(level);
  });
});

describe('a place', () => {
  test('is read back after it has been away as plain data', () => {
    fc.assert(
      fc.property(places, (where) => {
        expect(readLocation(JSON.parse(JSON.stringify(where)))).toEqual(where);
      }),
    );
  });

  test.each([undefined, null, [], {}, 'x'])('that says nothing, such as %j, is shard 0', (place) => {
    expect(readLocation(place)).toEqual([{ shard: 0, taken: [] }]);
  });
});
