import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cutGroups, groups, stalePairs } from '../../../../../tests/support/dynamodb/random-groups.js';
import { expectSame, kindsOf } from '../../../../../tests/support/dynamodb/same-as-model.js';
import {
  amount,
  askEntry,
  changeEntry,
  cutEntry,
  holderOf,
  imageOf,
  KEY,
  NOW_MS,
  NS,
  withHolders,
  withTokens,
} from '../../../../../tests/support/dynamodb/shard-images.js';
import { SequentialModel } from '../../../../../tests/support/models/sequential-model.js';
import { runs, runsAll } from '../../../../../tests/support/runs.js';
import { deltasOf } from '../../../../core/bucket/holder-rules.js';
import { Limit } from '../../../../core/limit.js';
import type { ShardImage } from '../../table/items.js';
import type { ChangeEntry, Entry, EntryResult } from './entries.js';
import { startGroup, step } from './group-write.js';
import { RefundLost } from './refund-lost.js';
import {
  drive,
  EVENTS,
  type Happening,
  happenings,
  type Landing,
  type Told,
} from '../../../../../tests/support/dynamodb/drive-group.js';

const RUNS = { numRuns: runs(4_000) };

/** The ids of leases are unique. A random group may use one twice, or that of a lease which it releases. */
function realistic(entries: readonly Entry[], ...images: readonly ShardImage[]): readonly Entry[] {
  const isNew = (leaseId: string | null): boolean =>
    !images.some(({ holders }) => holders.has(leaseId ?? '')) &&
    entries.filter((entry) => entry.leaseId === leaseId).length === 1;
  return entries.filter((entry) => {
    if (entry.kind === 'change') return images.every((image) => isOwnTotal(entry, image));
    return entry.kind !== 'ask' || entry.level.holder === null || isNew(entry.leaseId);
  });
}

/** Only its lease changes what a holder carries, so that the lease knows it before its first write. */
function isOwnTotal({ level, leaseId }: ChangeEntry, { holders }: ShardImage): boolean {
  if (level.kind !== 'totals') return true;
  const carried = holders.get(leaseId)?.rates ?? [];
  return carried.every(({ name, milli }) =>
    level.totals.every(
      (total) => total.name !== name || Number(total.milli) - Number(total.deltaMilli) === Number(milli),
    ),
  );
}

/** An undo that gives nothing back only takes its grant out of the counter, which no holder and no refund shows. */
function onlyUncounts(entry: Entry): boolean {
  return entry.kind === 'change' && entry.uncounts && deltasOf(entry.level).every(({ milli }) => milli >= 0);
}

function isLostTotal(told: Told, entry: Entry): boolean {
  if (entry.kind !== 'change' || entry.level.kind !== 'totals') return false;
  return isResult(told) && told.kind === 'done' && told.holderLost;
}

const isError = (told: Told): told is { readonly error: unknown } => typeof told === 'object' && 'error' in told;
const isLostRefund = (told: Told): boolean => isError(told) && told.error instanceof RefundLost;
const isResult = (told: Told): told is EntryResult => typeof told === 'object' && 'kind' in told;

/**
 * The results of a landing as callers were told them; null for the entries that it did not answer. An ask may be denied
 * by the balance from before a foreign refund, and changes nothing either way.
 */
function answeredBy({ results }: Landing, told: readonly Told[]): (EntryResult | null)[] {
  const isIn = (index: number): boolean => (results.get(index) ?? null) !== null;
  const isKept = (one: EntryResult): boolean => one.kind !== 'denied' && one.kind !== 'contended';
  return told.map((one, index) => (isResult(one) && isKept(one) && isIn(index) ? one : null));
}

describe('the steps of a group write', () => {
  test('after any history of answers every entry is answered once, and no grant is missing in the store', () => {
    const seenEvents = new Set<string>();
    fc.assert(
      fc.property(stalePairs, cutGroups, fc.array(happenings, { maxLength: 8 }), ({ truth, seen }, group, history) => {
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
          expect(final.holders.has(entry.leaseId!)).toBe(true);
        }
        for (const event of events) seenEvents.add(event);
      }),
      RUNS,
    );
    expect(seenEvents).toEqual(new Set(EVENTS));
  });

  test('without a foreign writer a group lands at most once, and leaves the store as if its entries came one by one', () => {
    let [lost, landed] = [0, 0];
    const quiet = happenings.map(({ event }): Happening => ({ event, foreign: 'none' }));
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
        const expected = model.run(entries, inLanding, []);
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
      fc.property(stalePairs, cutGroups, fc.array(happenings, { maxLength: 8 }), ({ truth, seen }, group, history) => {
        const entries = realistic(group(seen), seen, truth);
        if (entries.length === 0) return;
        const { told, landings, foreignWrites } = drive(truth, seen, entries, history);
        if (landings.length > 1) {
          repeated += 1;
          expect(foreignWrites).toBeGreaterThan(0);
        }
        // A lost write may have changed what the holder carried when it expired: then less than the whole total was given back.
        if (landings.length > 1 && told.some((one, index) => isLostTotal(one, entries[index]!))) return;
        const last = landings.at(-1);
        if (last === undefined) return;
        const model = new SequentialModel(last.before, NOW_MS);
        model.run(entries, answeredBy(last, told), []);
        for (const { limit } of truth.limits) {
          if (limit.kind !== 'rate') continue;
          const consumed = landings.reduce((sum, { before, after }) => sum + movedBy(limit.name, before, after), 0n);
          // A lost refund may have landed, an earlier write may have answered a release, and the store may have got a write twice without its sender knowing.
          const mayRefund = (index: number): number =>
            Number(isError(told[index]!) || (isResult(told[index]!) && !last.results.has(index))) +
            landings.filter(({ isDuplicate, results }) => isDuplicate && (results.get(index) ?? null) !== null).length;
          const uncertain = entries.reduce(
            (sum, entry, index) => sum + BigInt(mayRefund(index)) * refundOf(entry, limit.name),
            0n,
          );
          expect(consumed).toBeGreaterThanOrEqual((model.consumed.get(limit.name) ?? 0n) - uncertain);
        }
      }),
      RUNS,
    );
    if (runsAll) expect(repeated).toBeGreaterThan(0);
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
      expect([...final.holders.keys()]).toEqual(['taken', 'other-lease']);
    },
  );

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

function movedBy(name: string, before: ShardImage, after: ShardImage): bigint {
  const consumed = ({ limits }: ShardImage): bigint =>
    BigInt(limits.find(({ limit }) => limit.name === name)?.consumedMilli ?? 0);
  return consumed(after) - consumed(before);
}

function refundOf(entry: Entry, name: string): bigint {
  if (entry.kind !== 'change') return 0n;
  return deltasOf(entry.level).reduce(
    (sum, delta) => (delta.name === name && delta.milli < 0 ? sum - BigInt(delta.milli) : sum),
    0n,
  );
}
