import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { groups, stalePairs } from '../../../../tests/support/random-groups.js';
import {
  amount,
  askEntry,
  changeEntry,
  extendEntry,
  imageOf,
  NOW_MS,
  withHolders,
  withTokens,
} from '../../../../tests/support/shard-images.js';
import { moveHolds } from '../../../../tests/support/shard-truth.js';
import { Limit } from '../../../core/limit.js';
import { worthOf } from '../../../testing/oracle/model.js';
import { planGroup } from './plan-group.js';
import type { ShardImage } from '../table/items.js';
import { expiresTooEarly, expirySec, needsTtlRefresh } from './bucket-ttl.js';
import { applyShardWrite } from './shard-write.js';
import { needsEnd } from './settle-one.js';

const NOW_SEC = NOW_MS / 1_000;
const HOUR_SEC = 3_600;
const DAY_SEC = 86_400;
const DAILY = Limit.perDay('daily', 100);
const SLOTS = Limit.concurrent('slots', 3);

/** Whether a bucket that is born at that time would be the same: every rate is full and every holder has expired. */
function isForgettable(image: ShardImage, atMs: number): boolean {
  return (
    image.limits.every(
      ({ limit, rate, tokensMilli }) =>
        limit.kind === 'concurrent' || worthOf(rate, tokensMilli, image.baseMs, atMs) >= BigInt(rate.capacityMilli),
    ) && [...image.holders.values()].every(({ expiresAtMs }) => expiresAtMs <= atMs)
  );
}

/** The image with a debt that others have made meanwhile, of so many capacities of each rate. */
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
  return applyShardWrite(image, plan.move, 'own');
};

describe('the life of a bucket', () => {
  test('ends only when nothing would be different without it, whatever was written to it', () => {
    const ttls = fc.constantFrom(0, NOW_SEC, NOW_SEC + 10, NOW_SEC + 1_800, NOW_SEC + 100_000);
    let writes = 0;
    fc.assert(
      fc.property(stalePairs, groups, ttls, ({ truth }, group, ttlSec) => {
        const plan = planGroup({ ...truth, ttlSec }, group(truth), at);
        if (plan.kind !== 'write') return;
        writes += 1;
        const after = applyShardWrite({ ...truth, ttlSec }, plan.move, 'own');
        expect(isForgettable(after, after.ttlSec! * 1_000)).toBe(true);
        expect(after.ttlSec).toBeGreaterThanOrEqual(NOW_SEC + 1_800);
      }),
      { numRuns: 1_500 },
    );
    expect(writes).toBeGreaterThan(300);
  });

  test('ends only then also where others have written since the image was seen, in the very write that lands', () => {
    let landed = 0;
    const ttls = fc.constantFrom(0, NOW_SEC + 1_800, NOW_SEC + 3_600, NOW_SEC + 10_000, NOW_SEC + 100_000);
    fc.assert(
      fc.property(stalePairs, groups, ttls, fc.nat(3), fc.nat(3_000), ({ truth, seen }, group, ttlSec, draw, depth) => {
        const remembered = { ...seen, ttlSec };
        const debt = deeper(truth, draw === 2 ? 0 : depth);
        // Under one base it only becomes later, or goes.
        const actual = { ...debt, ttlSec: draw === 0 ? null : Math.max(ttlSec, expirySec(debt, NOW_MS, 1)) };
        const plan = planGroup(remembered, group(seen), { ...at, trust: 'guess', lifeFactor: draw === 1 ? 7 : 1 });
        if (plan.kind !== 'write' || !moveHolds(remembered, plan.move, actual)) return;
        const after = applyShardWrite(actual, plan.move, 'own');
        if (after.ttlSec === null) return;
        landed += 1;
        expect(isForgettable(after, after.ttlSec * 1_000)).toBe(true);
      }),
      { numRuns: 4_000 },
    );
    expect(landed).toBeGreaterThan(400);
  });

  test('is at least an hour, and seven times the longest fill if that is longer', () => {
    expect(expirySec(imageOf([Limit.perMinute('rpm', 60)]), NOW_MS, 7)).toBe(NOW_SEC + HOUR_SEC);
    expect(expirySec(withTokens(imageOf([DAILY], { baseMs: NOW_MS }), 0), NOW_MS, 7)).toBe(NOW_SEC + 7 * DAY_SEC);
    expect(expirySec(imageOf([DAILY]), NOW_MS, 7)).toBe(NOW_SEC + 6 * DAY_SEC);
  });

  test('lasts for as long as a debt, and then as long as before', () => {
    const debt = withTokens(imageOf([DAILY], { baseMs: NOW_MS }), -900_000);
    expect(expirySec(debt, NOW_MS, 7)).toBe(NOW_SEC + 16 * DAY_SEC);
  });

  test('outlasts every holder', () => {
    const held = withHolders(imageOf([SLOTS]), { lease: { expiresAtMs: NOW_MS + 5 * DAY_SEC * 1_000 } });
    expect(expirySec(held, NOW_MS, 7)).toBe(NOW_SEC + 5 * DAY_SEC);
  });

  test('is renewed by a write once less than a half of it is left, and not before', () => {
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
  ])('is renewed by %s that reaches beyond it', (_, entry) => {
    const image = withHolders(imageOf([DAILY], { ttlSec: NOW_SEC + 7 * DAY_SEC, baseMs: NOW_MS }), {
      lease: { slots: [amount('x', 1)] },
    });
    expect(expiresTooEarly(image)).toBe(false);
    const after = written(image, [entry]);
    expect(after.ttlSec).toBeGreaterThan(image.ttlSec!);
    expect(expiresTooEarly(after)).toBe(false);
  });

  test('has no end where the limits are of this very entity and resource, or where it is sharded', () => {
    const image = imageOf([DAILY], { ttlSec: null, baseMs: NOW_MS });
    expect(written(image, [askEntry([DAILY], { daily: 1_000 }, { lasting: true })]).ttlSec).toBeNull();
    const sharded = imageOf([DAILY], { ttlSec: null, baseMs: NOW_MS, shardCount: 2 });
    expect(written(sharded, [askEntry([DAILY], { daily: 1_000 })]).ttlSec).toBeNull();
  });

  test('has no end any more once the limits are of this very entity and resource, unless an older config says so', () => {
    const image = imageOf([DAILY], { baseMs: NOW_MS, ttlSec: NOW_SEC + 7 * DAY_SEC });
    const ask = (sequence: number) =>
      askEntry([DAILY], { daily: 1_000 }, { lasting: true, version: { sequence, openedAtMs: 0 } });
    expect(written(image, [ask(2)]).ttlSec).toBeNull();
    expect(written(image, [ask(1)]).ttlSec).toBeNull();
    expect(written(image, [ask(0)]).ttlSec).toBe(image.ttlSec);
  });

  test('gets an end only from a write of its own, once it is one shard, seldom used, and not to last', () => {
    const image = imageOf([DAILY], { ttlSec: null, baseMs: NOW_MS });
    expect(written(image, [askEntry([DAILY], { daily: 1_000 })]).ttlSec).toBeNull();
    expect(needsEnd(image, false, 60_000)).toBe(true);
    expect(needsEnd(image, false, 59_999)).toBe(false);
    expect(needsEnd(image, true, 60_000)).toBe(false);
    expect(needsEnd({ ...image, ttlSec: NOW_SEC }, false, 60_000)).toBe(false);
    expect(needsEnd({ ...image, shardCount: 2 }, false, 60_000)).toBe(false);
  });

  test('does not depend on limits that never refill', () => {
    const blocked = Limit.custom('blocked', { capacity: 0, refillAmount: 0, refillPeriodMs: 1_000 });
    expect(expirySec(withTokens(imageOf([blocked]), -5_000), NOW_MS, 7)).toBe(NOW_SEC + HOUR_SEC);
  });
});
