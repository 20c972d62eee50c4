import { expect, test } from 'vitest';
import type { LimitView, StatusView } from '../api/types.js';
import { limitsNow, tightestOf } from './limits-now.js';

const limit = (name: string, change: Partial<LimitView> = {}): LimitView => ({
  name,
  text: `${name}:100/min`,
  kind: 'rate',
  capacity: 100,
  refillAmount: 100,
  refillPeriodMs: 60_000,
  ...change,
});
const status = (entityId: string, name: string, available: number, change: Partial<StatusView> = {}): StatusView => ({
  entityId,
  resource: 'r',
  limit: limit(name),
  available,
  requested: 0,
  exceeded: false,
  retryAfterMs: 0,
  ...change,
});

test('each level has its gauges, with the options that its config has, and its unlimited limits', () => {
  const reserve = { batch: 0.3 };
  const configured = new Map([
    ['a', [limit('rpm', { reserve }), limit('tokens', { kind: 'unlimited', capacity: null })]],
    ['team', []],
  ]);
  const levels = limitsNow([status('a', 'rpm', 40), status('team', 'rpm', 90, { shadow: true })], configured);
  const found = levels.map(({ entityId, gauges }) => [
    entityId,
    gauges.map(({ name, usedShare, reserves, isShadow }) => [name, usedShare, reserves.length, isShadow]),
  ]);
  expect(found).toEqual([
    [
      'a',
      [
        ['rpm', 0.6, 1, false],
        ['tokens', 0, 0, false],
      ],
    ],
    ['team', [['rpm', 0.1, 0, true]]],
  ]);
});

test('without a config the levels are those of the statuses', () => {
  expect(
    limitsNow([status('a', 'rpm', 40), status('team', 'rpm', 9)], new Map()).map(({ entityId }) => entityId),
  ).toEqual(['a', 'team']);
});

test('the tightest limit is the one that is used most, also in debt, and never a shadow', () => {
  const tightest = (...statuses: StatusView[]) => {
    const found = tightestOf(limitsNow(statuses, new Map()));
    return found && [found.name, found.usedShare, found.debt];
  };
  expect(tightest(status('a', 'rpm', 40), status('team', 'tpm', 39))).toEqual(['tpm', 0.61, 0]);
  expect(tightest(status('a', 'rpm', 0), status('team', 'tpm', -5))).toEqual(['tpm', 1, 5]);
  expect(tightest(status('a', 'rpm', 40), status('a', 'tpm', 0, { shadow: true }))).toEqual(['rpm', 0.6, 0]);
  expect(tightest(status('a', 'rpm', 100))).toBeUndefined();
});
