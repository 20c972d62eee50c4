import { expect, test } from 'vitest';
import { ClockOffset } from './store-clock.js';

const AT_MS = Date.parse('2027-01-15T08:00:00.500Z');

/** The offset after an answer that took this long and names an instant this far from the clock of this machine. */
function observed(offset: ClockOffset, byMs: number, tookMs = 0): number | null {
  offset.observe(new Date(AT_MS + byMs).toUTCString(), AT_MS - tookMs / 2, AT_MS + tookMs / 2);
  return offset.ms;
}

test('the offset is unknown before the first answer, and after one that names no time', () => {
  const offset = new ClockOffset();
  expect(offset.ms).toBeNull();
  offset.observe(undefined, AT_MS, AT_MS);
  expect(offset.ms).toBeNull();
  expect(offset.isInDoubt).toBe(false);
});

test('the offset is 0 while the clocks agree within a second', () => {
  const offset = new ClockOffset();
  expect(observed(offset, 1_000)).toBe(0);
  expect(observed(offset, -1_000)).toBe(0);
});

test.each([-300_000, 300_000])(
  'two answers in a row correct a clock that is off by %d ms, and it stays until it is off by a second more',
  (byMs) => {
    const offset = new ClockOffset();
    expect(observed(offset, byMs)).toBeNull();
    expect(offset.isInDoubt).toBe(true);
    expect(observed(offset, byMs)).toBe(byMs);
    expect(offset.isInDoubt).toBe(false);
    expect(observed(offset, byMs + 1_000)).toBe(byMs);
    expect(observed(offset, byMs + 2_000)).toBe(byMs);
    expect(observed(offset, byMs + 2_000)).toBe(byMs + 2_000);
    observed(offset, 0);
    expect(observed(offset, 0)).toBe(0);
  },
);

test('an answer that the next one does not confirm changes nothing, and is reported once', () => {
  const offset = new ClockOffset();
  observed(offset, 0);
  for (const byMs of [600_000, -300_000, 0, 600_000, 0]) expect(observed(offset, byMs)).toBe(0);
  expect(offset.takeNews()).toEqual({ kind: 'disregarded', byMs: 600_000 });
  expect(offset.takeNews()).toBeNull();
});

test('a correction after the first one is reported, the first one and small ones are not', () => {
  const offset = new ClockOffset();
  for (const byMs of [300_000, 300_000, 302_000, 302_000]) observed(offset, byMs);
  expect(offset.ms).toBe(302_000);
  expect(offset.takeNews()).toBeNull();
  for (const byMs of [0, 0]) observed(offset, byMs);
  expect(offset.takeNews()).toEqual({ kind: 'moved', byMs: -302_000 });
});

test('a slow answer contradicts nothing within half of its duration, and confirms or refutes no other answer', () => {
  const offset = new ClockOffset();
  expect(observed(offset, 5_000, 10_000)).toBe(0);
  observed(offset, 7_000);
  expect(observed(offset, 4_000, 10_000)).toBe(0);
  expect(offset.isInDoubt).toBe(true);
  expect(observed(offset, 7_000)).toBe(7_000);
});
