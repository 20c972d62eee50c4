import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  askEntry,
  imageOf,
  KEY,
  NOW_MS,
  NS,
  withTokens,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { shardWriteHolds } from '../../../../../tests/support/dynamodb/shard/shard-truth.js';
import { Limit } from '../../../../core/limit.js';
import type { AskEntry } from './entries.js';
import type { GroupStep } from './group-state.js';
import { startGroup, step } from './group-write.js';
import { planGroup } from './plan-group.js';

const RPM = Limit.perMinute('rpm', 60);
const CONTEXT = { nowMs: NOW_MS, trust: 'guess', lifeFactor: 7, withoutRefunds: false } as const;

test('a write that counts a shadow as short lands exactly on the items on which it is short', () => {
  const tokens = fc.integer({ min: -5_000, max: 60_000 });
  fc.assert(
    fc.property(tokens, tokens, fc.integer({ min: 1, max: 60_000 }), (seen, stored, milli) => {
      const image = withTokens(imageOf([RPM], { baseMs: NOW_MS }), seen);
      const entry = askEntry([RPM], { rpm: milli });
      const asks = entry.level.asks.map((ask) => ({ ...ask, shadow: true as const }));
      const plan = planGroup(image, [{ ...entry, level: { ...entry.level, asks } }], CONTEXT);
      if (plan.kind !== 'write') throw new Error(`planned a ${plan.kind}`);
      const isShort = (balance: number): boolean => balance < milli;
      const lands = shardWriteHolds(image, plan.write, withTokens(image, stored));
      expect(lands).toBe(isShort(seen) === isShort(stored));
    }),
    { numRuns: 1_000 },
  );
});

test.each([
  ['is given up as contended if a limit can refuse it', false],
  ['is tried again and again if all its limits are shadows', true],
])('an ask whose writes are refused by other writers %s', (_, onlyShadows) => {
  const image = withTokens(imageOf([RPM], { baseMs: NOW_MS }), 5_000);
  const asked = askEntry([RPM], { rpm: 1_000 });
  const asks = asked.level.asks.map((ask) => (onlyShadows ? { ...ask, shadow: true as const } : ask));
  const entry: AskEntry = { ...asked, level: { ...asked.level, asks }, ...(onlyShadows ? { onlyShadows } : {}) };
  const group = {
    ns: NS,
    key: KEY,
    entries: [entry],
    nowMs: NOW_MS,
    lifeFactor: 7,
    maxRetries: 5,
    inDoubt: new Set<string>(),
  };
  let next: GroupStep = startGroup(group, { image, trust: 'exact', isAbsent: false, judgement: null });
  const told = [...next.answers];
  for (let refusals = 0; refusals < 40 && next.action.kind !== 'done';) {
    if (next.action.kind === 'send') {
      refusals += 1;
      next = step(next.state, { kind: 'sent', id: `w${refusals}`, answer: { kind: 'refused', image } });
    } else next = step(next.state, { kind: 'paused' });
    told.push(...next.answers);
  }
  expect(told.map(({ outcome }) => outcome)).toEqual(
    onlyShadows ? [] : [{ kind: 'result', result: { kind: 'contended' } }],
  );
});
