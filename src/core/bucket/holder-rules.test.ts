import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Amount, amountOf, type Holder, type Verdict } from './decide.js';
import {
  type AmountChange,
  amountsDue,
  changesBy,
  deltasOf,
  keptHolder,
  takenHolder,
  takesUnheldSlots,
} from './holder-rules.js';
import { add, sub } from '../int.js';
import { Limit } from '../limit.js';

const JOBS = Limit.concurrent('jobs', 5);
const RPM = Limit.perMinute('rpm', 60);
const FREE = Limit.unlimited('free');

function verdictOf(limit: Limit, requestedMilli: number): Verdict {
  return { limit, creditedMilli: 0, effectiveMilli: 5_000, requestedMilli, waitMs: 0 };
}

function holderOf(slots: readonly Amount[], rates: readonly Amount[] | null): Holder {
  return { expiresAtMs: 1, acquiredAtMs: 0, slots, rates, caller: null };
}

describe('takesUnheldSlots', () => {
  test('an ask that takes slots without a holder, or with one for other slots, takes unheld slots', () => {
    const others = holderOf([{ name: 'gpus', milli: 1_000 }], null);
    for (const holder of [null, others]) {
      expect(takesUnheldSlots({ holder }, [verdictOf(RPM, 1_000), verdictOf(JOBS, 1_000)])).toBe(true);
    }
  });

  test('an ask whose holder has the slots, or that takes none of them, takes no unheld slots', () => {
    const holder = holderOf([{ name: 'jobs', milli: 1_000 }], null);
    expect(takesUnheldSlots({ holder }, [verdictOf(JOBS, 1_000)])).toBe(false);
    expect(takesUnheldSlots({ holder: null }, [verdictOf(JOBS, 0)])).toBe(false);
  });

  test('rates and unlimited limits need no holder', () => {
    expect(takesUnheldSlots({ holder: null }, [verdictOf(RPM, 1_000), verdictOf(FREE, 1_000)])).toBe(false);
  });
});

describe('takenHolder', () => {
  const rates = [
    { name: 'rpm', milli: 1_000 },
    { name: 'gone', milli: 2_000 },
  ];

  test('the holder keeps only the rates that were taken', () => {
    const holder = holderOf([], rates);
    expect(takenHolder(holder, [verdictOf(RPM, 1_000)])).toEqual(holderOf([], [rates[0]!]));
  });

  test('the same holder is stored if an expiry gives no rates back', () => {
    const none = holderOf([], null);
    expect(takenHolder(none, [])).toBe(none);
  });
});

describe('keptHolder', () => {
  const amounts = ['rpm', 'free', 'jobs', 'gone'].map((name) => ({ name, fromMilli: 1_000, toMilli: 2_000 }));
  const limits = [{ limit: RPM }, { limit: FREE }, { limit: JOBS }];

  test('a holder that carries rates gets the new totals of the rates and unlimited limits that the bucket has', () => {
    const kept = keptHolder(holderOf([], [{ name: 'rpm', milli: 1_000 }]), { amounts, refundsOnExpiry: true }, limits);
    expect(kept.rates).toEqual(['rpm', 'free'].map((name) => ({ name, milli: 2_000 })));
  });

  test('a holder stays as it is if it carries no rates, or if the lease says that its expiry gives none back', () => {
    const [all, none] = [holderOf([], [{ name: 'rpm', milli: 1_000 }]), holderOf([], null)];
    expect(keptHolder(all, { amounts }, limits)).toBe(all);
    expect(keptHolder(none, { amounts, refundsOnExpiry: true }, limits)).toBe(none);
  });
});

describe('amountsDue', () => {
  const milli = fc.integer({ min: -1e15, max: 1e15 });
  const names = fc.constantFrom('rpm', 'tpm', 'constructor');
  const uniqueNames = { selector: (amount: { readonly name: string }) => amount.name };
  const amounts = fc.uniqueArray(fc.record({ name: names, milli }), uniqueNames);
  const changed = fc.uniqueArray(fc.record({ name: names, fromMilli: milli, toMilli: milli }), uniqueNames);
  const totalsOf = (all: readonly AmountChange[]) => all.map(({ name, toMilli }) => ({ name, milli: toMilli }));

  test('the difference is due with a holder and without one, and all is due if an expiry gave back what the holder carried', () => {
    fc.assert(
      fc.property(changed, amounts, (all, carried) => {
        const deltas = all.map(({ name, fromMilli, toMilli }) => ({ name, milli: sub(toMilli, fromMilli) }));
        expect(amountsDue({ amounts: all }, undefined)).toEqual(deltas);
        expect(amountsDue({ amounts: all }, holderOf([], carried))).toEqual(deltas);
        expect(amountsDue({ amounts: all, refundsOnExpiry: true }, undefined)).toEqual(totalsOf(all));
      }),
    );
  });

  test('a change by amounts makes these differences, and gives back from what it gives back to 0', () => {
    fc.assert(
      fc.property(amounts, (deltas) => {
        expect(deltasOf({ amounts: changesBy(deltas) })).toEqual(deltas);
      }),
    );
    expect(changesBy([{ name: 'rpm', milli: -5 }])).toEqual([{ name: 'rpm', fromMilli: 5, toMilli: 0 }]);
  });

  test('what a holder carries becomes the total, however often the change is made', () => {
    fc.assert(
      fc.property(amounts, changed, (carried, all) => {
        const change = { amounts: all, refundsOnExpiry: true };
        for (const due of amountsDue(change, holderOf([], carried))) {
          const before = amountOf(carried, due.name);
          if (before !== undefined) expect(add(before, due.milli)).toBe(amountOf(totalsOf(all), due.name));
        }
        const again = amountsDue(change, holderOf([], totalsOf(all)));
        expect(again.every((amount) => amount.milli === 0)).toBe(true);
      }),
    );
  });

  test('a change that was not made before is due as its difference, whether the holder carries the amounts or not', () => {
    fc.assert(
      fc.property(amounts, milli, fc.boolean(), (taken, deltaMilli, carries) => {
        const all = taken.map(({ name, milli: before }) => {
          return { name, fromMilli: before, toMilli: add(before, deltaMilli) };
        });
        const change = { amounts: all, refundsOnExpiry: true };
        expect(amountsDue(change, holderOf([], carries ? taken : null))).toEqual(deltasOf(change));
      }),
    );
  });
});
