import fc from 'fast-check';
import { expect, test } from 'vitest';
import { deltasOf } from '../../core/bucket/holder-rules.js';
import { Limit } from '../../core/limit.js';
import type { LeaseOperation } from './lease-operation.js';
import {
  bookChange,
  bookRefunds,
  changeOf,
  givenBack,
  type LevelAccount,
  openLevel,
  totalsAfter,
} from './level-account.js';

const GRANTED = {
  entityId: 'a',
  resource: 'r',
  limits: [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 2)],
  version: { sequence: 1, openedAtMs: 0 },
  asks: [
    { name: 'rpm', milli: 5_000 },
    { name: 'slots', milli: 1_000 },
  ],
} as const;
const HOLDER = { expiresAtMs: 60_000, acquiredAtMs: 0, slots: [], rates: null, caller: null };

const DONE = { kind: 'done', holderLost: false } as const;

const levelOf = (isHeld = false): LevelAccount => openLevel({ ...GRANTED, holder: isHeld ? HOLDER : null });

const isReleased = ({ kind }: LeaseOperation): boolean => kind !== 'adjust' && kind !== 'settle';

/** Performs an operation as the store would, and returns the change of the rate in millitokens. */
function perform(level: LevelAccount, operation: LeaseOperation): number {
  const totals = totalsAfter(level, operation);
  const change = changeOf(level, totals, isReleased(operation) ? 'release' : 'keep');
  if (change === null) return 0;
  bookChange(level, change, totals ?? [], DONE);
  return deltasOf(change).reduce((sum, { milli }) => sum + Number(milli), 0);
}

test('a rollback gives back what the grant and all corrections before it took, whatever they were', () => {
  const amount = fc.nat(20_000).map((milli) => [{ name: 'rpm', milli }]);
  const correction = fc.oneof(
    amount.map((totals): LeaseOperation => ({ kind: 'settle', totals })),
    amount.map((deltas): LeaseOperation => ({ kind: 'adjust', deltas, id: null })),
  );
  fc.assert(
    fc.property(fc.array(correction), fc.boolean(), (corrections, isHeld) => {
      const level = levelOf(isHeld);
      let taken = 5_000;
      for (const operation of corrections) taken += perform(level, operation);
      expect(level.taken.get('rpm')).toBe(taken);
      expect(perform(level, { kind: 'rollback' })).toBe(0 - taken);
      expect(level.held).toBe(false);
    }),
  );
});

test('an operation that was booked changes nothing when it is repeated', () => {
  const totals = [{ name: 'rpm', milli: 7_000 }];
  for (const operation of [{ kind: 'settle', totals }, { kind: 'commit', totals }, { kind: 'rollback' }] as const) {
    const level = levelOf(true);
    expect(perform(level, operation)).not.toBe(0);
    expect(changeOf(level, totalsAfter(level, operation), isReleased(operation) ? 'release' : 'keep')).toBeNull();
  }
});

test('an adjust that would give back more than was taken is refused, and names what was taken', () => {
  const deltas = [{ name: 'rpm', milli: -5_001 }];
  expect(() => totalsAfter(levelOf(), { kind: 'adjust', deltas, id: null })).toThrow(/at least -5/);
});

test('a change that keeps named limits gives the others back', () => {
  const level = levelOf();
  expect(totalsAfter(level, { kind: 'keep', names: new Set(['rpm']) })).toEqual([]);
  expect(totalsAfter(level, { kind: 'keep', names: new Set() })).toEqual([{ name: 'rpm', milli: 0 }]);
});

test('a release leaves the rates and returns the slots', () => {
  const level = levelOf(true);
  const change = changeOf(level, totalsAfter(level, { kind: 'release' }), 'release')!;
  expect(givenBack(level, change)).toEqual([{ name: 'slots', milli: 1_000 }]);
  bookChange(level, change, [], DONE);
  expect([...level.taken.keys()]).toEqual(['rpm']);
});

test('a change that the store has not finished is continued: even a change of nothing states all amounts', () => {
  const level = levelOf(true);
  expect(changeOf(level, [], 'keep')).toBeNull();
  level.progress.state = 'unfinished';
  expect(changeOf(level, [], 'keep')?.amounts).toEqual([{ name: 'rpm', fromMilli: 5_000, toMilli: 5_000 }]);
});

test('a lease looks for a holder as long as its store says that there may be one', () => {
  const change = (level: LevelAccount, holder: 'keep' | 'release') => ({
    ...changeOf(level, null, 'release')!,
    holder,
  });
  for (const [holder, told, isHeld] of [
    ['keep', {}, true],
    ['keep', { holderLost: true }, false],
    ['keep', { holderLost: true, holds: true }, true],
    ['keep', { holds: false }, false],
    ['release', {}, false],
    ['release', { holderLost: true, holds: true }, true],
  ] as const) {
    const level = levelOf(true);
    bookChange(level, change(level, holder), [], { ...DONE, ...told });
    expect({ holder, told, isHeld: level.held }).toEqual({ holder, told, isHeld });
  }
});

test('of a write that may have landed, refunds are booked as done and debits are sent again', () => {
  const level = levelOf();
  expect(bookRefunds(level, [{ name: 'rpm', milli: 6_000 }])).toBe(false);
  expect(level.taken.get('rpm')).toBe(5_000);
  expect(bookRefunds(level, [{ name: 'rpm', milli: 2_000 }])).toBe(true);
  expect(level.taken.get('rpm')).toBe(2_000);
});
