import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RecentTopK, TopK } from './top-k.js';

test('a key that is more frequent than one of `size` is kept, and its count is right within its error', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 400 }), (stream) => {
      const top = new TopK<number>(8);
      for (const key of stream) top.add(String(key), key);
      const found = new Map(top.entries().map((entry) => [entry.detail, entry]));
      expect(found.size).toBeLessThanOrEqual(8);
      for (const key of new Set(stream)) {
        const count = stream.filter((one) => one === key).length;
        if (count > stream.length / 8) expect(found.has(key)).toBe(true);
      }
      for (const [key, { count, errorAtMost }] of found) {
        const exact = stream.filter((one) => one === key).length;
        expect(count).toBeGreaterThanOrEqual(exact);
        expect(count - errorAtMost).toBeLessThanOrEqual(exact);
      }
    }),
  );
});

test('the recent top adds the current and the previous window, and forgets older ones', () => {
  const top = new RecentTopK<string>(4, 1_000);
  top.add(10_000, 'a', 'first');
  top.add(11_000, 'a', 'second');
  top.add(11_100, 'b', 'only');
  expect(top.top(11_999, 5)).toMatchObject([
    { key: 'a', count: 2, detail: 'second' },
    { key: 'b', count: 1 },
  ]);
  expect(top.top(12_000, 5)).toMatchObject([
    { key: 'a', count: 1 },
    { key: 'b', count: 1 },
  ]);
  expect(top.top(15_000, 5)).toEqual([]);
});
