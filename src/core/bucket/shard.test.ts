import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { credit, type Rate } from './bucket.js';
import { parentShard, shareOf } from './shard.js';

const RUNS = { numRuns: 1_000 };
const MAX_SHARDS = 64;

const rate: fc.Arbitrary<Rate> = fc.record({
  kind: fc.constant('rate' as const),
  capacityMilli: fc.oneof(fc.nat({ max: 10_000 }), fc.integer({ min: 0, max: 1e15 })),
  refillMilli: fc.oneof(fc.nat({ max: 10_000 }), fc.integer({ min: 0, max: 1e15 })),
  refillPeriodMs: fc.oneof(fc.constantFrom(1, 977, 60_000), fc.integer({ min: 1, max: 366 * 86_400_000 })),
});
const count = fc.oneof(fc.integer({ min: 1, max: MAX_SHARDS }), fc.constantFrom(1, 2, 4, 8, 16, 32, 64));
const instant = fc.oneof(fc.integer({ min: 1_800_000_000_000, max: 1_800_000_100_000 }), fc.nat({ max: 9e12 }));

function sharesOf(of: Rate, shards: number): readonly Rate[] {
  return Array.from({ length: shards }, (_, shard) => shareOf(of, shard, shards));
}

describe('the shares of a limit', () => {
  test('the capacities of all shares add up to the whole, and differ by less than a token', () => {
    fc.assert(
      fc.property(rate, count, (of, shards) => {
        const capacities = sharesOf(of, shards).map(({ capacityMilli }) => capacityMilli);
        expect(capacities.reduce((sum, capacity) => sum + BigInt(capacity), 0n)).toBe(BigInt(of.capacityMilli));
        expect(Math.max(...capacities) - Math.min(...capacities)).toBeLessThanOrEqual(1);
      }),
      RUNS,
    );
  });

  test('the refills of all shares over any window differ from the whole by less than a token', () => {
    fc.assert(
      fc.property(rate, count, instant, instant, (of, shards, a, b) => {
        const [fromMs, toMs] = a < b ? [a, b] : [b, a];
        const credits = sharesOf(of, shards).map((share) => BigInt(credit(share, fromMs, toMs)));
        const difference = credits.reduce((sum, part) => sum + part, 0n) - BigInt(credit(of, fromMs, toMs));
        expect(difference < 1_000n).toBe(true);
        expect(difference > -1_000n).toBe(true);
      }),
      RUNS,
    );
  });

  test('a single share is the whole limit', () => {
    fc.assert(
      fc.property(rate, (of) => {
        expect(shareOf(of, 0, 1)).toEqual(of);
      }),
      RUNS,
    );
  });

  test('the shares of a concurrent limit are whole slots', () => {
    const slots: Rate = { kind: 'concurrent', capacityMilli: 5_000, refillMilli: 0, refillPeriodMs: 0 };
    expect(sharesOf(slots, 3)).toEqual([
      { ...slots, capacityMilli: 2_000 },
      { ...slots, capacityMilli: 2_000 },
      { ...slots, capacityMilli: 1_000 },
    ]);
  });

  test('the shares of one half and of the two halves of the other add up to the whole', () => {
    fc.assert(
      fc.property(rate, fc.constantFrom(1, 2, 4, 8, 16, 32), fc.boolean(), (of, shards, areSlots) => {
        const whole: Rate = areSlots
          ? { kind: 'concurrent', capacityMilli: of.refillMilli * 1_000, refillMilli: 0, refillPeriodMs: 0 }
          : of;
        fc.pre(Number.isSafeInteger(whole.capacityMilli));
        for (let shard = 0; shard < shards; shard++) {
          const [one, other] = [shareOf(whole, shard, 2 * shards), shareOf(whole, shard + shards, 2 * shards)];
          expect(one.capacityMilli + other.capacityMilli).toBe(shareOf(whole, shard, shards).capacityMilli);
        }
      }),
      RUNS,
    );
  });
});

describe('the shard that a shard came from', () => {
  test('the parent of a shard is the shard that was split', () => {
    for (let shards = 1; shards < 4_096; shards *= 2) {
      for (let shard = 0; shard < shards; shard++) expect(parentShard(shard + shards)).toBe(shard);
    }
  });

  test('the parent of a shard has its number without the highest bit, and shard 0 is the last', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 30 - 1 }), (shard) => {
        const highestBit = 1 << (31 - Math.clz32(shard));
        expect(parentShard(shard)).toBe(shard ^ highestBit);
      }),
      RUNS,
    );
    expect(parentShard(0)).toBe(0);
  });
});
