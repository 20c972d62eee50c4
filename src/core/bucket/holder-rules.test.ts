import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Amount, amountOf, type Holder, type Verdict } from './decide.js';
import { amountsDue, chargedRates, takenHolder, takesUnheldSlots } from './holder-rules.js';
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

test('a change charges the rates and unlimited limits that the bucket has, and no slots', () => {
  const totals = ['rpm', 'free', 'jobs', 'gone'].map((name) => ({ name, milli: 1_000 }));
  const charged = chargedRates([{ limit: RPM }, { limit: FREE }, { limit: JOBS }], totals);
  expect(charged.map(({ name }) => name)).toEqual(['rpm', 'free']);
});

describe('amountsDue', () => {
  const milli = fc.integer({ min: -1e15, max: 1e15 });
  const amounts = fc.uniqueArray(fc.record({ name: fc.constantFrom('rpm', 'tpm', 'constructor'), milli }), {
    selector: ({ name }) => name,
  });

  test('the deltas are due if an expiry gives nothing back, and the totals if the holder expired', () => {
    fc.assert(
      fc.property(amounts, amounts, fc.boolean(), (deltas, totals, holderLost) => {
        expect(amountsDue({ deltas, totals: null }, undefined, holderLost)).toBe(deltas);
        expect(amountsDue({ deltas, totals }, undefined, true)).toBe(totals);
      }),
    );
  });

  test('what a holder carries becomes the total, however often the change is made', () => {
    fc.assert(
      fc.property(amounts, amounts, (carried, totals) => {
        const change = { deltas: [], totals };
        for (const { name, milli: due } of amountsDue(change, holderOf([], carried), false)) {
          expect(add(amountOf(carried, name)!, due)).toBe(amountOf(totals, name));
        }
        const again = amountsDue(change, holderOf([], totals), false);
        expect(again.every((amount) => amount.milli === 0)).toBe(true);
      }),
    );
  });

  test('a change that was not made before is due as its deltas, whether the holder carries the amounts or not', () => {
    fc.assert(
      fc.property(amounts, milli, fc.boolean(), (taken, more, carries) => {
        const deltas = taken.map(({ name }) => ({ name, milli: more }));
        const totals = taken.map(({ name, milli: before }) => ({ name, milli: add(before, more) }));
        expect(amountsDue({ deltas, totals }, holderOf([], carries ? taken : null), false)).toEqual(deltas);
      }),
    );
  });
});
