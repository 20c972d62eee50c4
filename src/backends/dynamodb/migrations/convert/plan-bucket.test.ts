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
/** One that a client has made, full, and taken from. */
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

describe('the bucket that an old one becomes', () => {
  test('is copied where there is none, and left where it is the same', () => {
    const expected = oldBucket(5_000, 1_000);
    expect(planBucket('0002', expected, null)).toEqual({ kind: 'copy', image: expected });
    expect(planBucket('0002', expected, expected)).toEqual({ kind: 'same' });
  });

  test('is copied again if the old one was used since', () => {
    const later = oldBucket(1_000, 2_000, 5_000);
    expect(planBucket('0002', later, oldBucket(5_000, 1_000, 1_000))).toEqual({ kind: 'copy', image: later });
  });

  test('is not given the tokens of an old one that was made anew', () => {
    const image = merged(planBucket('0002', oldBucket(59_000, 9_000, 1_000), oldBucket(-30_000, 1_000, 90_000)));
    // 8 s refill of 60 per minute, less the one that the new one lacks.
    expect(held(image, 9_000)).toBe(-30_000 + 8_000 - 1_000);
    expect(image.limits[0]?.consumedMilli).toBe(91_000);
  });

  test('loses what the old one lacked if a client uses it already, and keeps what it has besides', () => {
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

  test('never holds more than it held, whatever the two are', () => {
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

  test('gets a limit that only the old one has', () => {
    const other: ShardImage = { ...clientBucket(1_000, 5_000), limits: [] };
    const plan = planBucket('0002', oldBucket(2_000, 5_000, 3), other);
    expect(plan).toMatchObject({ kind: 'merge', image: { limits: [{ limit: RPM, consumedMilli: 3 }] } });
  });
});

describe('a shard that was left behind', () => {
  test('is added to what was made of the others', () => {
    const first = { ...oldBucket(10_000, 1_000, 5), writeId: buildMigratedWriteId('0003', 1_000) };
    const plan = planStrays('0003', [part(4_000, 1_000, 6)], oldBucket(4_000, 1_000, 6), first);
    expect(plan).toMatchObject({ kind: 'merge', image: { limits: [{ tokensMilli: 14_000, consumedMilli: 11 }] } });
  });

  test('takes from a bucket that clients use', () => {
    const plan = planStrays('0003', [part(4_000, 1_000)], oldBucket(4_000, 1_000), clientBucket(60_000, 1_000));
    expect(held(merged(plan), 1_001)).toBeLessThanOrEqual(4_001);
  });
});
