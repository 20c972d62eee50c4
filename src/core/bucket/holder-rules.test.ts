import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Amount, amountOf, type Holder, type Verdict } from './decide.js';
import { amountsDue, deltasOf, keptHolder, takenHolder, takesUnheldSlots } from './holder-rules.js';
import { add } from '../int.js';
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

  test('under an older config the holder keeps only the rates that were taken', () => {
    const holder = holderOf([], rates);
    expect(takenHolder(holder, [verdictOf(RPM, 1_000)], true)).toEqual(holderOf([], [rates[0]!]));
  });

  test('the same holder is stored under the current config, and if an expiry gives no rates back', () => {
    const [all, none] = [holderOf([], rates), holderOf([], null)];
    expect(takenHolder(all, [verdictOf(RPM, 1_000)], false)).toBe(all);
    expect(takenHolder(none, [], true)).toBe(none);
  });
});

describe('keptHolder', () => {
  const totals = ['rpm', 'free', 'jobs', 'gone'].map((name) => ({ name, milli: 2_000, deltaMilli: 1_000 }));
  const limits = [{ limit: RPM }, { limit: FREE }, { limit: JOBS }];

  test('a holder that carries rates gets the new totals of the rates and unlimited limits that the bucket has', () => {
    const kept = keptHolder(holderOf([], [{ name: 'rpm', milli: 1_000 }]), { kind: 'totals', totals }, limits);
    expect(kept.rates).toEqual(['rpm', 'free'].map((name) => ({ name, milli: 2_000 })));
  });

  test('deltas change no holder, and totals change no holder that carries no rates', () => {
    const [all, none] = [holderOf([], totals), holderOf([], null)];
    expect(keptHolder(all, { kind: 'deltas', deltas: totals }, limits)).toBe(all);
    expect(keptHolder(none, { kind: 'totals', totals }, limits)).toBe(none);
  });
});

describe('amountsDue', () => {
  const milli = fc.integer({ min: -1e15, max: 1e15 });
  const names = fc.constantFrom('rpm', 'tpm', 'constructor');
  const uniqueNames = { selector: (amount: { readonly name: string }) => amount.name };
  const amounts = fc.uniqueArray(fc.record({ name: names, milli }), uniqueNames);
  const rateTotals = fc.uniqueArray(fc.record({ name: names, milli, deltaMilli: milli }), uniqueNames);

  test('deltas are due with a holder and without one, and totals are due in full if the holder expired', () => {
    fc.assert(
      fc.property(amounts, rateTotals, amounts, (deltas, totals, carried) => {
        expect(amountsDue({ kind: 'deltas', deltas }, undefined)).toBe(deltas);
        expect(amountsDue({ kind: 'deltas', deltas }, holderOf([], carried))).toBe(deltas);
        expect(amountsDue({ kind: 'totals', totals }, undefined)).toBe(totals);
      }),
    );
  });

  test('what a holder carries becomes the total, however often the change is made', () => {
    fc.assert(
      fc.property(amounts, rateTotals, (carried, totals) => {
        const change = { kind: 'totals', totals } as const;
        for (const due of amountsDue(change, holderOf([], carried))) {
          const before = amountOf(carried, due.name);
          if (before !== undefined) expect(add(before, due.milli)).toBe(amountOf(totals, due.name));
        }
        const again = amountsDue(change, holderOf([], totals));
        expect(again.every((amount) => amount.milli === 0)).toBe(true);
      }),
    );
  });

  test('a change that was not made before is due as its deltas, whether the holder carries the amounts or not', () => {
    fc.assert(
      fc.property(amounts, milli, fc.boolean(), (taken, deltaMilli, carries) => {
        const totals = taken.map(({ name, milli: before }) => ({ name, milli: add(before, deltaMilli), deltaMilli }));
        const change = { kind: 'totals', totals } as const;
        expect(amountsDue(change, holderOf([], carries ? taken : null))).toEqual(deltasOf(change));
      }),
    );
  });
});
