import { expect, test } from 'vitest';
import { ClockOffset } from './clock-offset.js';

const AT_MS = Date.parse('2027-01-15T08:00:00.500Z');

/** The offset after an answer that took no time and names an instant so far from this machine's. */
function observed(offset: ClockOffset, byMs: number, tookMs = 0): number | null {
  offset.observe(new Date(AT_MS + byMs).toUTCString(), AT_MS - tookMs / 2, AT_MS + tookMs / 2);
  return offset.ms;
}

test('is unknown before the first answer, and after one that names no time', () => {
  const offset = new ClockOffset();
  expect(offset.ms).toBeNull();
  offset.observe(undefined, AT_MS, AT_MS);
  expect(offset.ms).toBeNull();
});

test('is 0 while the clocks agree within a second', () => {
  const offset = new ClockOffset();
  expect(observed(offset, 1_000)).toBe(0);
  expect(observed(offset, -1_000)).toBe(0);
});

test.each([-300_000, 300_000])(
  'corrects a clock that is off by %d ms, and stays until it is off by a second more',
  (byMs) => {
    const offset = new ClockOffset();
    expect(observed(offset, byMs)).toBe(byMs);
    expect(observed(offset, byMs + 1_000)).toBe(byMs);
    expect(observed(offset, byMs + 2_000)).toBe(byMs + 2_000);
    expect(observed(offset, 0)).toBe(0);
  },
);

test('an answer that took long corrects nothing within half of that time', () => {
  const offset = new ClockOffset();
  expect(observed(offset, 5_000, 10_000)).toBe(0);
  expect(observed(offset, 7_000, 10_000)).toBe(7_000);
});
