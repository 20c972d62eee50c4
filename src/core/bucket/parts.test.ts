import fc from 'fast-check';
import { expect, test } from 'vitest';
import { partOfWhole } from './parts.js';

test('the parts of an amount add up to it, whatever the weights are, and a shard without weight gets nothing', () => {
  const weights = fc.array(fc.bigInt({ min: 0n, max: 10n ** 15n }), { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(fc.maxSafeInteger(), weights, (milli, drawn) => {
      const parts = drawn.map((_, at) => BigInt(partOfWhole(milli, drawn, at)));
      expect(parts.reduce((sum, part) => sum + part, 0n)).toBe(BigInt(milli));
      const hasWeight = drawn.some((weight) => weight > 0n);
      for (const [at, weight] of drawn.entries()) if (hasWeight && weight === 0n) expect(parts[at]).toBe(0n);
    }),
  );
});
