import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aheadBy } from './server-time.js';

const NOW_MS = Date.UTC(2027, 0, 15, 8);

test('a wrong clock of the browser is corrected to the second, and a right one is left alone', () => {
  fc.assert(
    fc.property(fc.integer({ min: -86_400_000, max: 86_400_000 }), (wrongMs) => {
      const date = new Date(NOW_MS).toUTCString();
      const aheadMs = aheadBy(date, NOW_MS + wrongMs);
      expect(Math.abs(NOW_MS + wrongMs + aheadMs - NOW_MS)).toBeLessThan(5_000);
      if (Math.abs(wrongMs) < 5_000) expect(aheadMs).toBe(0);
    }),
  );
});

test('an answer without a date, or with a malformed one, corrects nothing', () => {
  expect([null, '', 'soon'].map((date) => aheadBy(date, NOW_MS))).toEqual([0, 0, 0]);
});
