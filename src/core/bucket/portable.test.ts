import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Limit } from '../limit.js';
import { type Amount, amountOf, type Holder } from './decide.js';
import { isClosed, operate, type PortableEffect, type PortableOperation } from './portable.js';
import { addAmounts, joinHolders } from './portable-parts.js';

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
  fc.record({
    kind: fc.constant('follow' as const),
    step: fc.nat({ max: 6 }),
    state: fc.constantFrom('open' as const, 'open' as const, 'committed' as const, 'rolled-back' as const),
    released: fc.boolean(),
    totals: amounts,
  }),
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
  return operate(holder, { kind: 'operation', operation, dueIfLost: [] }, LIMITS, 0);
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

  test('a limit that the bucket lacks is not charged, and kept for the parents', () => {
    const effect = apply(holderOf(false), { kind: 'settle', totals: [{ name: 'gone', milli: 7_000 }] });
    expect(effect).toMatchObject({ kind: 'done', due: [] });
    expect(effect).toHaveProperty('holder.portable.forParents', [{ name: 'gone', milli: 7_000, isTotal: true }]);
  });

  test('a limit that the bucket charges again is no longer kept for the parents', () => {
    const part = {
      state: 'open',
      taken: [],
      adjusts: [],
      forParents: [{ name: 'tpm', milli: 9, isTotal: true }],
    } as const;
    const effect = apply(
      { ...holderOf(false), portable: part },
      { kind: 'settle', totals: [{ name: 'tpm', milli: 7 }] },
    );
    expect(effect).toHaveProperty('holder.portable', {
      ...part,
      taken: [{ name: 'tpm', milli: 7 }],
      forParents: [],
      step: 1,
    });
  });

  test('a parent with another grant keeps it until a total is stated, and follows every difference', () => {
    const stated = [{ name: 'usd', milli: -30_000, grantedMilli: 10_000 }];
    let holder = holderOf(false);
    const forParents = (operation: PortableOperation): unknown => {
      const effect = apply(holder, operation);
      if (effect.kind === 'done') ({ holder } = effect);
      return holder.portable?.forParents;
    };
    const [less, more] = [stated, [{ name: 'usd', milli: 4_000, grantedMilli: 10_000 }]];
    expect(forParents({ kind: 'adjust', id: 'a', deltas: [], stated: less })).toEqual([
      { name: 'usd', milli: -10_000, isTotal: false },
    ]);
    expect(forParents({ kind: 'adjust', id: 'b', deltas: [], stated: more })).toEqual([
      { name: 'usd', milli: -6_000, isTotal: false },
    ]);
    expect(forParents({ kind: 'settle', totals: [], stated: more })).toEqual([
      { name: 'usd', milli: 4_000, isTotal: true },
    ]);
    expect(forParents({ kind: 'adjust', id: 'c', deltas: [], stated: less })).toEqual([
      { name: 'usd', milli: 0, isTotal: true },
    ]);
    expect(holder.portable?.step).toBe(4);
  });

  test('a parent that gets the accounts of the first level in any order, and some never, ends with the last of them', () => {
    fc.assert(
      fc.property(
        fc.array(operations, { minLength: 1, maxLength: 8 }),
        fc.infiniteStream(fc.nat()),
        (history, random) => {
          let first = holderOf(false);
          const accounts = [];
          for (const operation of history) {
            if (operation.kind === 'follow') continue;
            const effect = apply(first, operation);
            if (effect.kind === 'done') ({ holder: first } = effect);
            const { state, step = 0, released, taken } = first.portable!;
            const totals = ['rpm', 'tpm'].map((name) => ({ name, milli: amountOf(taken, name) ?? 0 }));
            accounts.push({ kind: 'follow', step, state, released: released === true, totals } as const);
          }
          const isLate = (): boolean => random.next().value! % 3 === 0;
          const late = accounts.filter(isLate);
          let parent = holderOf(false);
          for (const account of [
            ...accounts.filter((one) => !late.includes(one) && !isLate()),
            ...accounts.slice(-1),
            ...late,
          ]) {
            const effect = apply(parent, account);
            if (effect.kind === 'done') ({ holder: parent } = effect);
          }
          const shown = ({ slots, portable }: Holder) => [
            portable?.state,
            slots,
            ...['rpm', 'tpm'].map((name) => amountOf(portable?.taken ?? [], name) ?? 0),
          ];
          expect(shown(parent)).toEqual(shown(first));
        },
      ),
    );
  });

  test('a lost holder makes due only what the operation says', () => {
    const due = [{ name: 'tpm', milli: 5 }];
    const change = { kind: 'operation', operation: { kind: 'rollback' }, dueIfLost: due } as const;
    expect(operate(undefined, change, LIMITS, 0)).toEqual({ kind: 'lost', due });
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
