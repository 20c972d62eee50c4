import fc from 'fast-check';
import { expect, test } from 'vitest';
import { askEntry, imageOf, NOW_MS, withTokens } from '../../../../../tests/support/dynamodb/shard-images.js';
import { shardWriteHolds } from '../../../../../tests/support/dynamodb/shard-truth.js';
import { Limit } from '../../../../core/limit.js';
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
