import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { amount, changeEntry } from '../../../../tests/support/dynamodb/shard/shard-images.js';
import type { LevelChange } from '../../../backend.js';
import { amountOf } from '../../../core/bucket/decide.js';
import { changesBy, deltasOf } from '../../../core/bucket/holder-rules.js';
import { type Int, toInt } from '../../../core/int.js';
import { Limit } from '../../../core/limit.js';
import {
  divideChange,
  locationOf,
  readLocation,
  type ShardLocations,
  type ShardShare,
  sharesOf,
  withPart,
  withPartDone,
  withRefundsDone,
} from './grant-location.js';

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
  .map((deltas): LevelChange => ({ ...REF, amounts: changesBy(deltas) }));
const totalChanges = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...NAMES), milli, milli), { selector: ([name]) => name })
  .map((drawn) => drawn.map(([name, fromMilli, toMilli]) => ({ name, fromMilli, toMilli })))
  .map((changed): LevelChange => ({ ...REF, amounts: changed, refundsOnExpiry: true }));
const changes: fc.Arbitrary<LevelChange> = fc.oneof(deltaChanges, totalChanges);

const totalsOf = ({ amounts: changed }: LevelChange) => changed.map(({ name, toMilli }) => amount(name, toMilli));
const sumOf = (parts: readonly (readonly { name: string; milli: Int }[])[], name: string): bigint =>
  parts.reduce((sum, part) => sum + BigInt(amountOf(part, name) ?? 0), 0n);

describe('changes of a grant from several shards', () => {
  test('a change is divided among the shards without a remainder', () => {
    fc.assert(
      fc.property(changes, locations, (level, where) => {
        const parts = divideChange(level, sharesOf(where));
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
        const parts = divideChange(level, sharesOf(where));
        for (const [at, part] of parts.entries()) {
          for (const [index, { name, milli: back }] of deltasOf(part).entries()) {
            const takenAt = (location: ShardLocations[number]): bigint =>
              BigInt(location.taken.find((one) => one.name === name)?.milli ?? 0);
            const whole = where.reduce((sum, location) => sum + takenAt(location), 0n);
            if (BigInt(level.amounts[index]!.fromMilli) > whole) continue;
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
        const [first, ...rest] = divideChange({ ...REF, amounts: changesBy(deltas) }, sharesOf(where));
        expect(deltasOf(first!)).toEqual(deltas);
        for (const part of rest) expect(deltasOf(part).every((one) => one.milli === 0)).toBe(true);
      }),
    );
  });

  test('the totals of the shards add up to the total of the lease', () => {
    fc.assert(
      fc.property(totalChanges, locations, (level, where) => {
        const parts = divideChange(level, sharesOf(where)).map((part) => totalsOf(part));
        for (const { name, toMilli } of level.amounts) expect(sumOf(parts, name)).toBe(BigInt(toMilli));
      }),
      { numRuns: 1_000 },
    );
  });

  test('a change is divided in proportion to what was taken from each shard', () => {
    const where = [
      locationOf(0, [amount('rpm', 6_000)]),
      locationOf(3, [amount('rpm', 2_000), amount('slots', 1_000)]),
    ];
    const [first, second] = divideChange(
      { ...REF, amounts: [{ name: 'rpm', fromMilli: 8_000, toMilli: 4_000 }] },
      sharesOf(where),
    );
    expect(first!.amounts).toEqual([{ name: 'rpm', fromMilli: 6_000, toMilli: 3_000 }]);
    expect(second!.amounts).toEqual([{ name: 'rpm', fromMilli: 2_000, toMilli: 1_000 }]);
  });

  test('each shard ends at its part of the amount, whatever changes were made there before, or may have been', () => {
    const step = fc.tuple(
      totalChanges,
      fc.array(fc.constantFrom('done', 'lost', 'failed'), { minLength: 6, maxLength: 6 }),
    );
    fc.assert(
      fc.property(locations, fc.array(step, { maxLength: 4 }), totalChanges, (where, steps, last) => {
        let shares = sharesOf(where);
        for (const [level, fates] of steps) {
          const parts = divideChange(level, shares);
          shares = shares.map((share, at) => {
            if (fates[at] === 'done') return withPartDone(share, parts[at]!, false);
            return fates[at] === 'lost' ? withRefundsDone(share, parts[at]!) : withPart(share, parts[at]!);
          });
        }
        const [parts, wanted] = [divideChange(last, shares), divideChange(last, sharesOf(where))];
        for (const [at, part] of parts.entries()) {
          const changed = withPartDone(shares[at]!, part, false);
          expect(totalsOf(part)).toEqual(totalsOf(wanted[at]!));
          for (const { name, toMilli } of part.amounts) expect(amountOf(changed.has, name)).toBe(toMilli);
        }
      }),
    );
  });

  test('a refund that may have landed is not made again, whatever the amount, and a charge is', () => {
    const [share] = sharesOf([locationOf(0, [amount('rpm', 6_000), amount('tpm', 6_000)])]) as [ShardShare];
    const lost = {
      ...REF,
      amounts: [
        { name: 'rpm', fromMilli: 6_000, toMilli: 2_000 },
        { name: 'tpm', fromMilli: 0, toMilli: 9_000 },
      ],
    };
    const after = withRefundsDone(share, lost);
    const [again] = divideChange({ ...lost, amounts: lost.amounts.map((one) => ({ ...one, fromMilli: 6_000 })) }, [
      after,
    ]);
    expect(deltasOf(again!)).toEqual([amount('rpm', 0), amount('tpm', 9_000)]);
  });

  test('a holder that is gone is not asked for again, unless its expiry gave back what nothing has charged since', () => {
    const [share] = sharesOf([locationOf(0, [amount('rpm', 6_000)])]) as [ShardShare];
    const change: LevelChange = {
      ...REF,
      amounts: [{ name: 'rpm', fromMilli: 6_000, toMilli: 9_000 }],
      refundsOnExpiry: true,
    };
    const release: LevelChange = { ...REF, amounts: [], holder: 'release', refundsOnExpiry: true };
    const fates = [
      [withPartDone(share, release, false), 'none', 3_000],
      [withPartDone(share, release, true), 'keep', 3_000],
      [withPartDone(share, change, true), 'none', 0],
      [withPartDone(share, change, false), 'keep', 0],
    ] as const;
    for (const [after, holder, due] of fates) {
      const [part] = divideChange(change, [after]);
      expect([part!.holder, part!.refundsOnExpiry === true, deltasOf(part!)]).toEqual([
        holder,
        holder === 'keep',
        [amount('rpm', due)],
      ]);
    }
  });

  test('a change of a grant from one shard is not divided', () => {
    const { level } = changeEntry([], { rpm: -5_000 });
    expect(divideChange(level, sharesOf(undefined))).toEqual([level]);
    expect(divideChange(level, sharesOf([locationOf(3, [])]))[0]).toBe(level);
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
