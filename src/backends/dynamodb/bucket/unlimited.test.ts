import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Amount } from '../../../core/bucket/decide.js';
import { changesBy, deltasOf } from '../../../core/bucket/holder-rules.js';
import { Limit } from '../../../core/limit.js';
import { groups, stalePairs } from '../../../../tests/support/dynamodb/group/random-groups.js';
import { NOW_MS } from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { accountIn } from '../../../../tests/support/dynamodb/shard/shard-truth.js';
import type { ShardImage } from '../table/items.js';
import type { Entry } from './group/entries.js';
import { type GroupPlan, planGroup } from './group/plan-group.js';
import { applyShardWrite } from './shard-write.js';
import { applySettlement, planSettle } from './settle/settle.js';
import { planMerge, planSplit } from './split.js';

/** No other limit of the generators has this name. */
const LIFTED = Limit.unlimited('lifted-by-an-operator');
const AT = { nowMs: NOW_MS, lifeFactor: 7, withoutRefunds: false, trust: 'exact' } as const;

function withLifted(image: ShardImage, consumedMilli = 0): ShardImage {
  return { ...image, limits: [...image.limits, { limit: LIFTED, rate: LIFTED, tokensMilli: 0, consumedMilli }] };
}

/**
 * The same entry, which also asks for the unlimited limit, or changes what was taken of it. Of a lease with totals only
 * what is stated counts: its amounts stay as they are.
 */
function alsoOfLifted(entry: Entry, milli: number): Entry {
  const more: Amount = { name: LIFTED.name, milli };
  switch (entry.kind) {
    case 'ask':
      return {
        ...entry,
        level: { ...entry.level, limits: [...entry.level.limits, LIFTED], asks: [...entry.level.asks, more] },
      };
    case 'change': {
      const level = { ...entry.level, limits: [...entry.level.limits, LIFTED] };
      if (level.refundsOnExpiry === true) return { ...entry, level };
      return { ...entry, level: { ...level, amounts: [...level.amounts, ...changesBy([more])] } };
    }
    case 'operation':
    case 'extend':
      return entry;
  }
}

/** What each entry is told, without the verdicts on the unlimited limit. */
function toldBy(plan: GroupPlan): unknown {
  if (plan.kind !== 'write' && plan.kind !== 'answer') return plan.kind;
  return plan.results.map((result) => {
    if (result === null || !('answer' in result)) return result;
    const { verdicts, configIsOlder } = result.answer;
    return { ...result, answer: { verdicts: verdicts.filter(({ limit }) => limit !== LIFTED), configIsOlder } };
  });
}

function consumedBy(entries: readonly Entry[], plan: GroupPlan): number {
  if (plan.kind !== 'write') return 0;
  return plan.results.reduce((sum, result, at) => {
    const entry = entries[at];
    const counts = entry?.kind === 'ask' ? result?.kind === 'granted' : entry?.kind === 'change' && result !== null;
    if (!counts || entry === undefined || entry.kind === 'extend' || entry.kind === 'operation') return sum;
    if (entry.kind === 'change' && entry.level.refundsOnExpiry === true) return sum;
    const amounts = entry.kind === 'ask' ? entry.level.asks : deltasOf(entry.level);
    return sum + Number(amounts.find(({ name }) => name === LIFTED.name)?.milli ?? 0);
  }, 0);
}

test('an unlimited limit changes no answer and no balance of the others, and counts exactly what was granted or settled', () => {
  const millis = fc.array(fc.integer({ min: 0, max: 1e15 }), { minLength: 8, maxLength: 8 });
  let counted = 0;
  fc.assert(
    fc.property(stalePairs, groups, millis, ({ truth }, group, amounts) => {
      const entries = group(truth).filter(({ kind }, at) => kind !== 'change' || at % 2 === 0);
      const also = entries.map((entry, at) => alsoOfLifted(entry, amounts[at] ?? 0));
      const [plain, lifted] = [planGroup(truth, entries, AT), planGroup(withLifted(truth), also, AT)];
      if (plain.kind === 'answer' && lifted.kind === 'write') {
        // What only the counter of the unlimited limit needs is written; nothing else is.
        expect(lifted.write.limits.filter(({ name }) => name !== LIFTED.name).every(isStill)).toBe(true);
      } else expect(lifted.kind).toBe(plain.kind);
      if (plain.kind === 'settle' || plain.kind === 'rebase') return;
      expect(toldBy(lifted)).toEqual(toldBy(plain));
      if (lifted.kind !== 'write') return;
      const after = applyShardWrite(withLifted(truth), lifted.write, 'w');
      expect(accountIn(after, LIFTED.name)).toMatchObject({ tokensMilli: 0, consumedMilli: consumedBy(also, lifted) });
      expect(lifted.write.limits.find(({ name }) => name === LIFTED.name)?.write ?? null).toSatisfy(hasNoCondition);
      if (plain.kind === 'write') expect(withoutLifted(lifted.write.limits)).toEqual(plain.write.limits);
      if (consumedBy(also, lifted) > 0) counted += 1;
    }),
    { numRuns: 3_000 },
  );
  expect(counted).toBeGreaterThan(100);
});

type Changes = Extract<GroupPlan, { kind: 'write' }>['write']['limits'];

function withoutLifted(changes: Changes): Changes {
  return changes.filter(({ name }) => name !== LIFTED.name);
}

function isStill({ write }: Changes[number]): boolean {
  return write.write === 'add' && write.deltaMilli === 0;
}

function hasNoCondition(write: Changes[number]['write'] | null): boolean {
  return write === null || (write.write === 'add' && write.atLeastMilli === null && write.atMostMilli === null);
}

test('a split and a merge keep an unlimited limit on every shard, without a balance', () => {
  fc.assert(
    fc.property(stalePairs, ({ truth }) => {
      const image = withLifted({ ...truth, holders: new Map(), ttlSec: null }, 9_000);
      const split = planSplit(image, NOW_MS);
      const part = split.limits.find(({ account }) => account.limit === LIFTED);
      expect([part?.movedMilli, part?.keeps]).toSatisfy(
        ([moved, keeps]) => moved === 0 && hasNoCondition(keeps as never),
      );
      const shard = (number: number): ShardImage => ({
        ...image,
        key: { ...image.key, shard: number },
        shardCount: 2,
      });
      const merge = planMerge(shard(0), shard(1), NOW_MS);
      expect(merge?.limits.find(({ account }) => account.limit === LIFTED)?.tokensMilli).toBe(0);
      expect(Number.isFinite(merge?.ttlSec)).toBe(true);
    }),
  );
});

test('a limit that is lifted and returns starts full, whatever it had, and its counter goes on', () => {
  fc.assert(
    fc.property(stalePairs, ({ truth }) => {
      const before = { ...truth, holders: new Map() };
      const rules = before.limits.map(({ limit }) => limit);
      const lifted = rules.map(({ name }) => Limit.unlimited(name));
      const without = applySettlement(before, planSettle(before, { limits: lifted }, NOW_MS));
      expect(without.limits.every(({ tokensMilli }) => tokensMilli === 0)).toBe(true);
      const again = applySettlement(without, planSettle(without, { limits: rules }, NOW_MS + 5));
      expect(again.limits.map(({ tokensMilli }) => tokensMilli)).toEqual(
        rules.map(({ capacityMilli }) => capacityMilli),
      );
      expect(again.limits.map(({ consumedMilli }) => consumedMilli)).toEqual(
        before.limits.map(({ consumedMilli }) => consumedMilli),
      );
    }),
  );
});
