import fc from 'fast-check';
import { expect, test } from 'vitest';
import { comparisonOf, INVERSE } from '../../bench/interleave.js';
import { printRatio, spreadOf } from '../../bench/spread.js';
import { mergeRows, type Row, verdictOf, within } from '../../bench/table.js';

const rowOf = (ratios: readonly number[], goal: Pick<Row, 'goal' | 'goalIs'>): Row => {
  const ratio = spreadOf(ratios);
  return { name: 'a row', unit: 'ns', ours: ratio.median, theirs: 1, ratio, ...goal };
};
const NINE = [2.1, 2.2, 2.2, 2.3, 2.31, 2.4, 2.45, 2.5, 9];

test('a ratio is printed as its median with its quartiles, which one outlier does not move', () => {
  expect(printRatio(spreadOf(NINE))).toBe('2.31x (2.20-2.45)');
});

test.each([
  [2.2, 'least', 'met'],
  [2.3, 'least', 'unclear'],
  [2.46, 'least', 'MISSED'],
  [2.45, 'most', 'met'],
  [2.3, 'most', 'unclear'],
  [2.19, 'most', 'MISSED'],
] as const)('nine ratios from 2.1 to 9 with a goal of %d at %s are %s', (goal, goalIs, verdict) => {
  expect(verdictOf(rowOf(NINE, { goal, goalIs }))).toBe(verdict);
});

test('fewer than nine pairs decide no goal', () => {
  expect(verdictOf(rowOf(NINE.slice(1), { goal: 1, goalIs: 'least' }))).toBe('unclear');
});

test('a goal that the medians of both columns miss is not met, whatever the ratios of the pairs say', () => {
  const pairs = [1, 2, 3, 4, 5, 6, 7].map((value) => ({ ours: value, theirs: value }));
  const outliers = [pairs, { ours: 0.1, theirs: 100 }, { ours: 0.1, theirs: 100 }].flat();
  const throughput = comparisonOf(outliers);
  expect([throughput.ours, throughput.theirs, throughput.ratio.low]).toEqual([3, 5, 1]);
  const row = { name: 'a row', unit: 'ops/s', goal: 1 };
  expect(verdictOf({ ...row, ...throughput })).toBe('unclear');
  const times = comparisonOf(
    outliers.map(({ ours, theirs }) => ({ ours: theirs, theirs: ours })),
    INVERSE,
  );
  expect(verdictOf({ ...row, ...times })).toBe('unclear');
  expect(verdictOf({ ...row, ...comparisonOf([...pairs, ...pairs]) })).toBe('met');
  expect(verdictOf({ ...row, ...comparisonOf([...pairs, ...pairs], INVERSE) })).toBe('met');
});

test('a figure that is not a number never meets its goal', () => {
  expect(verdictOf(rowOf([...NINE, Number.NaN], { goal: 1, goalIs: 'least' }))).toBe('MISSED');
  expect(verdictOf(within('writes per grant', 'writes', [...NINE, Number.NaN], 10))).toBe('MISSED');
});

test('the middle half of the ratios meets a goal that is met, and misses a goal that is missed', () => {
  const ratios = fc.array(fc.double({ min: 0.01, max: 100, noNaN: true }), { minLength: 9, maxLength: 30 });
  const goalOf = fc.record({
    goal: fc.double({ min: 0.01, max: 100, noNaN: true }),
    goalIs: fc.constantFrom('least', 'most'),
  });
  fc.assert(
    fc.property(ratios, goalOf, (all, { goal, goalIs }) => {
      const verdict = verdictOf(rowOf(all, { goal, goalIs }));
      const meeting = all.filter((ratio) => (goalIs === 'least' ? ratio >= goal : ratio <= goal)).length;
      // Interpolation may put a quartile between two ratios, one of which is on the other side of the goal.
      if (verdict === 'met') expect(meeting).toBeGreaterThanOrEqual(Math.floor(all.length * 0.75));
      if (verdict === 'MISSED') expect(meeting).toBeLessThanOrEqual(Math.ceil(all.length * 0.25));
    }),
  );
});

test('the pairs of several runs decide a goal together, by their own median and quartiles', () => {
  const goal = { goal: 2, goalIs: 'least' } as const;
  const runs = [NINE.slice(0, 3), NINE.slice(3, 6), NINE.slice(6)];
  expect(runs.map((ratios) => verdictOf(rowOf(ratios, goal)))).toEqual(['unclear', 'unclear', 'unclear']);
  const [merged] = mergeRows(runs.map((ratios, at) => [{ ...rowOf(ratios, goal), ours: at + 2 }]));
  expect(merged).toMatchObject({ ...goal, ours: 3, ratio: spreadOf(NINE) });
  expect(verdictOf(merged!)).toBe('met');
});
