import { expect, test } from 'vitest';
import { evaluate } from './arithmetic.js';

test.each([
  ['2 + 3 * 4', 14],
  ['(2 + 3) * 4 / 10', 2],
  ['10 - 2 - 3', 5],
  ['12 / 2 / 3', 2],
  ['units * 0.5', 3],
])('the formula %s has the value %d', (formula, value) => {
  expect(evaluate(formula, { units: 6 })).toBe(value);
});

test.each(['', 'unknown + 1', '(1', '1 )', '1 1', '1 +', '2 ** 3'])('the formula %j is refused', (formula) => {
  expect(() => evaluate(formula, { units: 6 })).toThrow(SyntaxError);
});
