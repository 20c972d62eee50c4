import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stalePairs } from '../../../../tests/support/dynamodb/group/random-groups.js';
import {
  amount,
  imageOf,
  KEY,
  limitLists,
  NOW_MS,
  withHolders,
  withTokens,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { accountIn } from '../../../../tests/support/dynamodb/shard/shard-truth.js';
import { applyWrite, writeHolds } from '../../../core/bucket/bucket.js';
import { heldSlots } from '../../../core/bucket/held-slots.js';
import { sub } from '../../../core/int.js';
import { Limit } from '../../../core/limit.js';
import { shareOf } from '../../../core/bucket/shard.js';
import { worthOf } from '../../../../tests/oracle/model.js';
import type { Account, ShardImage } from '../table/items.js';
import { MAX_SHARDS, maySplit, planMerge, planSplit, type Split } from './split.js';

const RUNS = { numRuns: 1_000 };
const RPM = Limit.perMinute('rpm', 100);

/** Whether the store, which has `truth`, accepts a split that was planned on the image `seen`. */
function splitHolds(seen: ShardImage, split: Split, truth: ShardImage): boolean {
  if (seen.baseMs !== truth.baseMs || seen.shardCount !== truth.shardCount) return false;
  return split.limits.every(({ account, keeps }) =>
    writeHolds(keeps, accountIn(truth, account.limit.name)!.tokensMilli),
  );
}

/** Both shards after the split of the stored item. */
function halves(truth: ShardImage, split: Split): readonly [ShardImage, ShardImage] {
  const { count, newShard, nextBaseMs } = split;
  const half = (shard: number, tokens: (limit: Split['limits'][number]) => Account['tokensMilli']): ShardImage => ({
    ...truth,
    key: { ...KEY, shard },
    baseMs: nextBaseMs,
    shardCount: count,
    holders: shard === truth.key.shard ? truth.holders : new Map(),
    limits: split.limits.map((limit) => ({
      ...limit.account,
      rate: shareOf(limit.account.limit, shard, count),
      tokensMilli: tokens(limit),
      consumedMilli: 0,
    })),
  });
  const kept = half(truth.key.shard, ({ account, keeps }) =>
    applyWrite(keeps, accountIn(truth, account.limit.name)!.tokensMilli),
  );
  return [kept, half(newShard, ({ movedMilli }) => movedMilli)];
}

const worthIn = (image: ShardImage, name: string, atMs: number): bigint => {
  const { rate, tokensMilli } = accountIn(image, name)!;
  return worthOf(rate, tokensMilli, image.baseMs, atMs);
};

describe('splits', () => {
  test('a split creates and loses no tokens, however the balances changed since the image', () => {
    let written = 0;
    fc.assert(
      fc.property(stalePairs, ({ truth, seen }) => {
        const split = planSplit(seen, NOW_MS);
        if (!splitHolds(seen, split, truth)) return;
        written += 1;
        const [kept, added] = halves(truth, split);
        for (const { limit } of truth.limits) {
          const before = worthIn(truth, limit.name, split.nextBaseMs);
          const after = worthIn(kept, limit.name, split.nextBaseMs) + worthIn(added, limit.name, split.nextBaseMs);
          expect(after, String(limit)).toBe(before);
        }
        expect(kept.holders).toBe(truth.holders);
      }),
      RUNS,
    );
    expect(written).toBeGreaterThan(150);
  });

  test('a split planned on a correct image is written', () => {
    fc.assert(
      fc.property(stalePairs, ({ truth }) => {
        expect(splitHolds(truth, planSplit(truth, NOW_MS), truth)).toBe(true);
      }),
      RUNS,
    );
  });

  test('a split moves half of the balance, and leaves no half in debt unless the whole was', () => {
    fc.assert(
      fc.property(stalePairs, ({ truth }) => {
        const split = planSplit(truth, NOW_MS);
        const [kept, added] = halves(truth, split);
        for (const { limit } of truth.limits) {
          const [one, other] = [kept, added].map((image) => worthIn(image, limit.name, split.nextBaseMs));
          const unit = limit.kind === 'concurrent' ? 1_000n : 1n;
          if (one! + other! < 0n) continue;
          expect(other! >= 0n && one! >= other!, String(limit)).toBe(true);
          expect(one! - other! <= unit, String(limit)).toBe(true);
        }
      }),
      RUNS,
    );
  });

  test('a split moves whole free slots, and no held ones', () => {
    const slots = Limit.concurrent('slots', 8);
    const held = { a: { slots: [amount('slots', 2_000)] }, b: { slots: [amount('slots', 1_000)] } };
    const image = withHolders(withTokens(imageOf([slots]), 5_000), held);
    expect(planSplit(image, NOW_MS).limits[0]).toMatchObject({ movedMilli: 2_000, keeps: { deltaMilli: -2_000 } });
  });

  test('a shard that holds more slots than exist can be split, and none moves', () => {
    const image = withTokens(imageOf([Limit.concurrent('slots', 1)]), -2_000);
    const split = planSplit(image, NOW_MS);
    expect(split.limits[0]!.movedMilli).toBe(0);
    expect(splitHolds(image, split, withTokens(image, -3_000))).toBe(true);
  });

  test('a split moves a part of a debt', () => {
    const image = withTokens(imageOf([RPM], { baseMs: NOW_MS - 1 }), -9_001);
    const split = planSplit(image, NOW_MS);
    expect(split.limits[0]!.movedMilli).toBe(-4_500);
    // The debt may have grown meanwhile.
    expect(splitHolds(image, split, withTokens(image, -20_000))).toBe(true);
  });

  test('a split sets the next base and twice the count, and numbers the new shard after its parent', () => {
    const image = imageOf([RPM], { shardCount: 4, key: { ...KEY, shard: 3 }, baseMs: NOW_MS + 5 });
    expect(planSplit(image, NOW_MS)).toMatchObject({ nextBaseMs: NOW_MS + 6, count: 8, newShard: 7 });
  });
});

describe('shares', () => {
  test('the shares of all shards add up to the whole after any splits', () => {
    const numbers = fc.array(fc.nat(63), { maxLength: 40 });
    fc.assert(
      fc.property(limitLists({ huge: true }), numbers, (limits, picks) => {
        const shards = new Map([[0, 1]]);
        for (const pick of picks) {
          const shard = [...shards.keys()][pick % shards.size]!;
          const count = shards.get(shard)! * 2;
          if (count > MAX_SHARDS) continue;
          shards.set(shard, count);
          shards.set(shard + count / 2, count);
        }
        for (const limit of limits) {
          const shares = [...shards].map(([shard, count]) => shareOf(limit, shard, count).capacityMilli);
          expect(shares.reduce((sum, share) => sum + share, 0)).toBe(limit.capacityMilli);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('shares of slots are whole, so that none is lost between two shards', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 200 }), fc.constantFrom(2, 4, 8, 64), (capacity, count) => {
        const limit = Limit.concurrent('slots', capacity);
        const shares = Array.from({ length: count }, (_, shard) => shareOf(limit, shard, count).capacityMilli);
        expect(shares.every((share) => share % 1_000 === 0)).toBe(true);
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(capacity * 1_000);
      }),
    );
  });
});

describe('limits of splitting', () => {
  const none = (): number => 0;

  test('a bucket is split into at most 64 shards', () => {
    const large = Limit.perMinute('rpm', 1_000_000);
    expect(maySplit(imageOf([large], { shardCount: 32, key: { ...KEY, shard: 31 } }), none)).toBe(true);
    expect(maySplit(imageOf([large], { shardCount: 64, key: { ...KEY, shard: 63 } }), none)).toBe(false);
  });

  test('a bucket may be split while the smallest share of every limit is a whole token or slot', () => {
    expect(maySplit(imageOf([Limit.perMinute('rpm', 2)]), none)).toBe(true);
    expect(maySplit(imageOf([Limit.perMinute('rpm', 1)]), none)).toBe(false);
    expect(maySplit(imageOf([RPM, Limit.concurrent('slots', 1)]), none)).toBe(false);
    expect(maySplit(imageOf([RPM, Limit.concurrent('slots', 3)]), none)).toBe(true);
    expect(maySplit(imageOf([Limit.concurrent('slots', 3)], { shardCount: 2 }), none)).toBe(false);
  });

  test('a bucket may be split while the smallest share holds four of the largest recent ask', () => {
    const ask = (milli: number) => (name: string) => (name === 'rpm' ? milli : 0);
    expect(maySplit(imageOf([RPM]), ask(12_500))).toBe(true);
    expect(maySplit(imageOf([RPM]), ask(12_501))).toBe(false);
  });
});

describe('merges', () => {
  const pairs = fc.tuple(stalePairs, fc.nat(5_000), fc.nat(5_000)).map(([{ truth, seen }, ageMs, laterMs]) => {
    const stays = { ...truth, shardCount: 2 };
    const leaves = { ...seen, shardCount: 2, key: { ...KEY, shard: 1 }, holders: new Map(), baseMs: NOW_MS - ageMs };
    const asShard = (image: ShardImage): ShardImage => ({
      ...image,
      version: { sequence: 1, openedAtMs: 0 },
      limits: image.limits.map((account) => ({ ...account, rate: shareOf(account.limit, image.key.shard, 2) })),
    });
    return { stays: asShard(stays), leaves: asShard(leaves), nowMs: NOW_MS + laterMs };
  });

  test('a merge adds the balances of both shards at the same instant, and frees the slots that no holder holds', () => {
    fc.assert(
      fc.property(pairs, ({ stays, leaves, nowMs }) => {
        const merge = planMerge(stays, leaves, nowMs)!;
        expect(merge).toMatchObject({ count: 1 });
        expect(merge.nextBaseMs).toBeGreaterThanOrEqual(nowMs);
        expect(merge.nextBaseMs).toBeGreaterThan(Math.max(stays.baseMs, leaves.baseMs));
        for (const { account, tokensMilli } of merge.limits) {
          const { name } = account.limit;
          const both = worthIn(stays, name, merge.nextBaseMs) + worthIn(leaves, name, merge.nextBaseMs);
          // One shard is the whole bucket: what its holders do not hold is free, even if the two shards had lost slots.
          const free = BigInt(sub(account.limit.capacityMilli, heldSlots(stays.holders, name)));
          expect(BigInt(tokensMilli)).toBe(account.limit.kind === 'rate' ? both : free);
        }
      }),
      RUNS,
    );
  });

  test('merging a fresh split restores it, up to less than a token that the shares refill in a millisecond', () => {
    fc.assert(
      fc.property(stalePairs, ({ truth }) => {
        const split = planSplit(truth, NOW_MS);
        const [kept, added] = halves(truth, split);
        const merge = planMerge(kept, added, NOW_MS)!;
        for (const { account, tokensMilli } of merge.limits) {
          const difference = BigInt(tokensMilli) - worthIn(truth, account.limit.name, merge.nextBaseMs);
          expect(difference > -1_000n && difference < 1_000n, String(account.limit)).toBe(true);
          if (account.limit.kind === 'concurrent') expect(difference).toBe(0n);
        }
      }),
      RUNS,
    );
  });

  const shard = (number: number, count: number, changes: Partial<ShardImage> = {}): ShardImage =>
    imageOf([RPM], { shardCount: count, key: { ...KEY, shard: number }, ...changes });

  test.each([
    ['are no pair', shard(0, 4), shard(1, 4)],
    ['were split differently often', shard(0, 2), shard(1, 4)],
    ['have different rules', shard(0, 2), shard(1, 2, { version: { sequence: 2, openedAtMs: 0 } })],
    ['are the wrong way round', shard(1, 2), shard(0, 2)],
    ['are not split at all', shard(0, 1), shard(0, 1)],
    ['still have holders', shard(0, 2), withHolders(shard(1, 2), { lease: {} })],
  ])('shards are not merged if they %s', (_, stays, leaves) => {
    expect(planMerge(stays, leaves, NOW_MS)).toBeNull();
  });
});
