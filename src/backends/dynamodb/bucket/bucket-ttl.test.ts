import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { groups, stalePairs } from '../../../../tests/support/dynamodb/group/random-groups.js';
import {
  amount,
  askEntry,
  changeEntry,
  extendEntry,
  imageOf,
  NOW_MS,
  withHolders,
  withTokens,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { shardWriteHolds } from '../../../../tests/support/dynamodb/shard/shard-truth.js';
import { Limit } from '../../../core/limit.js';
import { worthOf } from '../../../../tests/oracle/model.js';
import { planGroup } from './group/plan-group.js';
import type { ShardImage } from '../table/items.js';
import { applyShardWrite, expiresTooEarly, expirySec, needsTtl, needsTtlRefresh } from './shard-write.js';

const NOW_SEC = NOW_MS / 1_000;
const HOUR_SEC = 3_600;
const DAY_SEC = 86_400;
const DAILY = Limit.perDay('daily', 100);
const SLOTS = Limit.concurrent('slots', 3);

/** Whether a bucket that is created at that time would be the same: every rate is full and every holder has expired. */
function mayBeDeleted(image: ShardImage, atMs: number): boolean {
  return (
    image.limits.every(
      ({ limit, rate, tokensMilli }) =>
        limit.kind === 'concurrent' || worthOf(rate, tokensMilli, image.baseMs, atMs) >= BigInt(rate.capacityMilli),
    ) && [...image.holders.values()].every(({ expiresAtMs }) => expiresAtMs <= atMs)
  );
}

/** The image with a debt that other processes caused meanwhile: a multiple of the capacity of each rate. */
function deeper(image: ShardImage, capacities: number): ShardImage {
  const limits = image.limits.map((account) => {
    if (account.limit.kind === 'concurrent') return account;
    return { ...account, tokensMilli: Number(account.tokensMilli) - capacities * account.rate.capacityMilli };
  });
  return { ...image, limits };
}

const at = { nowMs: NOW_MS, trust: 'exact', lifeFactor: 7, withoutRefunds: false } as const;
const written = (image: ShardImage, entries: Parameters<typeof planGroup>[1]): ShardImage => {
  const plan = planGroup(image, entries, at);
  if (plan.kind !== 'write') throw new Error(`It is ${plan.kind}`);
  return applyShardWrite(image, plan.write, 'own');
};

describe('the ttl of a bucket', () => {
  test('a bucket expires only when it equals a new bucket, whatever was written to it', () => {
    const ttls = fc.constantFrom(0, NOW_SEC, NOW_SEC + 10, NOW_SEC + 1_800, NOW_SEC + 100_000);
    let writes = 0;
    fc.assert(
      fc.property(stalePairs, groups, ttls, ({ truth }, group, ttlSec) => {
        const plan = planGroup({ ...truth, ttlSec }, group(truth), at);
        if (plan.kind !== 'write') return;
        writes += 1;
        const after = applyShardWrite({ ...truth, ttlSec }, plan.write, 'own');
        expect(mayBeDeleted(after, after.ttlSec! * 1_000)).toBe(true);
        expect(after.ttlSec).toBeGreaterThanOrEqual(NOW_SEC + 1_800);
      }),
      { numRuns: 1_500 },
    );
    expect(writes).toBeGreaterThan(300);
  });

  test('a bucket expires only when it equals a new bucket, even if a write on a stale image lands', () => {
    let landed = 0;
    const ttls = fc.constantFrom(0, NOW_SEC + 1_800, NOW_SEC + 3_600, NOW_SEC + 10_000, NOW_SEC + 100_000);
    fc.assert(
      fc.property(stalePairs, groups, ttls, fc.nat(3), fc.nat(3_000), ({ truth, seen }, group, ttlSec, draw, depth) => {
        const remembered = { ...seen, ttlSec };
        const debt = deeper(truth, draw === 2 ? 0 : depth);
        // Under one base the ttl only becomes later or is removed.
        const actual = { ...debt, ttlSec: draw === 0 ? null : Math.max(ttlSec, expirySec(debt, NOW_MS, 1)) };
        const plan = planGroup(remembered, group(seen), { ...at, trust: 'guess', lifeFactor: draw === 1 ? 7 : 1 });
        if (plan.kind !== 'write' || !shardWriteHolds(remembered, plan.write, actual)) return;
        const after = applyShardWrite(actual, plan.write, 'own');
        if (after.ttlSec === null) return;
        landed += 1;
        expect(mayBeDeleted(after, after.ttlSec * 1_000)).toBe(true);
      }),
      { numRuns: 4_000 },
    );
    expect(landed).toBeGreaterThan(400);
  });

  test('the ttl is at least an hour ahead, and seven times the longest fill if that is longer', () => {
    expect(expirySec(imageOf([Limit.perMinute('rpm', 60)]), NOW_MS, 7)).toBe(NOW_SEC + HOUR_SEC);
    expect(expirySec(withTokens(imageOf([DAILY], { baseMs: NOW_MS }), 0), NOW_MS, 7)).toBe(NOW_SEC + 7 * DAY_SEC);
    expect(expirySec(imageOf([DAILY]), NOW_MS, 7)).toBe(NOW_SEC + 6 * DAY_SEC);
  });

  test('a debt extends the ttl by the time that it takes to repay', () => {
    const debt = withTokens(imageOf([DAILY], { baseMs: NOW_MS }), -900_000);
    expect(expirySec(debt, NOW_MS, 7)).toBe(NOW_SEC + 16 * DAY_SEC);
  });

  test('a debt that takes longer to repay than a time can say removes the ttl, and later debits still fit', () => {
    const debit = changeEntry([DAILY], { daily: 1e15 });
    let image = imageOf([DAILY], { ttlSec: NOW_SEC + DAY_SEC });
    for (let sent = 0; sent < 3; sent++) {
      const plan = planGroup(image, [debit], { nowMs: NOW_MS, trust: 'exact', lifeFactor: 7, withoutRefunds: false });
      if (plan.kind !== 'write') throw new Error(plan.kind);
      expect(shardWriteHolds(image, plan.write, image)).toBe(true);
      image = applyShardWrite(image, plan.write, 'own');
    }
    expect(image.ttlSec).toBeNull();
  });

  test('the ttl is not before the expiry of any holder', () => {
    const held = withHolders(imageOf([SLOTS]), { lease: { expiresAtMs: NOW_MS + 5 * DAY_SEC * 1_000 } });
    expect(expirySec(held, NOW_MS, 7)).toBe(NOW_SEC + 5 * DAY_SEC);
  });

  test('a write renews the ttl once less than half of the life is left, and not before', () => {
    const ask = askEntry([DAILY], { daily: 1_000 });
    const half = (7 * DAY_SEC) / 2;
    const image = withTokens(imageOf([DAILY], { baseMs: NOW_MS }), 50_000);
    const keeps = { ...image, ttlSec: NOW_SEC + half };
    expect(needsTtlRefresh(keeps, NOW_MS, 7)).toBe(false);
    expect(written(keeps, [ask]).ttlSec).toBe(keeps.ttlSec);
    const renews = { ...image, ttlSec: NOW_SEC + half - 1 };
    expect(needsTtlRefresh(renews, NOW_MS, 7)).toBe(true);
    expect(written(renews, [ask]).ttlSec).toBeGreaterThan(NOW_SEC + 6 * DAY_SEC);
  });

  test.each([
    ['a debit', changeEntry([DAILY], { daily: 2_000_000 })],
    [
      'a holder',
      askEntry(
        [DAILY],
        { daily: 1_000 },
        {
          leaseId: 'new',
          holder: { expiresAtMs: NOW_MS + 9e9, acquiredAtMs: 0, slots: [], rates: null, caller: null },
        },
      ),
    ],
    ['an extension', extendEntry('lease', NOW_MS + 9e9)],
  ])('the ttl is renewed by %s that lasts longer', (_, entry) => {
    const image = withHolders(imageOf([DAILY], { ttlSec: NOW_SEC + 7 * DAY_SEC, baseMs: NOW_MS }), {
      lease: { slots: [amount('x', 1)] },
    });
    expect(expiresTooEarly(image)).toBe(false);
    const after = written(image, [entry]);
    expect(after.ttlSec).toBeGreaterThan(image.ttlSec!);
    expect(expiresTooEarly(after)).toBe(false);
  });

  test('a take adds no ttl to a bucket with its own limits or with several shards', () => {
    const image = imageOf([DAILY], { ttlSec: null, baseMs: NOW_MS });
    expect(written(image, [askEntry([DAILY], { daily: 1_000 }, { lasting: true })]).ttlSec).toBeNull();
    const sharded = imageOf([DAILY], { ttlSec: null, baseMs: NOW_MS, shardCount: 2 });
    expect(written(sharded, [askEntry([DAILY], { daily: 1_000 })]).ttlSec).toBeNull();
  });

  test('the ttl is removed once the entity and resource have their own limits, unless the config that says so is older', () => {
    const image = imageOf([DAILY], { baseMs: NOW_MS, ttlSec: NOW_SEC + 7 * DAY_SEC });
    const ask = (sequence: number) =>
      askEntry([DAILY], { daily: 1_000 }, { lasting: true, version: { sequence, openedAtMs: 0 } });
    expect(written(image, [ask(2)]).ttlSec).toBeNull();
    expect(written(image, [ask(1)]).ttlSec).toBeNull();
    expect(written(image, [ask(0)]).ttlSec).toBe(image.ttlSec);
  });

  test('a bucket without a ttl needs one only if it has one shard, inherited limits and no write for a minute', () => {
    const image = imageOf([DAILY], { ttlSec: null, baseMs: NOW_MS });
    expect(written(image, [askEntry([DAILY], { daily: 1_000 })]).ttlSec).toBeNull();
    expect(needsTtl(image, false, 60_000)).toBe(true);
    expect(needsTtl(image, false, 59_999)).toBe(false);
    expect(needsTtl(image, true, 60_000)).toBe(false);
    expect(needsTtl({ ...image, ttlSec: NOW_SEC }, false, 60_000)).toBe(false);
    expect(needsTtl({ ...image, shardCount: 2 }, false, 60_000)).toBe(false);
  });

  test('limits that never refill do not extend the ttl', () => {
    const blocked = Limit.custom('blocked', { capacity: 0, refillAmount: 0, refillPeriodMs: 1_000 });
    expect(expirySec(withTokens(imageOf([blocked]), -5_000), NOW_MS, 7)).toBe(NOW_SEC + HOUR_SEC);
  });
});
