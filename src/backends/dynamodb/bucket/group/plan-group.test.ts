import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { groups, stalePairs } from '../../../../../tests/support/dynamodb/group/random-groups.js';
import {
  amount,
  askEntry,
  changeEntry,
  extendEntry,
  holderOf,
  imageOf,
  NOW_MS,
  VERSION,
  withHolders,
  withTokens,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { refuses } from '../../../../core/bucket/decide.js';
import { buildLeaseId } from '../../../../core/identifiers.js';
import { Limit } from '../../../../core/limit.js';
import type { Entry, EntryResult } from './entries.js';
import type { PlanContext, Trust } from './group-draft.js';
import { type GroupPlan, planGroup } from './plan-group.js';
import type { ShardImage } from '../../table/items.js';
import { applyShardWrite } from '../shard-write.js';

const RPM = Limit.perMinute('rpm', 60);
const TPM = Limit.perMinute('tpm', 6_000);
const SLOTS = Limit.concurrent('slots', 3);
const NEWER = { version: { sequence: 2, openedAtMs: 0 } };
const OLDER = { version: { sequence: 0, openedAtMs: 0 } };

/** The image of a shard whose base is now, so nothing has refilled. */
const seen = (limits: readonly Limit[], ...tokensMilli: readonly number[]): ShardImage =>
  withTokens(imageOf(limits, { baseMs: NOW_MS }), ...tokensMilli);

function plan(image: ShardImage, entries: readonly Entry[], at: Partial<PlanContext> | Trust = {}): GroupPlan {
  const given = typeof at === 'string' ? { trust: at } : at;
  return planGroup(image, entries, { nowMs: NOW_MS, trust: 'exact', lifeFactor: 7, withoutRefunds: false, ...given });
}

const resultsOf = (planned: GroupPlan): readonly (EntryResult | null)[] =>
  planned.kind === 'write' || planned.kind === 'answer' ? planned.results : [];
const kindsOf = (planned: GroupPlan): readonly (string | null)[] => [
  planned.kind,
  ...resultsOf(planned).map((result) => result?.kind ?? null),
];
const writeOf = (planned: GroupPlan) => {
  if (planned.kind !== 'write' && planned.kind !== 'reclaim') throw new Error(`It is ${planned.kind}`);
  return planned.write;
};

describe('trust in images', () => {
  const ask = askEntry([RPM], { rpm: 1_000 });

  test('an exact image denies without a write', () => {
    expect(plan(seen([RPM], 999), [ask])).toMatchObject({
      kind: 'answer',
      results: [{ kind: 'denied', remembered: false }],
    });
  });

  test('a young image denies rates, and marks the denial as remembered', () => {
    expect(plan(seen([RPM], 999), [ask], 'young')).toMatchObject({
      kind: 'answer',
      results: [{ kind: 'denied', remembered: true }],
    });
  });

  test('a young image never denies slots, because they may be free by now', () => {
    const hold = askEntry([SLOTS], { slots: 1_000 }, { leaseId: 'lease', holder: holderOf() });
    expect(kindsOf(plan(seen([SLOTS], 0), [hold], 'young'))).toEqual(['write', 'granted']);
    const both = askEntry([RPM, SLOTS], { rpm: 1_000, slots: 1_000 }, { leaseId: 'lease', holder: holderOf() });
    expect(kindsOf(plan(seen([RPM, SLOTS], 0, 0), [both], 'young'))).toEqual(['answer', 'denied']);
  });

  test('a guess denies no ask that could fit', () => {
    expect(kindsOf(plan(seen([RPM], -9_000), [ask], 'guess'))).toEqual(['write', 'granted']);
  });

  test.each<Trust>(['guess', 'young', 'exact'])(
    'an image of trust %s denies an ask that can never fit, without a write',
    (trust) => {
      const impossible = askEntry([RPM], { rpm: 60_001 });
      const planned = plan(seen([RPM]), [impossible], trust);
      expect(kindsOf(planned)).toEqual(['answer', 'denied']);
      expect(resultsOf(planned)[0]).toMatchObject({ answer: { verdicts: [{ waitMs: null }] } });
    },
  );

  test('an image that is not exact does not deny an ask that fits the rules of the caller, because they may have been raised', () => {
    const larger = Limit.perMinute('rpm', 100);
    const ask61 = askEntry([larger], { rpm: 61_000 });
    expect(kindsOf(plan(seen([RPM]), [ask61], 'guess'))).toEqual(['write', 'granted']);
    expect(kindsOf(plan(seen([RPM]), [ask61], 'exact'))).toEqual(['answer', 'denied']);
  });

  test('a shard whose image is not exact is read if no write would show the answer', () => {
    const look = askEntry([RPM], { rpm: 1_000 }, { dryRun: true });
    expect(plan(seen([RPM]), [look], 'guess')).toEqual({ kind: 'read' });
    expect(kindsOf(plan(seen([RPM]), [look], 'exact'))).toEqual(['answer', 'granted']);
    expect(plan(seen([RPM]), [extendEntry('gone', NOW_MS + 1)], 'guess')).toEqual({ kind: 'read' });
    expect(kindsOf(plan(seen([RPM]), [extendEntry('gone', NOW_MS + 1)], 'exact'))).toEqual(['answer', 'extended']);
  });
});

describe('announced waits', () => {
  test('waiting the announced time grants, and a millisecond less does not, for rates and slots alike', () => {
    let waited = 0;
    fc.assert(
      fc.property(stalePairs, groups, ({ truth }, group) => {
        const ask = group(truth).find(({ kind }) => kind === 'ask');
        if (ask?.kind !== 'ask' || truth.holders.has(ask.leaseId ?? '')) return;
        // An expiry may give rates back before the refill that the wait is computed from.
        if ([...truth.holders.values()].some(({ rates }) => rates !== null)) return;
        const grantsAt = (nowMs: number): EntryResult | null | undefined => {
          const first = plan(truth, [ask], { nowMs });
          if (first.kind !== 'reclaim') return resultsOf(first)[0];
          return resultsOf(plan(applyShardWrite(truth, first.write, 'reclaim'), [ask], { nowMs }))[0];
        };
        const denied = grantsAt(NOW_MS);
        if (denied?.kind !== 'denied') return;
        const waits = denied.answer.verdicts.filter(refuses).map(({ waitMs }) => waitMs);
        if (waits.includes(null)) return;
        const waitMs = Math.max(...waits.map(Number));
        waited += 1;
        expect(grantsAt(NOW_MS + waitMs)?.kind).toBe('granted');
        expect(grantsAt(NOW_MS + waitMs - 1)?.kind).toBe('denied');
      }),
      { numRuns: 2_000 },
    );
    expect(waited).toBeGreaterThan(100);
  });
});

describe('expired holders', () => {
  const expired = { old: { expiresAtMs: NOW_MS, slots: [amount('slots', 2_000)] } };
  const image = withHolders(seen([RPM, SLOTS], 60_000, 1_000), { ...expired, young: { slots: [] } });
  const hold = (slots: number) => askEntry([SLOTS], { slots }, { leaseId: 'lease', holder: holderOf() });

  test('expired holders are not reclaimed while every ask fits', () => {
    expect(kindsOf(plan(image, [hold(1_000)]))).toEqual(['write', 'granted']);
    expect(kindsOf(plan(image, [changeEntry([RPM], { rpm: 90_000 })]))).toEqual(['write', 'done']);
  });

  test.each<Trust>(['guess', 'young', 'exact'])(
    'expired holders are reclaimed before an ask is denied on an image of trust %s',
    (trust) => {
      const planned = plan(image, [hold(2_000)], trust);
      expect(planned.kind).toBe('reclaim');
      expect(writeOf(planned)).toMatchObject({
        expired: 1,
        holders: [{ kind: 'remove', leaseId: 'old' }],
        acquires: 0,
      });
    },
  );

  test('expired holders are reclaimed 80 at a time', () => {
    const many = Array.from({ length: 100 }, (_, at) => [buildLeaseId(at, 0), { expiresAtMs: NOW_MS }] as const);
    const planned = plan(withHolders(seen([SLOTS], 0), Object.fromEntries(many)), [hold(1_000)]);
    expect(writeOf(planned)).toMatchObject({ expired: 80 });
    expect(writeOf(planned).holders).toHaveLength(80);
  });

  test('expired holders give nothing back for limits that were removed or have another kind now', () => {
    const holder = {
      expiresAtMs: NOW_MS,
      slots: [amount('rpm', 1_000), amount('gone', 1_000)],
      rates: [amount('slots', 5)],
    };
    const planned = plan(withHolders(seen([RPM, SLOTS], 60_000, 0), { odd: holder }), [hold(1_000)]);
    expect(writeOf(planned)).toMatchObject({ expired: 1, limits: [] });
  });
});

describe('plans after an unanswered write', () => {
  const again = { withoutRefunds: true, trust: 'guess' } as const;
  const carrying = withHolders(seen([RPM, SLOTS], 20_000, 2_000), {
    lease: { slots: [amount('slots', 1_000)], rates: [amount('rpm', 5_000)] },
    plain: { slots: [] },
  });
  const rpmDelta = (planned: GroupPlan): unknown => {
    const write = writeOf(planned).limits.find(({ name }) => name === 'rpm')?.write;
    return write?.write === 'add' ? write.deltaMilli : write;
  };

  test('a plan after an unanswered write leaves out refunds without a holder', () => {
    const refund = { ...changeEntry([RPM], { rpm: -5_000 }), uncounts: true };
    expect(kindsOf(plan(carrying, [refund], again))).toEqual(['answer', 'refund-left-out']);
    const mixed = plan(carrying, [refund, askEntry([RPM], { rpm: 1_000 })], again);
    expect(writeOf(mixed)).toMatchObject({ acquires: 1, limits: [{ name: 'rpm', consumedMilli: 1_000 }] });
  });

  test('a plan after an unanswered write keeps refunds that change their holder', () => {
    const release = changeEntry([RPM], { rpm: -5_000 }, { leaseId: 'lease', holder: 'release' });
    expect(rpmDelta(plan(carrying, [release], again))).toBe(5_000);
    const settle = changeEntry([RPM], { rpm: -2_000 }, { leaseId: 'lease', holder: 'keep', totals: { rpm: 3_000 } });
    expect(rpmDelta(plan(carrying, [settle], again))).toBe(2_000);
  });

  test('a plan after an unanswered write leaves out a refund whose holder does not change', () => {
    const adjust = changeEntry([RPM], { rpm: -2_000 }, { leaseId: 'plain', holder: 'keep' });
    expect(rpmDelta(plan(carrying, [adjust], again))).toBeUndefined();
  });

  test.each([true, false])(
    'a change that the holder shows as made is not made again (after an unanswered write: %s)',
    (withoutRefunds) => {
      const same = changeEntry([RPM], { rpm: -2_000 }, { leaseId: 'lease', holder: 'keep', totals: { rpm: 5_000 } });
      expect(rpmDelta(plan(carrying, [same], { withoutRefunds }))).toBeUndefined();
      const more = changeEntry([RPM], { rpm: 2_000 }, { leaseId: 'lease', holder: 'keep', totals: { rpm: 5_000 } });
      expect(rpmDelta(plan(carrying, [more], { withoutRefunds }))).toBeUndefined();
    },
  );

  test('a plan after an unanswered write keeps takes and debits, which err on the strict side', () => {
    const debit = changeEntry([RPM], { rpm: 4_000 });
    expect(rpmDelta(plan(carrying, [debit, askEntry([RPM], { rpm: 1_000 })], again))).toBe(-5_000);
  });
});

describe('the content of one write', () => {
  const hold = (at: number) => askEntry([SLOTS], { slots: 0 }, { leaseId: buildLeaseId(at, 0), holder: holderOf() });

  test('a write has at most 80 holders: further asks with a holder wait for the next write, others do not', () => {
    const entries = [...Array.from({ length: 90 }, (_, at) => hold(at)), askEntry([RPM], { rpm: 1_000 })];
    const planned = plan(seen([RPM, SLOTS]), entries);
    const kinds = resultsOf(planned).map((result) => result?.kind ?? null);
    expect(kinds).toEqual([...Array<string>(80).fill('granted'), ...Array<null>(10).fill(null), 'granted']);
    expect(writeOf(planned)).toMatchObject({ acquires: 81 });
  });

  test('a write changes each holder once: further entries of its lease wait', () => {
    const image = withHolders(seen([RPM], 30_000), { lease: { rates: [amount('rpm', 1_000)] } });
    const entries = [
      extendEntry('lease', NOW_MS + 90_000),
      changeEntry([RPM], {}, { leaseId: 'lease', holder: 'release' }),
      extendEntry('lease', NOW_MS + 95_000),
      hold(7),
      hold(7),
    ];
    expect(kindsOf(plan(image, entries))).toEqual(['write', 'extended', null, null, 'granted', null]);
  });

  test('an exact image refuses a lease id that is taken, and a guess writes', () => {
    const image = withHolders(seen([SLOTS]), { lease: {} });
    const ask = askEntry([SLOTS], { slots: 1_000 }, { leaseId: 'lease', holder: holderOf() });
    expect(kindsOf(plan(image, [ask]))).toEqual(['answer', 'id-taken']);
    expect(kindsOf(plan(image, [ask], 'guess'))).toEqual(['write', 'granted']);
  });

  test('a write counts grants but not their further parts, and uncounts those that are undone', () => {
    const part = askEntry([RPM], { rpm: 1_000 }, { counts: false });
    const undo = { ...changeEntry([RPM], { rpm: -1_000 }), uncounts: true };
    expect(writeOf(plan(seen([RPM]), [part, part]))).toMatchObject({ acquires: 0 });
    expect(writeOf(plan(seen([RPM]), [askEntry([RPM], { rpm: 1 }), undo]))).toMatchObject({ acquires: 0 });
    expect(writeOf(plan(seen([RPM]), [undo]))).toMatchObject({ acquires: -1 });
  });

  test('a write takes no limit that the bucket lacks', () => {
    const planned = plan(seen([RPM]), [askEntry([RPM, TPM], { rpm: 1_000, tpm: 9e9 })]);
    expect(kindsOf(planned)).toEqual(['write', 'granted']);
    expect(writeOf(planned).limits.map(({ name }) => name)).toEqual(['rpm']);
  });
});

describe('rules of different versions', () => {
  test('newer rules that differ are settled first, the newest of the group', () => {
    const newest = { sequence: 3, openedAtMs: 0 };
    const entries = [askEntry([TPM], {}, NEWER), changeEntry([RPM, TPM], {}, { version: newest }), askEntry([RPM], {})];
    expect(plan(seen([RPM]), entries)).toMatchObject({ kind: 'settle', level: { version: newest } });
  });

  test('newer rules that are equal write their version', () => {
    expect(writeOf(plan(seen([RPM]), [askEntry([RPM], { rpm: 1 }, NEWER)]))).toMatchObject({ adopts: NEWER.version });
    expect(writeOf(plan(seen([RPM], 0), [askEntry([RPM], { rpm: 1 }, NEWER)])).adopts).toEqual(NEWER.version);
    expect(writeOf(plan(seen([RPM]), [askEntry([RPM], { rpm: 1 })])).adopts).toBeNull();
  });

  test('older rules are ignored, and their caller is told if they differ', () => {
    const planned = plan(seen([RPM]), [
      askEntry([TPM, RPM], { rpm: 1_000 }, OLDER),
      askEntry([RPM], { rpm: 1_000 }, OLDER),
    ]);
    expect(resultsOf(planned)).toMatchObject([
      { answer: { configIsOlder: true } },
      { answer: { configIsOlder: false } },
    ]);
  });

  test('an ask with older rules that treat slots as a rate gets none, because they would never be released', () => {
    const ask = askEntry([Limit.perMinute('slots', 3)], { slots: 1_000 }, OLDER);
    expect(kindsOf(plan(seen([SLOTS]), [ask]))).toEqual(['answer', 'unheld']);
    expect(kindsOf(plan(seen([SLOTS]), [{ ...ask, level: { ...ask.level, version: VERSION } }]))).toEqual([
      'write',
      'granted',
    ]);
  });

  test('a holder of older rules does not carry rates that the bucket lacks', () => {
    const holder = holderOf({ rates: [amount('rpm', 1_000), amount('gone', 9_000)] });
    const ask = askEntry(
      [RPM, Limit.perDay('gone', 9)],
      { rpm: 1_000, gone: 9_000 },
      { ...OLDER, leaseId: 'lease', holder },
    );
    expect(writeOf(plan(seen([RPM]), [ask])).holders).toMatchObject([{ text: `${holder.expiresAtMs}||+rpm=1000` }]);
  });
});

describe('balances beyond 2^50', () => {
  const fast = Limit.custom('fast', { capacity: 1e12, refillAmount: 1e12, refillPeriodMs: 1 });

  test('a balance beyond 2^50 is rebased once the refill makes it small again', () => {
    const image = withTokens(imageOf([fast], { baseMs: NOW_MS - 2 }), -(2 ** 50) - 1);
    expect(plan(image, [askEntry([fast], { fast: 1 })])).toEqual({ kind: 'rebase' });
  });

  test('a debt beyond 2^50 is not rebased, because that would not make it smaller', () => {
    const image = withTokens(imageOf([RPM], { baseMs: NOW_MS }), -(2n ** 60n));
    expect(kindsOf(plan(image, [changeEntry([RPM], { rpm: 1_000 })]))).toEqual(['write', 'done']);
  });
});
