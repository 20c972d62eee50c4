import { expect, test } from 'vitest';
import type { LimitView } from '../api/types.js';
import { gaugeOf, isRunning, timeUntilFull } from './gauge.js';

const RATE: LimitView = {
  name: 'tpm',
  text: 'tpm:600/min',
  kind: 'rate',
  capacity: 600,
  refillAmount: 600,
  refillPeriodMs: 60_000,
};
const SLOTS: LimitView = {
  name: 'slots',
  text: 'slots:3/concurrent',
  kind: 'concurrent',
  capacity: 3,
  refillAmount: 0,
  refillPeriodMs: 0,
};

test('a gauge shows what is used, and when the capacity is available again', () => {
  expect(gaugeOf(RATE, 450)).toMatchObject({
    usedShare: 0.25,
    debt: 0,
    level: 'calm',
    summary: '150 of 600 used, full again in 15 s',
  });
  expect([gaugeOf(RATE, 150).level, gaugeOf(RATE, 0).level]).toEqual(['high', 'full']);
});

test('debt fills the bar, is named, and counts in the time until full', () => {
  expect(gaugeOf(RATE, -300)).toMatchObject({
    usedShare: 1,
    debt: 300,
    debtShare: 0.5,
    level: 'full',
    summary: '600 of 600 used, 300 in debt, full again in 1 min 30 s',
  });
});

test('slots return when leases end, so that there is no time until full', () => {
  expect(gaugeOf(SLOTS, 1)).toMatchObject({ summary: '2 of 3 slots used' });
  expect(timeUntilFull(SLOTS, 3)).toBe(0);
});

test('the reserve of each class comes from the config, and slots of a reserve are whole', () => {
  const reserve = { batch: 0.3, test: 0.5 };
  expect(gaugeOf(RATE, 600, { ...RATE, reserve }).reserves).toEqual([
    { priority: 'batch', fromShare: 0.7, tokens: 180 },
    { priority: 'test', fromShare: 0.5, tokens: 300 },
  ]);
  expect(gaugeOf(SLOTS, 3, { ...SLOTS, reserve: { batch: 0.3 } }).reserves).toMatchObject([{ tokens: 1 }]);
});

test('an unlimited limit has no bar, and a limit of capacity 0 is full', () => {
  expect(gaugeOf({ ...RATE, kind: 'unlimited', capacity: null }, null)).toMatchObject({ level: 'unlimited' });
  expect(gaugeOf({ ...RATE, capacity: 0, refillAmount: 0 }, 0)).toMatchObject({ usedShare: 1, level: 'full' });
});

test('a pause runs until its end, or without one until it is resumed', () => {
  const at = Date.parse('2026-01-01T00:00:00Z');
  expect(isRunning({ until: '2026-01-01T00:00:00.001Z', reason: '' }, at)).toBe(true);
  expect(isRunning({ until: '2026-01-01T00:00:00Z', reason: '' }, at)).toBe(false);
  expect([isRunning({ until: null, reason: '' }, at), isRunning(undefined, at)]).toEqual([true, false]);
});
