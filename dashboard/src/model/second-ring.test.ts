import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SecondRing } from './second-ring.js';

test('the ring has the counts of the last whole seconds, the oldest first', () => {
  const ring = new SecondRing(5);
  ring.add(10_000, 1);
  ring.add(11_500, 2);
  ring.add(11_900, 3);
  ring.add(13_000, 9);
  expect(ring.read(13_999)).toEqual([0, 1, 5, 0]);
  expect(ring.read(14_000)).toEqual([1, 5, 0, 9]);
  expect(ring.read(60_000)).toEqual([0, 0, 0, 0]);
});

test('the ring agrees with a list of all counts, for any times in order', () => {
  const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 4_000 }), fc.integer({ min: 1, max: 9 })), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(steps, (gaps) => {
      const ring = new SecondRing(6);
      const all: { second: number; count: number }[] = [];
      let nowMs = 1_800_000_000_000;
      for (const [gapMs, count] of gaps) {
        nowMs += gapMs;
        ring.add(nowMs, count);
        all.push({ second: Math.floor(nowMs / 1_000), count });
      }
      const now = Math.floor(nowMs / 1_000);
      const expected = [5, 4, 3, 2, 1].map((ago) =>
        all.filter(({ second }) => second === now - ago).reduce((sum, { count }) => sum + count, 0),
      );
      expect(ring.read(nowMs)).toEqual(expected);
    }),
  );
});

test('a count of a second that is no longer kept is dropped, because a clock may be set back', () => {
  const ring = new SecondRing(3);
  ring.add(10_000, 1);
  ring.add(5_000, 7);
  expect(ring.read(11_000)).toEqual([0, 1]);
});
