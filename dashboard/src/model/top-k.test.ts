import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { tenantOf } from '../../../bench/flood-stream.js';
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
        expect(count).toBeLessThanOrEqual(exact);
        expect(count + errorAtMost).toBeGreaterThanOrEqual(exact);
      }
    }),
  );
});

test('the recent top adds the current and the previous window, and forgets older ones', () => {
  const top = new RecentTopK<string>(4, 1_000);
  top.add(10_000, 'a', 'first');
  top.add(11_000, 'a', 'second');
  top.add(11_100, 'b', 'only');
  expect(top.top(11_999, 5).rows).toMatchObject([
    { key: 'a', count: 2, detail: 'second' },
    { key: 'b', count: 1 },
  ]);
  expect(top.top(12_000, 5).rows).toMatchObject([
    { key: 'a', count: 1 },
    { key: 'b', count: 1 },
  ]);
  expect(top.top(15_000, 5)).toEqual({ rows: [], hasOthers: false });
});

describe('at 5,000 calls a second of 10,000 entities', () => {
  /** The top of two windows of half a minute, and how often each key was added. */
  const after58s = (keyOf: (at: number) => string) => {
    const top = new RecentTopK<null>(512, 30_000);
    const exact = new Map<string, number>();
    for (let at = 0; at < 5_000 * 58; at++) {
      const key = keyOf(at);
      top.add(60_000 + at / 5, key, null);
      exact.set(key, (exact.get(key) ?? 0) + 1);
    }
    return { ...top.top(60_000 + 58_000, 12), exact };
  };

  test('the keys that stand out are listed alone, with a count that is no more than the calls that there were', () => {
    const { rows, exact, hasOthers } = after58s(tenantOf);
    expect(rows.map(({ key }) => key).toSorted()).toEqual(Array.from({ length: 7 }, (_, at) => `tenant-${at}`));
    for (const { key, count, errorAtMost } of rows) {
      expect(count).toBeLessThanOrEqual(exact.get(key) ?? 0);
      expect(count).toBeGreaterThan(0.9 * (exact.get(key) ?? 0));
      expect(count + errorAtMost).toBeGreaterThanOrEqual(exact.get(key) ?? 0);
    }
    expect(hasOthers).toBe(true);
  });

  test('where every key is about as frequent as the others, none is listed', () => {
    const { rows, hasOthers } = after58s((at) => `tenant-${(at * 7_919) % 10_000}`);
    expect([rows, hasOthers]).toEqual([[], true]);
  });
});
