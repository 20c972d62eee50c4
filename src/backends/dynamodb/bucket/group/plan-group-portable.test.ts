import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../../../tests/support/runs.js';
import { shardWriteHolds } from '../../../../../tests/support/dynamodb/shard/shard-truth.js';
import {
  amount,
  holderOf,
  imageOf,
  levelOf,
  NOW_MS,
  withHolders,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import type { Holder } from '../../../../core/bucket/decide.js';
import { operate, type PortableOperation } from '../../../../core/bucket/portable.js';
import { Limit } from '../../../../core/limit.js';
import { accountOf, type ShardImage } from '../../table/items.js';
import { applyShardWrite } from '../shard-write.js';
import type { EntryResult, OperationEntry } from './entries.js';
import type { Trust } from './group-draft.js';
import { planGroup, planReclaim } from './plan-group.js';

/** No refill, so that a balance is the capacity less what was taken. */
const LIMITS = [
  Limit.custom('rpm', { capacity: 100, refillAmount: 1, refillPeriodMs: 1e10 }),
  Limit.concurrent('slots', 50),
];
const LEASES = ['00000000aaa', '00000000bbb', '00000000ccc'];

const holders: fc.Arbitrary<Holder | null> = fc.option(
  fc
    .record({
      state: fc.constantFrom('open' as const, 'open' as const, 'committed' as const, 'rolled-back' as const),
      milli: fc.constantFrom(0, 1_000, 5_000),
      slots: fc.constantFrom(0, 2_000),
      adjusts: fc.subarray(['a', 'b']),
      refunds: fc.boolean(),
    })
    .map(({ state, milli, slots, adjusts, refunds }) => {
      const isOpen = state === 'open';
      const taken = milli === 0 ? [] : [amount('rpm', milli)];
      return holderOf({
        slots: isOpen && slots > 0 ? [amount('slots', slots)] : [],
        rates: isOpen && refunds ? taken : null,
        portable: { state, taken, adjusts },
      });
    }),
);
const images: fc.Arbitrary<ShardImage> = fc.tuple(holders, holders, holders).map((drawn) => {
  const held = Object.fromEntries(drawn.flatMap((holder, at) => (holder === null ? [] : [[LEASES[at]!, holder]])));
  return withHolders(imageOf(LIMITS, { baseMs: NOW_MS }), held);
});
const operations: fc.Arbitrary<PortableOperation> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('settle' as const, 'commit' as const),
    totals: fc.constantFrom([], [amount('rpm', 0)], [amount('rpm', 3_000)]),
  }),
  fc.record({
    kind: fc.constant('adjust' as const),
    id: fc.constantFrom('a', 'b', 'c'),
    deltas: fc.constantFrom([amount('rpm', 700)], [amount('rpm', -9_000)]),
  }),
  fc.record({ kind: fc.constantFrom('release' as const, 'rollback' as const) }),
);
const groups: fc.Arbitrary<readonly OperationEntry[]> = fc.tuple(operations, operations, operations).map((drawn) =>
  drawn.map((operation, at) => ({
    kind: 'operation',
    leaseId: LEASES[at]!,
    nowMs: NOW_MS,
    level: { ...levelOf(LIMITS), kind: 'operation', operation, dueIfLost: [amount('rpm', 100)] },
  })),
);

/** Writes a group as a client does whose image differs from the stored item. */
function written(truth: ShardImage, seen: ShardImage, entries: readonly OperationEntry[]) {
  let [image, trust]: [ShardImage, Trust] = [seen, 'guess'];
  for (let attempt = 0; attempt < 3; attempt++) {
    const plan = planGroup(image, entries, { nowMs: NOW_MS, trust, lifeFactor: 7, withoutRefunds: attempt > 0 });
    if (plan.kind === 'answer') return { after: truth, results: plan.results };
    if (plan.kind === 'write' && shardWriteHolds(image, plan.write, truth)) {
      return { after: applyShardWrite(truth, plan.write, 'own'), results: plan.results };
    }
    [image, trust] = [truth, 'exact'];
  }
  throw new Error('It was not written');
}

/** What the rules of the core say about one operation on the stored item. */
function expected(truth: ShardImage, { leaseId, level }: OperationEntry) {
  const effect = operate(truth.holders.get(leaseId), level, truth.limits, NOW_MS);
  if (effect.kind === 'closed')
    return { result: { kind: 'ended', state: effect.state, part: effect.part }, rpm: 0, slots: 0 };
  const rpm = effect.due.reduce((sum, { milli }) => sum + Number(milli), 0);
  if (effect.kind === 'lost') return { result: { kind: 'operated', part: null }, rpm, slots: 0 };
  const slots = effect.slotsBack.reduce((sum, { milli }) => sum + Number(milli), 0);
  return { result: { kind: 'operated', part: effect.holder.portable }, rpm, slots };
}

function change(after: ShardImage, truth: ShardImage, name: string): number {
  return Number(accountOf(after, name)?.tokensMilli ?? 0) - Number(accountOf(truth, name)?.tokensMilli ?? 0);
}

describe('groups of operations of portable leases', () => {
  test('a group planned on a stale image has the effect and the answers of the stored holders', () => {
    fc.assert(
      fc.property(images, images, groups, (truth, seen, entries) => {
        const { after, results } = written(truth, seen, entries);
        const effects = entries.map((entry) => expected(truth, entry));
        expect(results).toEqual(effects.map(({ result }) => result));
        expect(change(after, truth, 'rpm')).toBe(0 - effects.reduce((sum, { rpm }) => sum + rpm, 0));
        expect(change(after, truth, 'slots')).toBe(effects.reduce((sum, { slots }) => sum + slots, 0));
        // Sent again after a lost answer, on the item that the first write left: the same answers, and no effect.
        const again = written(
          after,
          seen,
          entries.filter((_, at) => !isLost(results[at])),
        );
        expect(again.after.limits).toEqual(after.limits);
        expect(again.results).toEqual(results.filter((result) => !isLost(result)));
      }),
      { numRuns: runs(2_000) },
    );
  });

  test('a reclaim counts the leases that were open, and gives back only what they hold', () => {
    fc.assert(
      fc.property(images, (image) => {
        const { expired, holders: removed, limits } = planReclaim(image, NOW_MS + 3_600_000);
        const open = [...image.holders.values()].filter(({ portable }) => portable?.state === 'open');
        expect([removed.length, expired]).toEqual([image.holders.size, open.length]);
        const back = open.reduce((sum, { rates }) => sum + Number(rates?.[0]?.milli ?? 0), 0);
        expect(0 - Number(limits.find(({ name }) => name === 'rpm')?.consumedMilli ?? 0)).toBe(back);
      }),
    );
  });
});

function isLost(result: EntryResult | null | undefined): boolean {
  return result?.kind === 'operated' && result.part === null;
}
