import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Limit } from '../limit.js';
import { type Amount, amountOf, type Holder } from './decide.js';
import { addAmounts, isClosed, joinHolders, operate, type PortableEffect, type PortableOperation } from './portable.js';

const LIMITS = [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 1_000), Limit.concurrent('slots', 4)].map(
  (limit) => ({ limit }),
);
const names = fc.constantFrom('rpm', 'tpm', 'gone');
const amounts = fc.uniqueArray(fc.record({ name: names, milli: fc.integer({ min: 0, max: 1e6 }) }), {
  selector: ({ name }) => name,
});
const operations: fc.Arbitrary<PortableOperation> = fc.oneof(
  fc.record({ kind: fc.constantFrom('settle' as const, 'commit' as const), totals: amounts }),
  fc.record({
    kind: fc.constant('adjust' as const),
    id: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    deltas: fc.uniqueArray(fc.record({ name: names, milli: fc.integer({ min: -1e6, max: 1e6 }) }), {
      selector: ({ name }) => name,
    }),
  }),
  fc.record({ kind: fc.constantFrom('release' as const, 'rollback' as const) }),
);

function holderOf(refunds: boolean): Holder {
  const taken = [
    { name: 'rpm', milli: 1_000 },
    { name: 'tpm', milli: 500_000 },
  ];
  return {
    expiresAtMs: 60_000,
    acquiredAtMs: 0,
    slots: [{ name: 'slots', milli: 2_000 }],
    rates: refunds ? taken : null,
    caller: null,
    portable: { state: 'open', taken, adjusts: [] },
  };
}

function apply(holder: Holder | undefined, operation: PortableOperation): PortableEffect {
  return operate(holder, { kind: 'operation', operation, dueIfLost: [] }, LIMITS);
}

/** What the bucket has given to the lease and not got back. */
class Ledger {
  taken: readonly Amount[];
  slots = 2_000;

  constructor({ portable }: Holder) {
    this.taken = portable?.taken ?? [];
  }

  book({ due, slotsBack }: Extract<PortableEffect, { readonly kind: 'done' }>): void {
    this.taken = addAmounts(this.taken, due);
    this.slots -= Number(amountOf(slotsBack, 'slots') ?? 0);
  }
}

describe('operations of a portable lease', () => {
  test('the holder says at every time exactly what the bucket has given, and nothing below 0', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(operations, { maxLength: 12 }), (refunds, history) => {
        let holder = holderOf(refunds);
        const ledger = new Ledger(holder);
        for (const operation of history) {
          const effect = apply(holder, operation);
          if (effect.kind !== 'done') continue;
          ledger.book(effect);
          ({ holder } = effect);
          for (const name of ['rpm', 'tpm']) {
            const held = Number(amountOf(holder.portable?.taken ?? [], name) ?? 0);
            expect(held).toBe(Number(amountOf(ledger.taken, name) ?? 0));
            expect(held).toBeGreaterThanOrEqual(0);
          }
          expect(Number(amountOf(holder.slots, 'slots') ?? 0)).toBe(ledger.slots);
          expect(holder.rates === null).toBe(!refunds || isClosed(holder));
        }
      }),
    );
  });

  test('an operation that is repeated at once has the same answer and no effect', () => {
    fc.assert(
      fc.property(fc.array(operations, { maxLength: 6 }), operations, (history, operation) => {
        let holder = holderOf(false);
        for (const earlier of history) {
          const effect = apply(holder, earlier);
          if (effect.kind === 'done') ({ holder } = effect);
        }
        const first = apply(holder, operation);
        const second = apply(first.kind === 'done' ? first.holder : holder, operation);
        expect(second.kind).toBe(first.kind);
        if (second.kind === 'done') expect([second.due, second.slotsBack]).toEqual([[], []]);
      }),
    );
  });

  test('a lease that has ended stays ended, and holds nothing', () => {
    fc.assert(
      fc.property(fc.constantFrom('commit', 'rollback'), fc.array(operations), (end, history) => {
        const ended = apply(holderOf(true), end === 'commit' ? { kind: end, totals: [] } : { kind: 'rollback' });
        if (ended.kind !== 'done') throw new Error('the first end is not refused');
        let { holder } = ended;
        for (const operation of history) {
          const effect = apply(holder, operation);
          if (effect.kind === 'done') ({ holder } = effect);
        }
        expect([holder.portable?.state, holder.slots, holder.rates]).toEqual([
          end === 'commit' ? 'committed' : 'rolled-back',
          [],
          null,
        ]);
      }),
    );
  });

  test('a limit that the bucket lacks is neither charged nor kept', () => {
    const effect = apply(holderOf(false), { kind: 'settle', totals: [{ name: 'gone', milli: 7_000 }] });
    expect(effect).toMatchObject({ kind: 'done', due: [] });
  });

  test('a lost holder makes due only what the operation says', () => {
    const due = [{ name: 'tpm', milli: 5 }];
    const change = { kind: 'operation', operation: { kind: 'rollback' }, dueIfLost: due } as const;
    expect(operate(undefined, change, LIMITS)).toEqual({ kind: 'lost', due });
  });

  test('the parts of a lease on several shards add up, and a missing part means that the lease is lost', () => {
    const [a, b] = [holderOf(true), holderOf(true)];
    expect(joinHolders([a, b])).toMatchObject({
      slots: [{ name: 'slots', milli: 4_000 }],
      portable: { taken: [{ milli: 2_000 }, { milli: 1_000_000 }] },
    });
    expect(joinHolders([a, undefined])).toBeUndefined();
    expect(joinHolders([])).toBeUndefined();
  });
});
