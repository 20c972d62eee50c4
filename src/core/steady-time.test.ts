import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SteadyTime, withSharedWallReading } from './steady-time.js';

const START_MS = 1_800_000_000_000;

/** A machine whose clocks a test moves separately. */
function machine() {
  const clocks = { wallMs: START_MS, monotonicMs: 5_000, uptimeMs: 900_000 };
  const pass = (ms: number): void => {
    clocks.wallMs += ms;
    clocks.monotonicMs += ms;
    clocks.uptimeMs += ms;
  };
  const sources = {
    wallMs: () => clocks.wallMs,
    monotonicMs: () => clocks.monotonicMs,
    // Whole seconds, the coarsest resolution of any system.
    uptimeMs: () => Math.floor(clocks.uptimeMs / 1_000) * 1_000,
  };
  return { clocks, pass, sources, time: new SteadyTime(sources) };
}

test('steady time begins with the wall clock and advances with the monotonic clock', () => {
  const { pass, time } = machine();
  expect(time.now()).toBe(START_MS);
  pass(1_234);
  expect(time.now()).toBe(START_MS + 1_234);
});

test('no sequence of steps of the wall clock moves steady time', () => {
  const change = fc.record({
    passMs: fc.integer({ min: 0, max: 100_000 }),
    stepMs: fc.integer({ min: -86_400_000, max: 86_400_000 }),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const { clocks, pass, time } = machine();
      let passedMs = 0;
      for (const { passMs, stepMs } of changes) {
        pass(passMs);
        passedMs += passMs;
        clocks.wallMs += stepMs;
        expect(time.now()).toBe(START_MS + passedMs);
      }
    }),
  );
});

test('a suspension that wall clock and uptime both counted is added, at the first reading after it', () => {
  const suspension = fc.integer({ min: 4_000, max: 30 * 86_400_000 });
  fc.assert(
    fc.property(fc.array(suspension, { maxLength: 10 }), (suspensions) => {
      const { clocks, time } = machine();
      let lastMs = time.now();
      for (const ms of suspensions) {
        clocks.wallMs += ms;
        clocks.uptimeMs += ms;
        const nowMs = time.now();
        expect(Math.abs(nowMs - lastMs - ms)).toBeLessThanOrEqual(1_000);
        lastMs = nowMs;
      }
    }),
  );
});

test('an uptime that jumps alone is not a suspension', () => {
  const { clocks, time } = machine();
  clocks.uptimeMs += 86_400_000;
  clocks.wallMs += 600_000;
  expect(time.now()).toBe(START_MS);
});

test('steady time reports how far the wall clock was stepped', () => {
  const { clocks, time } = machine();
  clocks.wallMs -= 600_000;
  expect(time.wallLeadMs()).toBe(-600_000);
});

test('steady time continues when a test replaces the monotonic clock by one that starts from 0', () => {
  const { clocks, pass, time } = machine();
  time.now();
  clocks.monotonicMs = 0;
  expect(time.now()).toBe(START_MS);
  pass(1_000);
  expect(time.now()).toBe(START_MS + 1_000);
});

test('readings of one millisecond share one reading of the wall clock', () => {
  let wallReadings = 0;
  let monotonicMs = 0;
  const wallMs = (): number => {
    wallReadings += 1;
    return START_MS + monotonicMs;
  };
  const sources = { wallMs, monotonicMs: () => monotonicMs, uptimeMs: () => monotonicMs };
  const time = new SteadyTime(withSharedWallReading(sources));
  for (; monotonicMs < 10; monotonicMs += 0.125) expect(time.now()).toBe(START_MS + Math.floor(monotonicMs));
  expect(wallReadings).toBe(10);
});

test('a clock that shares readings of the wall clock adds a suspension at the first reading 1 ms after it', () => {
  const { clocks, pass, sources } = machine();
  const time = new SteadyTime(withSharedWallReading(sources));
  time.now();
  clocks.wallMs += 3_600_000;
  clocks.uptimeMs += 3_600_000;
  pass(0.5);
  expect(time.now()).toBe(START_MS);
  pass(0.5);
  // Without the last millisecond, which an uptime of whole seconds does not show.
  expect(time.now()).toBe(START_MS + 3_600_000);
});
