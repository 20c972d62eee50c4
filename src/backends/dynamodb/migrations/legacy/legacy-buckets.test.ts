import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildMigratedWriteId } from '../../bucket/migrated-write-id.js';
import { type BucketPart, decodeComposite, decodeLimitBucket, foldParts, heldAt } from './legacy-buckets.js';
import type { Item } from '../../client/transport.js';
import { Unmappable } from '../unmappable.js';

const KEY = { entityId: 'u', resource: 'r', shard: 0 };
const moved = (atMs: number): string => buildMigratedWriteId('0001', atMs);
const fold = (parts: readonly BucketPart[]) => foldParts(KEY, parts, moved);

const numbers = (fields: Readonly<Record<string, number | bigint>>): Item =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, { N: String(value) }]));

interface Numbers {
  readonly tokens: number;
  readonly base: number;
  readonly burst: number;
  readonly amount: number;
  readonly period: number;
  readonly consumed: number;
}

const someNumbers = fc.record({
  tokens: fc.integer({ min: -(10 ** 9), max: 10 ** 9 }),
  base: fc.integer({ min: 1_700_000_000_000, max: 1_700_000_100_000 }),
  burst: fc.integer({ min: 1, max: 100_000 }),
  amount: fc.integer({ min: 1, max: 100_000 }),
  period: fc.integer({ min: 1, max: 86_400_000 }),
  consumed: fc.integer({ min: -1_000, max: 10 ** 12 }),
});

const limitItem = ({ tokens, base, burst, amount, period, consumed }: Numbers): Item =>
  numbers({
    tokens_milli: tokens,
    last_refill_ms: base,
    capacity_milli: amount * 1_000,
    burst_milli: burst * 1_000,
    refill_amount_milli: amount * 1_000,
    refill_period_ms: period,
    total_consumed_milli: consumed,
  });

/** The telescoping credit in integers only. */
const leftAt = ({ tokens, base, burst, amount, period }: Numbers, atMs: number): bigint => {
  const fallen = (ms: number): bigint => (BigInt(ms) * BigInt(amount) * 1_000n) / BigInt(period);
  const sum = BigInt(tokens) + fallen(atMs) - fallen(base);
  return sum < BigInt(burst) * 1_000n ? sum : BigInt(burst) * 1_000n;
};

describe('buckets with an item for each limit', () => {
  test('folded limit items hold at any later time what each of them held, including debts', () => {
    fc.assert(
      fc.property(fc.array(someNumbers, { minLength: 1, maxLength: 5 }), fc.nat(10 ** 9), (limits, laterMs) => {
        const parts = limits.map((limit, at) => decodeLimitBucket(limitItem(limit), `l${at}`));
        const image = fold(parts);
        const atMs = Math.max(...limits.map(({ base }) => base)) + laterMs;
        for (const account of image.limits) {
          const limit = limits[Number(account.limit.name.slice(1))]!;
          expect(BigInt(heldAt(account, image.baseMs, atMs))).toBe(leftAt(limit, atMs));
          expect(account.consumedMilli).toBe(limit.consumed);
        }
        expect(image.limits).toHaveLength(limits.length);
      }),
    );
  });

  test('folding limit items gives the same image in any order', () => {
    fc.assert(
      fc.property(fc.uniqueArray(someNumbers, { minLength: 2, maxLength: 4 }), (limits) => {
        const parts = limits.map((limit, at) => decodeLimitBucket(limitItem(limit), `l${at}`));
        expect(fold(parts.toReversed())).toEqual(fold(parts));
      }),
    );
  });

  test('limit items with their fields in a map give the same image', () => {
    const fields = limitItem({ tokens: -5, base: 9, burst: 7, amount: 3, period: 1_000, consumed: 2 });
    expect(decodeLimitBucket({ data: { M: fields } }, 'rpm')).toEqual(decodeLimitBucket(fields, 'rpm'));
  });

  test('the capacity is the old burst, or the old capacity if there is no burst', () => {
    const item = limitItem({ tokens: 1, base: 9, burst: 7, amount: 3, period: 1_000, consumed: 2 });
    const { burst_milli: _, ...plain } = item;
    expect(decodeLimitBucket(item, 'rpm').limits[0]?.limit.capacity).toBe(7);
    expect(decodeLimitBucket(plain, 'rpm').limits[0]?.limit.capacity).toBe(3);
  });

  test.each(['tokens_milli', 'last_refill_ms', 'refill_amount_milli', 'refill_period_ms'])(
    'a limit item without %s is refused',
    (name) => {
      const { [name]: _, ...item } = limitItem({ tokens: 1, base: 9, burst: 7, amount: 3, period: 60, consumed: 2 });
      expect(() => decodeLimitBucket(item, 'rpm')).toThrow(new Unmappable(`it has no ${name}`));
    },
  );
});

describe('buckets with a composite item', () => {
  const composite = numbers({
    rf: 1_000,
    b_rpm_tk: 99_000,
    b_rpm_cp: 100_000,
    b_rpm_bx: 150_000,
    b_rpm_ra: 100_000,
    b_rpm_rp: 60_000,
    b_rpm_tc: 1_000,
    b_gone_tc: 77,
    b_wcu_tk: 1,
    b_wcu_cp: 1_000,
    b_wcu_ra: 1_000,
    b_wcu_rp: 1_000,
    b_wcu_tc: 9,
  });

  test('a composite item keeps the counters of removed limits and drops the hidden limit', () => {
    const { limits, retired, ttlSec } = fold([decodeComposite(composite)]);
    expect(limits.map(({ limit }) => String(limit))).toEqual(['rpm:100/min:150']);
    expect(retired).toEqual(new Map([['gone', 77]]));
    expect(ttlSec).toBeNull();
  });

  test('a limit with an incomplete rule is refused', () => {
    const { b_rpm_ra: _, ...item } = composite;
    expect(() => decodeComposite(item)).toThrow(Unmappable);
  });

  test('a converted bucket expires no earlier than before, and not before it is full', () => {
    const life = (ttl: number, tk: number): number | null =>
      fold([decodeComposite({ ...composite, ...numbers({ ttl, b_rpm_tk: tk }) })]).ttlSec;
    expect(life(2_000_000_000, 0)).toBe(2_000_000_000);
    expect(life(5, -100_000_000)).toBeGreaterThan(60_000);
  });
});

describe('buckets with several shards', () => {
  const shard = (tokens: number, base: number): Item =>
    numbers({ rf: base, b_x_tk: tokens, b_x_cp: 10_000, b_x_ra: 10_000, b_x_rp: 1_000, b_x_tc: 5 });

  test('shards add up, each to at most its share, and never above the capacity', () => {
    const amounts = fc.array(fc.integer({ min: -50_000, max: 50_000 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(amounts, (tokens) => {
        const count = tokens.length;
        const image = fold(tokens.map((tk, at) => decodeComposite(shard(tk, 1_000), at, count)));
        const shares = tokens.map((tk, at) => Math.min(tk, Math.floor(10_000 / count) + (at < 10_000 % count ? 1 : 0)));
        expect(image.limits[0]?.tokensMilli).toBe(shares.reduce((a, b) => a + b));
        expect(image.limits[0]?.consumedMilli).toBe(5 * count);
        expect(image.limits[0]?.tokensMilli).toBeLessThanOrEqual(10_000);
        expect(image.shardCount).toBe(1);
      }),
    );
  });

  test('a missing shard holds nothing', () => {
    expect(fold([decodeComposite(shard(10_000, 1_000), 0, 4)]).limits[0]?.tokensMilli).toBe(2_500);
  });
});
