import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FlatRecord } from '../../../../../tests/support/dynamodb/shard/flat-record.js';
import { groups, stalePairs } from '../../../../../tests/support/dynamodb/group/random-groups.js';
import { expectSame, kindsOf } from '../../../../../tests/support/dynamodb/group/same-as-model.js';
import {
  amount,
  askEntry,
  changeEntry,
  cutEntry,
  extendEntry,
  holderOf,
  imageOf,
  KEY,
  NOW_MS,
  NS,
  withHolders,
  withTokens,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { consumedBy, isError, isResult, leastTold } from '../../../../../tests/support/dynamodb/group/told-account.js';
import { SequentialModel } from '../../../../../tests/support/models/sequential-model.js';
import { runs, runsAll } from '../../../../../tests/support/runs.js';
import { amountOf } from '../../../../core/bucket/decide.js';
import { deltasOf } from '../../../../core/bucket/holder-rules.js';
import { Limit } from '../../../../core/limit.js';
import type { ShardImage } from '../../table/items.js';
import type { Entry } from './entries.js';
import { startGroup, step } from './group-write.js';
import { RefundLost } from './refund-lost.js';
import { revocationsOf } from './revocation.js';
import {
  drive,
  EVENTS,
  type Happening,
  happenings,
  type Told,
} from '../../../../../tests/support/dynamodb/group/drive-group.js';

const RUNS = { numRuns: runs(4_000) };

/** The ids of leases are unique. A random group may use one twice, or that of a lease which it releases. */
function realistic(entries: readonly Entry[], ...images: readonly ShardImage[]): readonly Entry[] {
  const isNew = (leaseId: string | null): boolean =>
    !images.some(({ holders }) => holders.has(leaseId ?? '')) &&
    entries.filter((entry) => entry.leaseId === leaseId).length === 1;
  return entries.filter((entry) => entry.kind !== 'ask' || entry.level.holder === null || isNew(entry.leaseId));
}

/** An undo that gives nothing back only takes its grant out of the counter, which no holder and no refund shows. */
function onlyUncounts(entry: Entry): boolean {
  return entry.kind === 'change' && entry.uncounts && deltasOf(entry.level).every(({ milli }) => milli >= 0);
}

const isLostRefund = (told: Told): boolean => isError(told) && told.error instanceof RefundLost;

describe('the steps of a group write', () => {
  test('after any history of answers every entry is answered once, and no grant is missing in the store', () => {
    const seenEvents = new Set<string>();
    fc.assert(
      fc.property(stalePairs, groups, fc.array(happenings, { maxLength: 8 }), ({ truth, seen }, group, history) => {
        const entries = realistic(group(seen), seen, truth);
        if (entries.length === 0) return;
        const { told, landings, final, events } = drive(truth, seen, entries, history);
        expect(told.filter((one) => one !== undefined)).toHaveLength(entries.length);
        for (const [index, one] of told.entries()) {
          const entry = entries[index]!;
          if (!isResult(one) || one.kind !== 'granted') continue;
          // Without a holder, a refund in the same group may cancel the ask, and nothing is written.
          if (entry.kind !== 'ask' || entry.level.holder === null) continue;
          expect(landings.some(({ results }) => results.get(index)?.kind === 'granted')).toBe(true);
          expect(final!.holders.has(entry.leaseId!)).toBe(true);
        }
        for (const event of events) seenEvents.add(event);
      }),
      RUNS,
    );
    expect(seenEvents).toEqual(new Set(EVENTS));
  });

  test('without a foreign writer a group lands at most once, and leaves the store as if its entries came one by one', () => {
    let [lost, landed] = [0, 0];
    // A write that lands after the one that repeats it counts again, unless its holder is there.
    const inTime = happenings.filter(({ event }) => event !== 'lost, lands later');
    const quiet = inTime.map(({ event }): Happening => ({ event, foreign: 'none' }));
    fc.assert(
      fc.property(stalePairs, groups, fc.array(quiet, { maxLength: 8 }), ({ truth, seen }, group, history) => {
        const entries = realistic(group(seen), seen, truth).filter((entry) => !onlyUncounts(entry));
        if (entries.length === 0) return;
        const { told, landings } = drive(truth, seen, entries, history);
        expect(landings.length).toBeLessThanOrEqual(1);
        const [only] = landings;
        if (only === undefined) return;
        landed += 1;
        // A write after a lost one holds the other amounts of an entry whose refund it leaves out.
        if (!only.withRefunds && told.some(isLostRefund)) return;
        // An entry whose caller got an error, or gave up, is in the store as the write says.
        const inLanding = told.map((one, index) => {
          const result = only.results.get(index) ?? null;
          return result !== null && isResult(one) && one.kind !== 'contended' ? one : result;
        });
        lost += told.some(isError) ? 1 : 0;
        const model = new SequentialModel(only.before, NOW_MS);
        const expected = model.run(only.entries, inLanding, []);
        expect(kindsOf(inLanding)).toEqual(kindsOf(expected));
        expectSame(only.after, only.before, model, NOW_MS);
      }),
      RUNS,
    );
    if (runsAll) expect(landed).toBeGreaterThan(100);
    if (runsAll) expect(lost).toBeGreaterThan(5);
  });

  test('with foreign writers the store never counts less than the callers were told', () => {
    let repeated = 0;
    fc.assert(
      fc.property(stalePairs, groups, fc.array(happenings, { maxLength: 8 }), ({ truth, seen }, group, history) => {
        const entries = realistic(group(seen), seen, truth);
        if (entries.length === 0) return;
        const driven = drive(truth, seen, entries, history);
        const { landings, foreignWrites, events } = driven;
        if (landings.length > 1) {
          repeated += 1;
          expect(foreignWrites > 0 || events.has('lost, lands later')).toBe(true);
        }
        const outcome = { truth, entries, ...driven };
        for (const { limit } of truth.limits) {
          if (limit.kind !== 'rate') continue;
          expect(consumedBy(outcome, limit.name)).toBeGreaterThanOrEqual(leastTold(outcome, limit.name));
        }
      }),
      RUNS,
    );
    if (runsAll) expect(repeated).toBeGreaterThan(0);
  });

  test('once what is in doubt is revoked, no ask that was not granted holds anything, also if its write lands only then', () => {
    let [revoked, landed] = [0, 0];
    const slots = Limit.concurrent('slots', 9);
    const images = fc.nat(9).map((count) => withTokens(imageOf([slots]), count * 1_000));
    const drawn = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 });
    // What an earlier group left in doubt is not revoked here.
    const own = happenings.filter(({ foreign }) => foreign !== 'earlier grant');
    const lost = own.filter(({ event }) => event.startsWith('lost'));
    const mixed = fc.array(fc.oneof(lost, lost, own), { minLength: 2, maxLength: 8 });
    // A group gives up after three writes without an answer. Only a history that ends so leaves a write that lands after the group.
    const as = (event: Happening['event']): fc.Arbitrary<Happening> => own.map((one) => ({ ...one, event }));
    const endsLate = fc.tuple(as('lost, not landed'), as('lost, not landed'), as('lost, lands later'));
    const histories = fc.oneof({ weight: 3, arbitrary: mixed }, { weight: 1, arbitrary: endsLate });
    fc.assert(
      fc.property(images, images, drawn, histories, fc.boolean(), (truth, seen, asked, history, isFirst) => {
        const entries = asked.map((count, at) => {
          const holder = holderOf({ slots: [amount('slots', count * 1_000)], caller: `asker ${at}` });
          return askEntry([slots], { slots: count * 1_000 }, { leaseId: `lease-${at}`, holder });
        });
        const driven = drive({ ...truth, baseMs: NOW_MS - 1 }, { ...seen, baseMs: NOW_MS - 1 }, entries, history);
        const { told, doubts, late, final } = driven;
        const isGranted = (index: number): boolean => isResult(told[index]!) && told[index].kind === 'granted';
        const open = [...doubts].filter(([index]) => !isGranted(index));
        const revocations = open.flatMap(([index, doubt]) => revocationsOf(entries[index]!, doubt));
        if (revocations.length === 0) return;
        revoked += 1;
        // The late write comes first, or only when it can do nothing any more.
        const record = new FlatRecord(final);
        if (isFirst) for (const write of late) landed += Number(record.write(write));
        const after = new FlatRecord(drive(record.image, null, revocations, []).final);
        if (!isFirst) for (const write of late) expect(after.write(write)).toBe(false);
        const { holders, limits } = after.image!;
        for (const [index, { leaseId }] of entries.entries()) expect(holders.has(leaseId!)).toBe(isGranted(index));
        const held = [...holders.values()].reduce((sum, one) => sum + Number(amountOf(one.slots, 'slots') ?? 0), 0);
        const freeBefore = Number(truth.limits[0]!.tokensMilli);
        expect(Number(limits[0]!.tokensMilli) + held).toBe(freeBefore);
      }),
      RUNS,
    );
    if (runsAll) expect(Math.min(revoked, landed)).toBeGreaterThan(20);
  });

  test('whichever write of an ask that may be cut has landed, it took the amount that the caller was told', () => {
    const slow = Limit.perDay('a', 100);
    let cuts = 0;
    const images = fc.nat(100).map((count) => withTokens(imageOf([slow]), count * 1_000));
    const drawn = fc.array(fc.tuple(fc.integer({ min: 1, max: 99 }), fc.boolean()), { minLength: 1, maxLength: 3 });
    // A take that the store got twice without its sender knowing counts again.
    const once = happenings.filter(({ event }) => event !== 'sent twice');
    fc.assert(
      fc.property(images, images, drawn, fc.array(once, { maxLength: 8 }), (truth, seen, asks, history) => {
        const entries = asks.map(([tokens, isHeld], at) =>
          cutEntry(slow, tokens * 1_000, isHeld ? `lease-${at}` : null),
        );
        const { told, landings } = drive(truth, seen, entries, history);
        for (const [index, one] of told.entries()) {
          const results = [
            isResult(one) ? one : null,
            ...landings.map((landing) => landing.results.get(index) ?? null),
          ];
          const taken = results.flatMap((result) => (result?.kind === 'granted' ? result.answer.verdicts : []));
          expect(new Set(taken.map(({ requestedMilli }) => requestedMilli)).size).toBeLessThanOrEqual(1);
          if (taken.some(({ requestedMilli }) => requestedMilli < asks[index]![0] * 1_000)) cuts += 1;
        }
      }),
      RUNS,
    );
    if (runsAll) expect(cuts).toBeGreaterThan(100);
  });

  test.each([true, false])(
    'an ask that draws the lease id of an existing holder is not granted by that holder (holder cached: %s)',
    (isCached) => {
      const slots = Limit.concurrent('slots', 3);
      const holder = holderOf({ slots: [amount('slots', 1_000)] });
      const free = withTokens(imageOf([slots]), 2_000);
      const truth = withHolders(free, { taken: holder });
      const asks = ['taken', 'other-lease'].map((leaseId) => askEntry([slots], { slots: 1_000 }, { leaseId, holder }));
      const { told, landings, final } = drive(truth, isCached ? truth : free, asks, []);
      expect(told).toMatchObject([{ kind: 'id-taken' }, { kind: 'granted' }]);
      expect(landings).toHaveLength(1);
      expect([...final!.holders.keys()]).toEqual(['taken', 'other-lease']);
    },
  );

  test('a holder that two writes of a group would have added does not prove the change that only one of them contains', () => {
    const rpm = Limit.perMinute('rpm', 60);
    const seen = imageOf([rpm]);
    const ask = askEntry([rpm], { rpm: 1_000 }, { leaseId: 'mine', holder: holderOf() });
    const settle = changeEntry([rpm], { rpm: 5_000 }, { leaseId: 'gone', holder: 'keep', totals: { rpm: 5_000 } });
    const entries = [extendEntry('gone', NOW_MS + 1_000), ask, settle];
    const { told, landings, final } = drive({ ...seen, baseMs: seen.baseMs + 1 }, seen, entries, [
      // The base has moved. The second write is planned on the stored item, and contains all entries.
      { event: 'answered', foreign: 'none' },
      { event: 'lost, not landed', foreign: 'none' },
      // The third write checks that the holder does not exist, which one entry of a write can do. It lands.
      { event: 'sent twice', foreign: 'refund' },
    ]);
    expect(landings.map(({ results }) => results.get(2))).toEqual([null]);
    expect(told).toMatchObject([{ kind: 'extended', found: false }, { kind: 'granted' }, 'deferred']);
    expect([...final!.holders.keys()]).toEqual(['mine']);
  });

  test('a record that cannot be planned on ends the group, with what is in doubt', () => {
    const limits = [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 3)];
    const sound = imageOf(limits);
    const holder = holderOf({ slots: [amount('slots', 1_000)] });
    const ask = askEntry(limits, { rpm: 1_000, slots: 1_000 }, { leaseId: 'mine', holder });
    const entries = [ask, changeEntry(limits, { rpm: -1_000 })];
    const inDoubt = new Set<string>();
    const group = { ns: NS, key: KEY, entries, nowMs: NOW_MS, maxRetries: 5, lifeFactor: 7, inDoubt };
    const first = startGroup(group, { image: sound, trust: 'guess', isAbsent: false, judgement: null });
    expect(first.action.kind).toBe('send');
    // Headgate writes whole numbers only.
    const answer = { kind: 'refused', image: withTokens(sound, 1.5) } as const;
    const last = step(first.state, { kind: 'sent', id: 'write-1', answer });
    expect(last.action).toEqual({ kind: 'done', forget: true });
    expect(last.answers).toMatchObject([
      { index: 0, outcome: { kind: 'error', error: { name: 'RangeError' } }, doubt: { baseMs: sound.baseMs } },
      { index: 1, outcome: { kind: 'error', error: { cause: { name: 'RangeError' } } }, doubt: undefined },
    ]);
  });

  test('a refund without a holder lands at most once if no request is sent twice', () => {
    let refunded = 0;
    const once = happenings.filter(({ event }) => event !== 'sent twice');
    fc.assert(
      fc.property(stalePairs, groups, fc.array(once, { maxLength: 8 }), ({ truth, seen }, group, history) => {
        const entries = realistic(group(seen), seen, truth).filter(({ kind }) => kind !== 'ask');
        if (entries.length === 0) return;
        const { landings } = drive(truth, seen, entries, history);
        for (const [index, entry] of entries.entries()) {
          if (entry.kind !== 'change' || entry.level.holder !== 'none') continue;
          const done = landings.filter(
            ({ results, withRefunds }) => withRefunds && (results.get(index) ?? null) !== null,
          );
          if (deltasOf(entry.level).every(({ milli }) => milli <= 0)) expect(done.length).toBeLessThanOrEqual(1);
          refunded += done.length;
        }
      }),
      RUNS,
    );
    if (runsAll) expect(refunded).toBeGreaterThan(30);
  });
});
