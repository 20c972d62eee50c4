import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { concludeAt } from './bucket/conclude.js';
import {
  checkReason,
  decodePause,
  encodePause,
  FOREVER_MS,
  isForever,
  isRunning,
  laterPause,
  type Pause,
  pauseWaitMs,
  planPause,
  samePause,
} from './pause.js';

const instant = fc.integer({ min: 1, max: Date.UTC(9999, 11, 31) });
const pause: fc.Arbitrary<Pause> = fc.record({
  endMs: fc.oneof(instant, fc.constant(FOREVER_MS)),
  reason: fc.constantFrom('a', 'b'),
});

test('a pause runs until its end and not at its end', () => {
  const until = { endMs: 1_000, reason: 'r' };
  expect([isRunning(until, 999), isRunning(until, 1_000)]).toEqual([true, false]);
  expect([isRunning(null, 0), isRunning(undefined, 0)]).toEqual([false, false]);
});

test('waiting the announced time ends a pause, and 1 ms less does not', () => {
  fc.assert(
    fc.property(instant, instant, (endMs, nowMs) => {
      fc.pre(endMs > nowMs);
      const given = { endMs, reason: 'r' };
      const waitMs = pauseWaitMs(given, nowMs) ?? Number.NaN;
      expect([isRunning(given, nowMs + waitMs - 1), isRunning(given, nowMs + waitMs)]).toEqual([true, false]);
    }),
  );
});

test('a pause forever has no wait and runs at every instant of a Date but the last', () => {
  const forever = { endMs: FOREVER_MS, reason: 'r' };
  expect([isForever(forever), pauseWaitMs(forever, 5), isRunning(forever, FOREVER_MS - 1)]).toEqual([true, null, true]);
});

test('of several pauses the latest end applies, in whatever order they are made', () => {
  fc.assert(
    fc.property(fc.array(pause, { minLength: 1, maxLength: 5 }), (pauses) => {
      const applied = pauses.reduce<Pause | null>((stored, next) => planPause(stored, next).after, null);
      expect(applied?.endMs).toBe(Math.max(...pauses.map(({ endMs }) => endMs)));
      expect(pauses.toReversed().reduce<Pause | null>(laterPause, null)?.endMs).toBe(applied?.endMs);
    }),
  );
});

test('a resume removes every pause, and a repeated pause changes nothing', () => {
  fc.assert(
    fc.property(pause, (given) => {
      expect(planPause(given, null)).toEqual({ before: given, after: null });
      const { before, after } = planPause(given, given);
      expect(samePause(before, after)).toBe(true);
    }),
  );
});

test('a pause is the same after it was stored as plain data', () => {
  fc.assert(
    fc.property(pause, (given) => {
      expect(decodePause(JSON.parse(JSON.stringify(encodePause(given))))).toEqual(given);
    }),
  );
});

test.each(['', 'x'.repeat(257), 'two\nlines', '\0', '\u{d800}', 5, null, undefined])(
  'the reason %j of a pause is refused',
  (reason) => {
    expect(() => checkReason(reason)).toThrow('1 to 256 characters in one line');
  },
);

test.each(['a', 'x'.repeat(256), 'bezahlt nicht: Müller & Söhne 😀'])(
  'the reason %j of a pause is accepted',
  (reason) => {
    expect(() => checkReason(reason)).not.toThrow();
  },
);

test('a paused level denies until the latest end, whatever the limits say', () => {
  const levels = [
    { verdicts: [] },
    { verdicts: [], pause: { endMs: 50, reason: 'short' } },
    { verdicts: [], pause: { endMs: 70, reason: 'long' } },
  ];
  expect(concludeAt(levels, 20)).toEqual({ granted: false, reason: 'paused', retryAfterMs: 50 });
  expect(concludeAt(levels.slice(0, 1), 20)).toEqual({ granted: true });
});
