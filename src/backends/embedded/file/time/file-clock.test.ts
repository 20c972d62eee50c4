import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FileClock, type TimeMark } from './file-clock.js';

const START_MS = 1_800_000_000_000;
const DAY_MS = 86_400_000;

/** One host with one file: all processes read the same clocks, and store their time in the file. */
function host() {
  const times = { wallMs: START_MS, monotonicMs: 40_000, uptimeMs: 40_000, bootId: 'first' };
  let mark: TimeMark | null = null;
  const pass = (ms: number): void => {
    times.wallMs += ms;
    times.monotonicMs += ms;
    times.uptimeMs += ms;
  };
  const start = () => {
    const clock = new FileClock({
      wallMs: () => times.wallMs,
      monotonicMs: () => times.monotonicMs,
      uptimeMs: () => times.uptimeMs,
      hostMs: () => times.monotonicMs,
      bootId: times.bootId,
    });
    let reported = clock.follow(mark);
    return {
      now: () => clock.now(),
      /** How far the wall clock was ahead, if that was reported since the last call. */
      takeReport: () => {
        const report = reported;
        reported = null;
        return report;
      },
      /** One write. */
      use: () => {
        reported = clock.follow(mark) ?? reported;
        const next = clock.mark();
        if (mark === null || next.timeMs >= mark.timeMs) mark = next;
      },
    };
  };
  /** The largest time in the file. */
  const fileMs = (): number => mark?.timeMs ?? 0;
  return { times, pass, start, fileMs };
}

describe('opening a file', () => {
  test('a process trusts the wall clock when the file is new or was idle for a day', () => {
    const { pass, start } = host();
    const first = start();
    first.use();
    expect(first.now()).toBe(START_MS);
    pass(DAY_MS);
    expect(start().now()).toBe(START_MS + DAY_MS);
  });

  test.each([-600_000, 600_000])(
    'a process follows the processes that use the file, although the wall clock was set by %d ms meanwhile, and reports that',
    (stepMs) => {
      const { times, pass, start } = host();
      start().use();
      pass(5_000);
      times.wallMs += stepMs;
      const late = start();
      expect(late.now()).toBe(START_MS + 5_000);
      expect(late.takeReport()).toBe(stepMs);
      late.use();
      expect(late.takeReport()).toBeNull();
    },
  );

  test("a process trusts the wall clock after a restart of the machine, even when the host's clock restarted too", () => {
    const { times, pass, start } = host();
    start().use();
    times.wallMs += DAY_MS;
    times.bootId = 'second';
    pass(1_000);
    expect(start().now()).toBe(START_MS + DAY_MS + 1_000);
  });

  test('a process continues from the largest time in the file when the wall clock is behind it', () => {
    const { times, pass, start } = host();
    start().use();
    pass(DAY_MS);
    times.wallMs = START_MS - 600_000;
    const late = start();
    expect([late.now(), late.takeReport()]).toEqual([START_MS, -600_000]);
    pass(7);
    expect(late.now()).toBe(START_MS + 7);
  });
});

describe('using an open file', () => {
  test('the time of a file includes a suspension of the machine', () => {
    const { times, start } = host();
    const process = start();
    process.use();
    times.wallMs += 3_600_000;
    times.uptimeMs += 3_600_000;
    expect(process.now()).toBe(START_MS + 3_600_000);
  });

  test('the time of a file catches up with a wall clock that is an hour ahead by 2 ms a second', () => {
    const { times, pass, start } = host();
    const process = start();
    times.wallMs += 3_600_000;
    process.use();
    expect(process.takeReport()).toBe(3_600_000);
    const passSeconds = (seconds: number): void => {
      for (let n = 0; n < seconds; n++) {
        pass(1_000);
        process.use();
      }
    };
    passSeconds(100);
    expect(process.now() - START_MS).toBe(100_200);
    passSeconds(1_900_000);
    expect(Math.abs(process.now() - times.wallMs)).toBeLessThanOrEqual(1_000);
  });

  test('a process follows another process that is ahead', () => {
    const { times, pass, start } = host();
    const idle = start();
    times.wallMs += 500;
    const ahead = start();
    ahead.use();
    pass(10);
    idle.use();
    expect(idle.now()).toBe(ahead.now());
  });
});

const happening = fc.oneof(
  fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 50_000 }) }),
  fc.record({ kind: fc.constant('step' as const), ms: fc.integer({ min: -DAY_MS, max: DAY_MS }) }),
  fc.record({ kind: fc.constant('suspend' as const), ms: fc.integer({ min: 5_000, max: DAY_MS }) }),
  fc.record({ kind: fc.constant('start' as const), ms: fc.constant(0) }),
);

test('a step of the wall clock moves the time of a file in use by at most a second, plus 2 ms for each second that passes', () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 60 }), (happenings) => {
      const { times, pass, start, fileMs } = host();
      const processes = [start(), start()];
      let realMs = START_MS;
      const counts = { pass: 0, step: 0, suspend: 0, start: 0 };
      for (const { kind, ms } of happenings) {
        counts[kind] += 1;
        if (kind === 'pass') pass(ms);
        else if (kind === 'step') times.wallMs += ms;
        else if (kind === 'suspend') {
          times.wallMs += ms;
          times.uptimeMs += ms;
        } else processes[counts.start % 2] = start();
        if (kind !== 'step') realMs += ms;
        for (const process of processes) process.use();
        const gainedMs = fileMs() - realMs;
        expect(gainedMs).toBeLessThanOrEqual(1_000 * counts.step + (realMs - START_MS) / 500);
        expect(gainedMs).toBeGreaterThanOrEqual(-1_000 * counts.step - counts.start);
      }
    }),
  );
});
