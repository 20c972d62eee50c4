import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ClockOffset } from './clock-offset.js';

const NOW_MS = 1_800_000_000_000;

/** As HTTP prints it: whole seconds, the rest cut off. */
const dateAt = (ms: number): string => new Date(ms).toUTCString();

describe('the offset of the clock', () => {
  test('is 0 until an answer came, and while the clocks agree within a second', () => {
    const offset = new ClockOffset();
    expect(offset.ms).toBe(0);
    for (const differenceMs of [-900, -400, 0, 400, 900]) {
      offset.observe(dateAt(NOW_MS + 500 + differenceMs), NOW_MS + 500, NOW_MS + 500);
      expect(offset.ms).toBe(0);
    }
  });

  test('comes within half a second and half of the time that the answer took, for any clock that is off by more', () => {
    const off = fc.oneof(fc.integer({ min: 2_000, max: 4e8 }), fc.integer({ min: -4e8, max: -2_000 }));
    fc.assert(
      fc.property(off, fc.nat(999), fc.nat(300), fc.nat(300), (offMs, phaseMs, thereMs, backMs) => {
        const offset = new ClockOffset();
        const sentMs = NOW_MS + phaseMs;
        offset.observe(dateAt(sentMs + thereMs + offMs), sentMs, sentMs + thereMs + backMs);
        expect(Math.abs(offset.ms - offMs)).toBeLessThanOrEqual(500 + (thereMs + backMs) / 2);
      }),
      { numRuns: 1_000 },
    );
  });

  test('stays while answers differ from it by no more than a second, so that time does not tremble', () => {
    const offset = new ClockOffset();
    offset.observe(dateAt(NOW_MS + 300_000), NOW_MS, NOW_MS);
    const first = offset.ms;
    expect(first).toBe(300_500);
    for (let atMs = NOW_MS; atMs < NOW_MS + 10_000; atMs += 77) {
      offset.observe(dateAt(atMs + 300_000), atMs, atMs + 20);
      expect(offset.ms).toBe(first);
    }
  });

  test('goes back to 0 once the clock was set right', () => {
    const offset = new ClockOffset();
    offset.observe(dateAt(NOW_MS - 300_000), NOW_MS, NOW_MS);
    expect(offset.ms).toBe(-299_500);
    offset.observe(dateAt(NOW_MS), NOW_MS + 100, NOW_MS + 100);
    expect(offset.ms).toBe(0);
  });

  test('learns nothing from an answer that took longer than it is off', () => {
    const offset = new ClockOffset();
    offset.observe(dateAt(NOW_MS), NOW_MS, NOW_MS + 20_000);
    expect(offset.ms).toBe(0);
  });

  test.each([undefined, '', 'soon'])('learns nothing from a date of %j', (date) => {
    const offset = new ClockOffset();
    offset.observe(date, NOW_MS, NOW_MS);
    expect(offset.ms).toBe(0);
  });
});
