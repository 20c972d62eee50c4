import { expect, test } from 'vitest';
import { drawBars } from './chart.js';

test('bars are in proportion, and the longest has the full width', () => {
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

test('the smallest value above nothing still shows, and nothing shows nothing', () => {
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

test('what stands behind a bar can be said in other words', () => {
  expect(drawBars([{ label: 'a', value: 1000, shown: '1,000' }], 1)).toBe('a █ 1,000');
});

test('empty charts are empty', () => {
  expect(drawBars([])).toBe('');
});
