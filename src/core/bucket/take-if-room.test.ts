import fc from 'fast-check';
import { expect, test } from 'vitest';
import { credit, effectiveTokens, takeIfRoom, tokensAfterTake } from './bucket.js';

const NOW_MS = 1_800_000_000_000;

const rate = fc.record({
  kind: fc.constant('rate' as const),
  capacityMilli: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 1e15 })),
  refillMilli: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 1e15 })),
  refillPeriodMs: fc.oneof(fc.constantFrom(1, 977, 60_000, 86_400_000), fc.integer({ min: 1, max: 31_536_000_000 })),
});
const elapsedMs = fc.oneof(fc.integer({ min: -5_000, max: 5_000 }), fc.integer({ min: 0, max: 1e12 }));

test('takeIfRoom decides and takes as effectiveTokens and tokensAfterTake do', () => {
  const tokens = fc.oneof(
    fc.integer({ min: -100_000, max: 100_000 }),
    fc.bigInt({ min: -(10n ** 20n), max: -(2n ** 53n) }),
    fc.integer({ min: -1e15, max: 1e15 }),
  );
  const scene = fc.record({ rate, tokens, elapsedMs, take: fc.integer({ min: 0, max: 1e15 }) });
  fc.assert(
    fc.property(scene, fc.boolean(), ({ rate: rule, tokens: stored, elapsedMs: elapsed, take }, atBound) => {
      const baseMs = NOW_MS - elapsed;
      const credited = credit(rule, baseMs, NOW_MS);
      const effective = effectiveTokens(rule, stored, credited);
      // Half of the asks are for all that there is, and one millitoken more.
      const asked = atBound && effective >= 0 ? Number(effective) + (take % 2) : take;
      const expected = effective >= asked ? tokensAfterTake(effective, credited, asked) : null;
      expect(takeIfRoom(rule, stored, baseMs, NOW_MS, asked)).toBe(expected);
    }),
    { numRuns: 5_000 },
  );
});
