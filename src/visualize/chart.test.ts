import { expect, test } from 'vitest';
import { drawBars, drawTable } from './chart.js';

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

test('a table aligns text to the left and numbers to the right', () => {
  expect(
    drawTable(
      ['limit', 'left'],
      [
        ['rpm', 7],
        ['tokens', 1200],
      ],
    ),
  ).toBe('limit   left\nrpm        7\ntokens  1200');
});

test('empty charts are empty', () => {
  expect(drawBars([])).toBe('');
});
