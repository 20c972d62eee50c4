import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decide, limitStatus, nearIn, reserveIn } from './bucket/decide.js';
import { shareOf } from './bucket/shard.js';
import { Limit } from './limit.js';
import { shareOfCapacity } from './limit-options.js';

const share = fc.integer({ min: 0, max: 1_000 }).map((n) => n / 1_000);
const capacity = fc.oneof(fc.nat({ max: 50 }), fc.integer({ min: 0, max: 1e12 }));
const anyLimit = fc.oneof(
  capacity.map((of): Limit => Limit.custom('a', { capacity: of, refillAmount: 1, refillPeriodMs: 1 })),
  capacity.map((of): Limit => Limit.concurrent('a', of)),
);

test('the share of a capacity is exact in millitokens, and in whole slots rounded up', () => {
  fc.assert(
    fc.property(anyLimit, share, (limit, part) => {
      const exact = BigInt(limit.capacity) * BigInt(Math.round(part * 1_000));
      const expected = limit.kind === 'rate' ? exact : ((exact + 999n) / 1_000n) * 1_000n;
      expect(BigInt(shareOfCapacity(limit, part))).toBe(expected);
      expect(shareOfCapacity(limit, part)).toBeLessThanOrEqual(limit.capacityMilli);
    }),
    { numRuns: 2_000 },
  );
});

test('the reserves of all shards add up to the reserve of the limit, and none is above the share of its shard', () => {
  fc.assert(
    fc.property(anyLimit, share, fc.constantFrom(1, 2, 4, 8, 64), (limit, part, shardCount) => {
      const reserves = Array.from({ length: shardCount }, (_, shard) =>
        reserveIn({ key: { shard }, shardCount }, limit, part),
      );
      expect(reserves.reduce((sum, milli) => sum + milli, 0)).toBe(shareOfCapacity(limit, part));
      for (const [shard, milli] of reserves.entries()) {
        expect(milli).toBeLessThanOrEqual(shareOf(limit, shard, shardCount).capacityMilli);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('a shadow that is neither true nor false is refused', () => {
  expect(() => Limit.concurrent('slots', 9, { shadow: 1 as never })).toThrow('slots.shadow');
});

test('an unlimited limit reserves nothing', () => {
  expect(shareOfCapacity(Limit.unlimited('a', { reserve: { batch: 1 } }), 1)).toBe(0);
});

test.each([{ a: -0.1 }, { a: 1.001 }, { a: 0.0001 }, { a: Number.NaN }, { '1a': 0.5 }, { a: '0.5' }, [0.5], 0.5, null])(
  'the reserve %j is refused',
  (reserve) => {
    expect(() => Limit.perMinute('tpm', 9, { reserve: reserve as never })).toThrow('reserve');
  },
);

test.each([0, -0.1, 1.001, 0.0001, Number.NaN, '0.8', null])('the warnAt %j is refused', (warnAt) => {
  expect(() => Limit.perMinute('tpm', 9, { warnAt: warnAt as never })).toThrow('tpm.warnAt');
});

test('a limit is near exactly where the used part of its capacity is at least warnAt, in debt too', () => {
  const milli = fc.oneof(fc.integer({ min: -50_000, max: 50_000 }), fc.integer({ min: -1e15, max: 1e15 }));
  fc.assert(
    fc.property(anyLimit, share, milli, (limit, warnAt, moved) => {
      fc.pre(warnAt > 0);
      const tokensMilli = limit.kind === 'rate' ? moved : Math.trunc(moved / 1_000) * 1_000;
      const bucket = { baseMs: 0, limits: [{ limit, tokensMilli }], holders: new Map() };
      const [verdict] = decide(bucket, [{ name: 'a', milli: 0, warnAt }], 0);
      const left = BigInt(
        Math.min(tokensMilli, limit.kind === 'rate' ? limit.capacityMilli : Number.POSITIVE_INFINITY),
      );
      const used = BigInt(limit.capacityMilli) - left;
      const isNear = used * 1_000n >= BigInt(limit.capacityMilli) * BigInt(Math.round(warnAt * 1_000));
      expect(verdict && limitStatus('e', 'r', verdict, false).near).toBe(isNear || undefined);
    }),
    { numRuns: 2_000 },
  );
});

test('the balances at which the shards are near add up to that of the limit', () => {
  fc.assert(
    fc.property(anyLimit, share, fc.constantFrom(1, 2, 4, 8, 64), (limit, warnAt, shardCount) => {
      const near = Array.from({ length: shardCount }, (_, shard) =>
        nearIn({ key: { shard }, shardCount }, { limit, rate: shareOf(limit, shard, shardCount) }, warnAt),
      );
      expect(near.reduce((sum, milli) => sum + milli, 0)).toBe(nearIn({}, { limit }, warnAt));
    }),
    { numRuns: 2_000 },
  );
});
