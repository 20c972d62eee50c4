import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { groups, stalePairs } from '../../../../../tests/support/dynamodb/group/random-groups.js';
import { runs, runsAll } from '../../../../../tests/support/runs.js';
import { type Answer, SequentialModel } from '../../../../../tests/support/models/sequential-model.js';
import { NOW_MS } from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { expectSame, kindsOf } from '../../../../../tests/support/dynamodb/group/same-as-model.js';
import { shardWriteHolds } from '../../../../../tests/support/dynamodb/shard/shard-truth.js';
import { exceedsCapacity, refuses } from '../../../../core/bucket/decide.js';
import type { Entry, EntryResult } from './entries.js';
import type { Trust } from './group-draft.js';
import { planGroup } from './plan-group.js';
import type { ShardImage } from '../../table/items.js';
import { applyShardWrite, correctVerdicts } from '../shard-write.js';
import { applySettlement, planSettle } from '../settle/settle.js';

const RUNS = { numRuns: runs(1_000) };
/** A refused write returns the stored item, so the next one holds: guess, reclaim, take, and two spare. */
const MAX_WRITES = 5;

interface Written {
  readonly after: ShardImage;
  readonly results: readonly (EntryResult | null)[];
  readonly writes: number;
  /** The expired holders that were reclaimed before the group was written. */
  readonly reclaimed: readonly string[];
}

/** Writes a group as a client does whose image differs from the stored item. */
function written(truth: ShardImage, seen: ShardImage, entries: readonly Entry[], firstTrust: Trust): Written {
  let [stored, image, trust] = [truth, seen, firstTrust];
  const reclaimed: string[] = [];
  for (let writes = 0; writes <= MAX_WRITES;) {
    const plan = planGroup(image, entries, { nowMs: NOW_MS, trust, lifeFactor: 7, withoutRefunds: false });
    if (plan.kind === 'answer') return { after: stored, results: plan.results, writes, reclaimed };
    if (plan.kind === 'write' || plan.kind === 'reclaim') {
      writes += 1;
      const lands = shardWriteHolds(image, plan.write, stored);
      const seenBefore = image;
      if (lands) stored = applyShardWrite(stored, plan.write, `write-${writes}`);
      if (lands && plan.kind === 'reclaim') reclaimed.push(...plan.write.holders.map(({ leaseId }) => leaseId));
      if (lands && plan.kind === 'write') {
        const results = correctVerdicts(plan.results, plan.write, seenBefore, stored, NOW_MS);
        return { after: stored, results, writes, reclaimed };
      }
    }
    if (plan.kind === 'settle' && image === stored) {
      stored = { ...applySettlement(stored, planSettle(stored, plan.level, NOW_MS)), version: plan.level.version };
    }
    [image, trust] = [stored, 'exact'];
  }
  throw new Error('It was not written');
}

const hasExpired = ({ holders }: ShardImage): boolean =>
  [...holders.values()].some(({ expiresAtMs }) => expiresAtMs <= NOW_MS);

/** Whether a wait could help. Then no expired holder may remain. */
const isCurableDenial = (result: EntryResult | null): boolean =>
  result?.kind === 'denied' && result.answer.verdicts.every(({ waitMs }) => waitMs !== null);

/** Expects exact balances in every verdict, except for asks that can never fit, which are denied without a request. */
function expectSameVerdicts(results: readonly (EntryResult | null)[], expected: readonly (Answer | null)[]): void {
  for (const [at, result] of results.entries()) {
    const answer = expected[at];
    if (result?.kind !== 'granted' && result?.kind !== 'denied') continue;
    if (answer?.kind !== 'granted' && answer?.kind !== 'denied') throw new Error('The kinds differ');
    const { verdicts } = result.answer;
    expect(verdicts.some(({ waitMs }) => waitMs === null)).toBe(verdicts.some(exceedsCapacity));
    expect(verdicts.some(refuses)).toBe(result.kind === 'denied');
    if (verdicts.some(exceedsCapacity)) continue;
    for (const { limit, effectiveMilli } of verdicts) {
      expect([limit.name, BigInt(effectiveMilli)]).toEqual([limit.name, answer.left.get(limit.name)]);
    }
  }
}

describe('groups', () => {
  test('a group planned on a stale image is answered, and leaves the store, as if its entries came one after the other', () => {
    const seenKinds = new Set<unknown>();
    fc.assert(
      fc.property(stalePairs, groups, ({ truth, seen }, group) => {
        const entries = group(seen);
        const { after, results, reclaimed } = written(truth, seen, entries, 'guess');
        const model = new SequentialModel(truth, NOW_MS);
        const expected = model.run(entries, results, reclaimed);
        if (results.some(isCurableDenial)) expect(hasExpired(after)).toBe(false);
        if (reclaimed.length > 0) expect(entries.some(({ kind }) => kind === 'ask')).toBe(true);
        expect(kindsOf(results)).toEqual(kindsOf(expected));
        expectSameVerdicts(results, expected);
        expectSame(after, truth, model, NOW_MS);
        for (const kind of kindsOf(results)) seenKinds.add(kind);
      }),
      RUNS,
    );
    const kinds = [null, 'granted', 'denied', 'id-taken', 'done', 'done, holder lost', 'extended', 'not extended'];
    if (runsAll) expect(seenKinds).toEqual(new Set(kinds));
  });

  test('a group planned on the stored item is written at the first attempt, and every verdict is exact', () => {
    fc.assert(
      fc.property(stalePairs, groups, ({ truth }, group) => {
        const entries = group(truth);
        const { after, results, writes, reclaimed } = written(truth, truth, entries, 'exact');
        const model = new SequentialModel(truth, NOW_MS);
        const expected = model.run(entries, results, reclaimed);
        if (results.some(isCurableDenial)) expect(hasExpired(after)).toBe(false);
        if (reclaimed.length > 0) expect(entries.some(({ kind }) => kind === 'ask')).toBe(true);
        expect(kindsOf(results)).toEqual(kindsOf(expected));
        expectSame(after, truth, model, NOW_MS);
        // One more write if an ask was denied and expired holders had to be reclaimed first.
        expect(writes).toBeLessThanOrEqual(model.expired > 0 ? 2 : 1);
        expectSameVerdicts(results, expected);
      }),
      RUNS,
    );
  });

  test('a group that is denied as a whole changes nothing, except that expired holders are reclaimed', () => {
    fc.assert(
      fc.property(stalePairs, groups, ({ truth }, group) => {
        const asks = group(truth).filter(({ kind }) => kind === 'ask');
        const { after, results } = written(truth, truth, asks, 'exact');
        if (asks.length === 0 || results.some((result) => result?.kind !== 'denied')) return;
        if (asks.some((ask) => ask.kind === 'ask' && ask.level.version.sequence > 1)) return;
        const expired = [...truth.holders.values()].some(({ expiresAtMs }) => expiresAtMs <= NOW_MS);
        if (!expired) expect(after).toBe(truth);
        expect(after).toMatchObject({ baseMs: truth.baseMs, acquires: truth.acquires, ttlSec: truth.ttlSec });
      }),
      RUNS,
    );
  });

  test('a group on a young image denies only the asks that the image denies, and grants no ask that the store would deny', () => {
    let early = 0;
    fc.assert(
      fc.property(stalePairs, groups, ({ truth, seen }, group) => {
        const entries = group(seen);
        const { after, results, reclaimed } = written(truth, seen, entries, 'young');
        const denied = new Set(entries.filter((_, at) => results[at]?.kind === 'denied'));
        const model = new SequentialModel(truth, NOW_MS);
        // Without the denied asks, the group is answered as if its entries came one after the other.
        const rest = results.map((result) => (result?.kind === 'denied' ? null : result));
        const expected = model.run(entries, rest, reclaimed);
        if (denied.size === 0) return;
        early += denied.size;
        expect(kindsOf(rest)).toEqual(kindsOf(expected));
        expect(after.acquires - truth.acquires).toBe(model.acquires);
        for (const [at, result] of results.entries()) {
          if (result?.kind !== 'denied') continue;
          expect(entries[at]!.kind).toBe('ask');
          expect(result.answer.verdicts.some(({ waitMs }) => waitMs !== 0)).toBe(true);
        }
      }),
      RUNS,
    );
    if (runsAll) expect(early).toBeGreaterThan(30);
  });
});
