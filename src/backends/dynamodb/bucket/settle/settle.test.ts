import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { printRequest } from '../../../../../tests/support/dynamodb/printed-requests.js';
import { stalePairs } from '../../../../../tests/support/dynamodb/group/random-groups.js';
import {
  amount,
  imageOf,
  KEY,
  limitLists,
  NOW_MS,
  NS,
  VERSION,
  withHolders,
  withTokens,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { accountIn } from '../../../../../tests/support/dynamodb/shard/shard-truth.js';
import { applyWrite, writeHolds } from '../../../../core/bucket/bucket.js';
import { amountOf } from '../../../../core/bucket/decide.js';
import { Limit } from '../../../../core/limit.js';
import { shareOf } from '../../../../core/bucket/shard.js';
import { worthOf } from '../../../../../tests/oracle/model.js';
import { buildSettlement } from '../../../../../tests/support/dynamodb/write-inputs.js';
import type { ShardImage } from '../../table/items.js';
import { planSettleAll } from './settle-all.js';
import { applySettlement, planSettle, type Settlement } from './settle.js';

const RUNS = { numRuns: 1_500 };
const RPM = Limit.perMinute('rpm', 60);
const SLOTS = Limit.concurrent('slots', 3);

/** Whether the store, which has `truth`, accepts a settlement that was planned on the image `seen`. */
function settlementHolds(seen: ShardImage, settlement: Settlement, truth: ShardImage): boolean {
  const input = buildSettlement({ tableName: 't', ns: NS }, seen, settlement, seen.version, null, {
    own: 'own',
    unanswered: [],
  });
  const asksForWrite = printRequest(input).includes('\n   w = ');
  if (asksForWrite && seen.writeId !== truth.writeId) return false;
  if (seen.baseMs !== truth.baseMs) return false;
  return settlement.limits.every((one) => {
    const account = accountIn(truth, one.limit.name);
    if (one.kind === 'unlimited') return true;
    if (one.kind === 'starts') return !one.isNew || account === undefined;
    return account !== undefined && writeHolds(one.write, account.tokensMilli);
  });
}

function tokensAfter(
  truth: ShardImage,
  one: Settlement['limits'][number],
): ShardImage['limits'][number]['tokensMilli'] {
  switch (one.kind) {
    case 'starts':
      return one.tokensMilli;
    case 'stays':
      return applyWrite(one.write, accountIn(truth, one.limit.name)!.tokensMilli);
    case 'unlimited':
      return 0;
  }
}

/** The stored item after a settlement that may have been planned on another image. */
function settled(truth: ShardImage, settlement: Settlement): ShardImage {
  return {
    ...truth,
    baseMs: settlement.nextBaseMs,
    limits: settlement.limits.map((one) => ({
      limit: one.limit,
      rate: shareOf(one.limit, truth.key.shard, truth.shardCount),
      tokensMilli: tokensAfter(truth, one),
      consumedMilli: 0,
    })),
  };
}

const heldOf = ({ holders }: ShardImage, name: string): number =>
  [...holders.values()].reduce((sum, { slots }) => sum + Number(amountOf(slots, name) ?? 0), 0);

describe('settling one shard', () => {
  test('settling credits at the old rate, caps at the smaller capacity, and starts new limits full, whatever the image was', () => {
    let written = 0;
    fc.assert(
      fc.property(stalePairs, limitLists(), ({ truth, seen }, limits) => {
        const settlement = planSettle(seen, { limits }, NOW_MS);
        if (!settlementHolds(seen, settlement, truth)) return;
        written += 1;
        const after = settled(truth, settlement);
        for (const { limit, rate, tokensMilli } of after.limits) {
          const before = accountIn(truth, limit.name);
          if (limit.kind === 'concurrent') continue;
          const had =
            before === undefined || before.limit.kind !== 'rate'
              ? BigInt(rate.capacityMilli)
              : worthOf(before.rate, before.tokensMilli, truth.baseMs, settlement.nextBaseMs);
          const least = had < BigInt(rate.capacityMilli) ? had : BigInt(rate.capacityMilli);
          expect([limit.name, worthOf(rate, tokensMilli, after.baseMs, after.baseMs)]).toEqual([limit.name, least]);
        }
      }),
      RUNS,
    );
    expect(written).toBeGreaterThan(100);
  });

  test('settling leaves free the slots that no holder holds, whatever the image was and whether the limit existed', () => {
    let written = 0;
    const kinds = fc.array(fc.constantFrom('stays', 'goes', 'was a rate'), { minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(stalePairs, kinds, fc.nat(9), ({ truth, seen }, before, capacity) => {
        const limits = truth.limits.map(({ limit }) =>
          limit.kind === 'rate' ? limit : Limit.concurrent(limit.name, capacity),
        );
        const was = (image: ShardImage): ShardImage => ({
          ...image,
          limits: image.limits.flatMap((account, at) => {
            if (account.limit.kind === 'rate' || before[at] === 'stays') return [account];
            if (before[at] === 'goes') return [];
            const limit = Limit.perMinute(account.limit.name, 5);
            return [{ ...account, limit, rate: limit, tokensMilli: 77 }];
          }),
        });
        const [oldTruth, oldSeen] = [was(truth), was(seen)];
        const settlement = planSettle(oldSeen, { limits }, NOW_MS);
        if (!settlementHolds(oldSeen, settlement, oldTruth)) return;
        written += 1;
        const after = settled(oldTruth, settlement);
        for (const { limit, tokensMilli } of after.limits) {
          if (limit.kind === 'rate') continue;
          expect([limit.name, Number(tokensMilli) + heldOf(after, limit.name)]).toEqual([
            limit.name,
            limit.capacityMilli,
          ]);
        }
      }),
      RUNS,
    );
    expect(written).toBeGreaterThan(100);
  });

  test('a settlement on a correct image is written, and peeking shows its result before', () => {
    fc.assert(
      fc.property(stalePairs, limitLists(), ({ truth }, limits) => {
        const settlement = planSettle(truth, { limits }, NOW_MS);
        expect(settlementHolds(truth, settlement, truth)).toBe(true);
        const foretold = applySettlement(truth, settlement);
        expect(foretold.baseMs).toBe(settlement.nextBaseMs);
        expect(foretold.limits.map(({ tokensMilli }) => tokensMilli)).toEqual(
          settled(truth, settlement).limits.map(({ tokensMilli }) => tokensMilli),
        );
      }),
      RUNS,
    );
  });

  test('a raise adds no tokens', () => {
    const image = withTokens(imageOf([RPM], { baseMs: NOW_MS }), 7_000);
    const raised = applySettlement(image, planSettle(image, { limits: [Limit.perMinute('rpm', 6_000)] }, NOW_MS));
    // The base moves strictly forward, by a millisecond: one thousandth of a second at the old rate.
    expect(raised.limits[0]).toMatchObject({ tokensMilli: 7_001, rate: { capacityMilli: 6_000_000 } });
  });

  test('a cut clamps the balance, and keeps a debt', () => {
    const full = imageOf([RPM]);
    const cut = { limits: [Limit.perMinute('rpm', 6)] };
    expect(applySettlement(full, planSettle(full, cut, NOW_MS)).limits[0]!.tokensMilli).toBe(6_000);
    const debt = withTokens(imageOf([RPM], { baseMs: NOW_MS - 1_000 }), -90_000);
    expect(applySettlement(debt, planSettle(debt, cut, NOW_MS)).limits[0]!.tokensMilli).toBe(-89_000);
  });

  test('a cut may leave fewer slots than are held', () => {
    const image = withTokens(imageOf([SLOTS]), 0);
    expect(
      applySettlement(image, planSettle(image, { limits: [Limit.concurrent('slots', 1)] }, NOW_MS)).limits[0]!
        .tokensMilli,
    ).toBe(-2_000);
  });

  test('a settlement names the limits that it removes', () => {
    expect(planSettle(imageOf([RPM, SLOTS]), { limits: [SLOTS] }, NOW_MS).removed).toEqual(['rpm']);
  });

  test('a settlement moves the base strictly forward', () => {
    expect(planSettle(imageOf([RPM], { baseMs: NOW_MS + 5 }), { limits: [RPM] }, NOW_MS).nextBaseMs).toBe(NOW_MS + 6);
  });
});

describe('settling all shards of a bucket', () => {
  const shardsOf = (limit: Limit, count: number): readonly ShardImage[] =>
    Array.from({ length: count }, (_, shard) => imageOf([limit], { shardCount: count, key: { ...KEY, shard } }));
  const sumOf = (images: readonly ShardImage[]): number =>
    images.reduce((sum, { limits }) => sum + Number(limits[0]?.tokensMilli ?? 0), 0);

  const settleAll = (images: readonly ShardImage[], limit: Limit): readonly ShardImage[] => {
    const { settlements } = planSettleAll(images, { limits: [limit], version: VERSION }, NOW_MS);
    return images.map((image, at) => applySettlement(image, settlements[at]!));
  };

  test('settling all shards changes slots by the change of the capacity, in whole slots', () => {
    const capacities = fc.integer({ min: 0, max: 100 });
    fc.assert(
      fc.property(capacities, capacities, fc.constantFrom(2, 4, 8), (from, to, count) => {
        const images = shardsOf(Limit.concurrent('slots', from), count);
        const after = settleAll(images, Limit.concurrent('slots', to));
        expect(sumOf(after) - sumOf(images)).toBe((to - from) * 1_000);
        for (const image of after) expect(Number(image.limits[0]!.tokensMilli) % 1_000).toBe(0);
      }),
    );
  });

  test('settling all shards counts slots that one of them already holds once', () => {
    const images = shardsOf(RPM, 2).map((image, at) =>
      at === 1 ? withHolders(image, { lease: { slots: [amount('slots', 1_000)] } }) : image,
    );
    expect(sumOf(settleAll(images, SLOTS))).toBe(2_000);
  });

  test('settling shards one by one gives no shard a free slot that it did not have, whatever the capacity was and becomes', () => {
    const capacities = fc.integer({ min: 0, max: 100 });
    const frees = fc.integer({ min: -50, max: 150 });
    fc.assert(
      fc.property(capacities, capacities, frees, fc.constantFrom(2, 4, 8), (from, to, free, count) => {
        for (const shard of shardsOf(Limit.concurrent('slots', from), count)) {
          const image = withTokens(shard, free * 1_000);
          const limits = [Limit.concurrent('slots', to)];
          const after = applySettlement(image, planSettle(image, { limits }, NOW_MS)).limits[0]!.tokensMilli;
          expect(Number(after)).toBeLessThanOrEqual(to < from ? 0 : Math.max(0, free * 1_000));
        }
      }),
    );
  });

  test('settled shards have the whole capacity of a rate together, and no more', () => {
    const after = shardsOf(SLOTS, 4).map((image) =>
      applySettlement(image, planSettle(image, { limits: [Limit.perMinute('rpm', 61)] }, NOW_MS)),
    );
    expect(sumOf(after)).toBe(61_000);
  });
});
