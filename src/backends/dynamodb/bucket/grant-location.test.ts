import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { amount, changeEntry } from '../../../../tests/support/dynamodb/shard-images.js';
import type { LevelChange } from '../../../backend.js';
import { amountOf } from '../../../core/bucket/decide.js';
import { deltasOf } from '../../../core/bucket/holder-rules.js';
import { type Int, sub, toInt } from '../../../core/int.js';
import { Limit } from '../../../core/limit.js';
import { divideChange, locationOf, readLocation, type ShardLocations } from './grant-location.js';

const NAMES = ['rpm', 'tpm', 'slots'];
const milli: fc.Arbitrary<Int> = fc.oneof(fc.nat(9_000), fc.bigInt({ min: 0n, max: 10n ** 20n }).map(toInt));
const locations: fc.Arbitrary<ShardLocations> = fc
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
const { entityId, resource, limits, version } = changeEntry([Limit.perMinute('rpm', 5)], {}).level;
const REF = { entityId, resource, limits, version, holder: 'keep' } as const;
const deltaChanges = fc
  .oneof(amounts(1n), amounts(-1n))
  .map((deltas): LevelChange => ({ ...REF, kind: 'deltas', deltas }));
const totalChanges = fc
  .tuple(
    amounts(1n),
    fc.oneof(
      milli,
      milli.map((value) => sub(0, value)),
    ),
  )
  .map(([totals, deltaMilli]) => totals.map((total) => ({ ...total, deltaMilli })))
  .map((totals) => ({ ...REF, kind: 'totals' as const, totals }));
const changes: fc.Arbitrary<LevelChange> = fc.oneof(deltaChanges, totalChanges);

const sumOf = (parts: readonly (readonly { name: string; milli: Int }[])[], name: string): bigint =>
  parts.reduce((sum, part) => sum + BigInt(amountOf(part, name) ?? 0), 0n);

describe('changes of a grant from several shards', () => {
  test('a change is divided among the shards without a remainder', () => {
    fc.assert(
      fc.property(changes, locations, (level, where) => {
        const parts = divideChange(level, where);
        expect(parts).toHaveLength(where.length);
        for (const name of NAMES) {
          const given = sumOf(
            parts.map((part) => deltasOf(part)),
            name,
          );
          expect(given).toBe(BigInt(amountOf(deltasOf(level), name) ?? 0));
        }
        for (const part of parts)
          expect(part).toMatchObject({ holder: 'keep', limits: level.limits, version: level.version });
      }),
      { numRuns: 1_000 },
    );
  });

  test('a refund gives no shard more than was taken from it, unless it exceeds the whole grant', () => {
    fc.assert(
      fc.property(changes, locations, (level, where) => {
        const parts = divideChange(level, where);
        for (const [at, part] of parts.entries()) {
          for (const { name, milli: back } of deltasOf(part)) {
            const takenAt = (location: ShardLocations[number]): bigint =>
              BigInt(location.taken.find((one) => one.name === name)?.milli ?? 0);
            const whole = where.reduce((sum, location) => sum + takenAt(location), 0n);
            if (-BigInt(amountOf(deltasOf(level), name) ?? 0) > whole) continue;
            if (back < 0) expect(-BigInt(back) <= takenAt(where[at]!)).toBe(true);
          }
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('a change of a limit that the grant did not take goes to the first shard', () => {
    fc.assert(
      fc.property(amounts(1n), fc.integer({ min: 2, max: 6 }), (deltas, count) => {
        const where = Array.from({ length: count }, (_, shard) => locationOf(shard, []));
        const [first, ...rest] = divideChange({ ...REF, kind: 'deltas', deltas }, where);
        expect(deltasOf(first!)).toEqual(deltas.filter((one) => one.milli !== 0));
        for (const part of rest) expect(deltasOf(part)).toEqual([]);
      }),
    );
  });

  test('the totals of the shards add up to the total of the lease', () => {
    fc.assert(
      fc.property(totalChanges, locations, (level, where) => {
        const parts = divideChange(level, where).map((part) => (part.kind === 'totals' ? part.totals : []));
        for (const { name, milli: wanted } of level.totals) expect(sumOf(parts, name)).toBe(BigInt(wanted));
      }),
      { numRuns: 1_000 },
    );
  });

  test('a change is divided in proportion to what was taken from each shard, even if it is made in steps', () => {
    const where = [
      locationOf(0, [amount('rpm', 6_000)]),
      locationOf(3, [amount('rpm', 2_000), amount('slots', 1_000)]),
    ];
    const settle = (totalMilli: number): LevelChange => ({
      ...REF,
      kind: 'totals',
      totals: [{ name: 'rpm', milli: totalMilli, deltaMilli: -4_000 }],
    });
    expect(divideChange(settle(4_000), where)).toMatchObject([
      { totals: [{ name: 'rpm', milli: 3_000, deltaMilli: -3_000 }] },
      { totals: [{ name: 'rpm', milli: 1_000, deltaMilli: -1_000 }] },
    ]);
    expect(divideChange(settle(0), where)).toMatchObject([
      { totals: [{ name: 'rpm', milli: 0, deltaMilli: -3_000 }] },
      { totals: [{ name: 'rpm', milli: 0, deltaMilli: -1_000 }] },
    ]);
    expect(divideChange({ ...REF, kind: 'deltas', deltas: [amount('rpm', -4_000)] }, where)).toMatchObject([
      { deltas: [amount('rpm', -3_000)] },
      { deltas: [amount('rpm', -1_000)] },
    ]);
  });

  test('a change of a grant from one shard is not divided', () => {
    const { level } = changeEntry([], { rpm: -5_000 });
    expect(divideChange(level, readLocation(undefined))).toEqual([level]);
    expect(divideChange(level, [locationOf(3, [])])[0]).toBe(level);
  });
});

describe('locations', () => {
  test('a location that was serialized as JSON is read back', () => {
    fc.assert(
      fc.property(locations, (where) => {
        expect(readLocation(JSON.parse(JSON.stringify(where)))).toEqual(where);
      }),
    );
  });

  test.each([undefined, null, [], {}, 'x'])('the location %j is read as shard 0', (location) => {
    expect(readLocation(location)).toEqual([{ shard: 0, taken: [] }]);
  });
});
