import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyWrite, credit, effectiveTokens, planMove, tokensAfterTake } from './bucket.js';

const NOW_MS = 1_800_000_000_000;

const rate = fc.record({
  kind: fc.constant('rate' as const),
  capacityMilli: fc.integer({ min: 0, max: 1e15 }),
  refillMilli: fc.integer({ min: 0, max: 1e9 }),
  refillPeriodMs: fc.constantFrom(1, 977, 60_000, 86_400_000),
});
const slots = fc.record({
  kind: fc.constant('concurrent' as const),
  capacityMilli: fc.integer({ min: 0, max: 1e15 }),
  refillMilli: fc.constant(0),
  refillPeriodMs: fc.constant(0),
});

test('tokensAfterTake leaves the same balance as the planned write, at once and at any later time', () => {
  const scene = fc.record({
    rate: fc.oneof(rate, slots),
    tokens: fc.integer({ min: -1e15, max: 2e15 }),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
    elapsedMs: fc.integer({ min: 0, max: 1e9 }),
    laterMs: fc.integer({ min: 0, max: 1e9 }),
  });
  fc.assert(
    fc.property(scene, ({ rate: of, tokens, part, elapsedMs, laterMs }) => {
      const baseMs = NOW_MS - elapsedMs;
      const credited = credit(of, baseMs, NOW_MS);
      const effective = effectiveTokens(of, tokens, credited);
      fc.pre(effective >= 0);
      const take = Math.floor(Number(effective) * part);
      const planned = applyWrite(
        planMove(of, tokens, credited, { takeMilli: take, debitMilli: 0, refundMilli: 0 }),
        tokens,
      );
      const inHand = tokensAfterTake(effective, credited, take);
      const laterCredit = credit(of, baseMs, NOW_MS + laterMs);
      expect(effectiveTokens(of, inHand, laterCredit)).toBe(effectiveTokens(of, planned, laterCredit));
    }),
    { numRuns: 5_000 },
  );
});
