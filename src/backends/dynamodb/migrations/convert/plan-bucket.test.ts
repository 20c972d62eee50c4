import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Limit } from '../../../../core/limit.js';
import { buildMigratedWriteId } from '../../bucket/migrated-write-id.js';
import { decodeHolder, type ShardImage } from '../../table/items.js';
import { decodeComposite, foldParts, heldAt } from '../legacy/legacy-buckets.js';
import { planBucket, planStrays } from './plan-bucket.js';

const KEY = { entityId: 'u', resource: 'r', shard: 0 };
const RPM = Limit.perMinute('rpm', 60);

const part = (tokens: number, base: number, consumed = 0) =>
  decodeComposite({
    rf: { N: String(base) },
    b_rpm_tk: { N: String(tokens) },
    b_rpm_cp: { N: '60000' },
    b_rpm_ra: { N: '60000' },
    b_rpm_rp: { N: '60000' },
    b_rpm_tc: { N: String(consumed) },
  });
const oldBucket = (tokens: number, base: number, consumed = 0): ShardImage =>
  foldParts(KEY, [part(tokens, base, consumed)], (atMs) => buildMigratedWriteId('0002', atMs));
/** A full bucket that a client created and took from. */
const clientBucket = (tokens: number, base: number, consumed = 0): ShardImage => ({
  ...oldBucket(tokens, base, consumed),
  writeId: '0PwBGNP9aaabbb',
  acquires: 3,
});
/** What the plan writes, which must be a merge. */
function merged(plan: ReturnType<typeof planBucket>): ShardImage {
  if (plan.kind !== 'merge') throw new Error(`It is ${plan.kind}`);
  return plan.image;
}
const held = (image: ShardImage, atMs: number): number => Number(heldAt(image.limits[0]!, image.baseMs, atMs));

describe('planning the bucket of a conversion', () => {
  test('an old bucket is copied when there is no new one, and left when the copy is up to date', () => {
    const expected = oldBucket(5_000, 1_000);
    expect(planBucket('0002', expected, null)).toEqual({ kind: 'copy', image: expected });
    expect(planBucket('0002', expected, expected)).toEqual({ kind: 'same' });
  });

  test('an old bucket is copied again when it was used after the copy', () => {
    const later = oldBucket(1_000, 2_000, 5_000);
    expect(planBucket('0002', later, oldBucket(5_000, 1_000, 1_000))).toEqual({ kind: 'copy', image: later });
  });

  test('a copy does not get the tokens of an old bucket that was created again', () => {
    const image = merged(planBucket('0002', oldBucket(59_000, 9_000, 1_000), oldBucket(-30_000, 1_000, 90_000)));
    // 8 s refill of 60 per minute, less the one that the new one lacks.
    expect(held(image, 9_000)).toBe(-30_000 + 8_000 - 1_000);
    expect(image.limits[0]?.consumedMilli).toBe(91_000);
  });

  test('a new bucket that a client uses loses what the old bucket lacks, and keeps its other tokens', () => {
    const slots = Limit.concurrent('slots', 4);
    const holders = new Map([['0PwBGNP9abc', decodeHolder('0PwBGNP9abc', '99999|slots=1000')]]);
    const busy: ShardImage = {
      ...clientBucket(60_000, 5_000, 7),
      holders,
      onSweepList: true,
      limits: [
        ...clientBucket(60_000, 5_000, 7).limits,
        { limit: slots, rate: slots, tokensMilli: 3_000, consumedMilli: 0 },
      ],
    };
    const image = merged(planBucket('0002', oldBucket(20_000, 1_000, 40_000), busy));
    expect(held(image, image.baseMs)).toBe(60_000 - (60_000 - 20_000 - 4_001));
    expect(image).toMatchObject({
      holders,
      onSweepList: true,
      acquires: 3,
      limits: [{ consumedMilli: 40_007 }, { tokensMilli: 3_000 }],
    });
    expect(image.baseMs).toBeGreaterThan(busy.baseMs);
  });

  test('a merge never gives the new bucket more tokens than it had', () => {
    const tokens = fc.integer({ min: -200_000, max: 60_000 });
    const base = fc.integer({ min: 0, max: 100_000 });
    const consumed = fc.integer({ min: 0, max: 1_000 });
    const bucket = fc.tuple(tokens, base, consumed);
    const kinds = new Set<string>();
    fc.assert(
      fc.property(bucket, bucket, fc.boolean(), fc.nat(1_000_000), (old, there, own, laterMs) => {
        const target = own ? oldBucket(...there) : clientBucket(...there);
        const plan = planBucket('0002', oldBucket(...old), target);
        kinds.add(plan.kind);
        if (plan.kind === 'same') return;
        const atMs = Math.max(plan.image.baseMs, target.baseMs) + laterMs;
        expect(held(plan.image, atMs)).toBeLessThanOrEqual(held(target, atMs));
        expect(plan.image.limits[0]?.consumedMilli).toBeGreaterThanOrEqual(Number(target.limits[0]?.consumedMilli));
      }),
    );
    expect(kinds).toContain('merge');
  });

  test('a merge adds a limit that only the old bucket has', () => {
    const other: ShardImage = { ...clientBucket(1_000, 5_000), limits: [] };
    const plan = planBucket('0002', oldBucket(2_000, 5_000, 3), other);
    expect(plan).toMatchObject({ kind: 'merge', image: { limits: [{ limit: RPM, consumedMilli: 3 }] } });
  });
});

describe('planning stray shards', () => {
  test('a stray shard is added to the bucket that the other shards became', () => {
    const first = { ...oldBucket(10_000, 1_000, 5), writeId: buildMigratedWriteId('0003', 1_000) };
    const plan = planStrays('0003', [part(4_000, 1_000, 6)], oldBucket(4_000, 1_000, 6), first);
    expect(plan).toMatchObject({ kind: 'merge', image: { limits: [{ tokensMilli: 14_000, consumedMilli: 11 }] } });
  });

  test('a stray shard takes tokens from a bucket that clients use', () => {
    const plan = planStrays('0003', [part(4_000, 1_000)], oldBucket(4_000, 1_000), clientBucket(60_000, 1_000));
    expect(held(merged(plan), 1_001)).toBeLessThanOrEqual(4_001);
  });
});
