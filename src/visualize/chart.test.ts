import { expect, test } from 'vitest';
import { drawBars } from './chart.js';

test('bars are proportional to their values, and the longest has the full width', () => {
  expect(
    drawBars(
      [
        { label: 'a', value: 10 },
        { label: 'bb', value: 5 },
      ],
      4,
    ),
  ).toBe('a  ████ 10\nbb ██ 5');
});

test('a chart draws a mark for the smallest value above 0, and none for 0', () => {
  const chart = drawBars(
    [
      { label: 'x', value: 1_000_000 },
      { label: 'y', value: 1 },
      { label: 'z', value: 0 },
    ],
    10,
  );
  expect(chart.split('\n')).toEqual(['x ██████████ 1000000', 'y ▏ 1', 'z  0']);
});

test('the text after a bar can be set', () => {
  expect(drawBars([{ label: 'a', value: 1000, shown: '1,000' }], 1)).toBe('a █ 1,000');
});

test('a chart without bars is an empty text', () => {
  expect(drawBars([])).toBe('');
});
