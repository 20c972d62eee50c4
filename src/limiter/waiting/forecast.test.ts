import fc from 'fast-check';
import { expect, test } from 'vitest';
import { credit, effectiveTokens, waitForTokens } from '../../core/bucket/bucket.js';
import { Limit } from '../../core/limit.js';
import { MILLI } from '../../core/units.js';
import { forecastOf } from './forecast.js';

const NOW_MS = 1_800_000_000_000;

function refusal(limit: Limit, requested: number, retryAfterMs: number | null, available = 0) {
  return { entityId: 'user-1', resource: 'gpt-4', limit, available, requested, exceeded: true, retryAfterMs };
}

test('the forecast of a rate gives each waiter the instant at which the bucket has enough, or 1 ms later', () => {
  const property = fc.property(
    fc.integer({ min: 1, max: 5_000 }),
    fc.integer({ min: 1, max: 100_000 }),
    fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 30 }),
    fc.integer({ min: 0, max: 1_000_000 }),
    (refillAmount, refillPeriodMs, needs, offsetMs) => {
      const limit = Limit.custom('rps', { capacity: 10_000, refillAmount, refillPeriodMs });
      const baseMs = NOW_MS + offsetMs;
      const forecast = forecastOf(limit, () => 0);
      let tokensMilli = 0;
      const first = needs[0]!;
      const announcedMs = waitForTokens(limit, tokensMilli, baseMs, first * MILLI, baseMs);
      forecast.refuse(refusal(limit, first, announcedMs), baseMs, baseMs);
      for (const need of needs) {
        const askMs = forecast.askMs(need);
        const effective = (atMs: number) => effectiveTokens(limit, tokensMilli, credit(limit, baseMs, atMs));
        expect(effective(askMs) >= need * MILLI).toBe(true);
        expect(effective(askMs - 2) >= need * MILLI).toBe(false);
        tokensMilli -= need * MILLI;
        forecast.take(need, askMs);
      }
    },
  );
  fc.assert(property, { numRuns: 300 });
});

test('the forecast of a rate counts refunds, and is only raised by what the store shows', () => {
  const limit = Limit.perSecond('rps', 10);
  const forecast = forecastOf(limit, () => 0);
  forecast.refuse(refusal(limit, 5, 500), NOW_MS, NOW_MS);
  expect(forecast.askMs(5)).toBe(NOW_MS + 500);
  forecast.giveBack(2);
  expect(forecast.askMs(5)).toBe(NOW_MS + 300);
  forecast.see(1, NOW_MS + 100);
  expect(forecast.askMs(5)).toBe(NOW_MS + 300);
  forecast.see(4, NOW_MS + 100);
  expect(forecast.askMs(5)).toBe(NOW_MS + 200);
  forecast.fill(NOW_MS + 100);
  expect(forecast.holds(10, NOW_MS + 100)).toBe(true);
});

test('the forecast of a rate sends more asks while others are in flight only before the bucket overflows', () => {
  const limit = Limit.custom('rps', { capacity: 4, refillAmount: 1, refillPeriodMs: 100 });
  const forecast = forecastOf(limit, () => 0);
  forecast.refuse(refusal(limit, 1, 100), NOW_MS, NOW_MS);
  expect(forecast.askBesidesMs(1, 1)).toBe(NOW_MS + 500);
});

const limit = Limit.concurrent('slots', 4);

test('the forecast of slots asks again after 100 to 250 ms, or when a holder expires if that is sooner', () => {
  const property = fc.property(
    fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    fc.integer({ min: 1, max: 60_000 }),
    (random, retryAfterMs) => {
      const forecast = forecastOf(limit, () => random);
      forecast.refuse(refusal(limit, 1, retryAfterMs), NOW_MS - 20, NOW_MS);
      const pauseMs = forecast.askMs(1) - NOW_MS;
      expect(pauseMs).toBeLessThan(250);
      expect(pauseMs).toBeGreaterThanOrEqual(Math.min(100, Math.max(1, retryAfterMs - 20)));
    },
  );
  fc.assert(property);
});

test('the forecast of slots asks at once for slots that were given back, and for no more than are free', () => {
  const forecast = forecastOf(limit, () => 0);
  forecast.refuse(refusal(limit, 2, 60_000, 1), NOW_MS, NOW_MS);
  expect(forecast.holds(2, NOW_MS)).toBe(false);
  forecast.giveBack(1);
  expect([forecast.holds(2, NOW_MS), forecast.holds(3, NOW_MS)]).toEqual([true, false]);
  forecast.take(2, NOW_MS);
  expect([forecast.askMs(1), forecast.askBesidesMs(1, 1)]).toEqual([NOW_MS + 100, Number.POSITIVE_INFINITY]);
});

test('the forecast of slots does not repeat the same ask at once, however many slots a refusal shows as free', () => {
  const forecast = forecastOf(limit, () => 0);
  forecast.refuse(refusal(limit, 1, 60_000, 3), NOW_MS, NOW_MS);
  expect(forecast.askMs(1)).toBe(NOW_MS + 100);
});

test('the forecast of slots does not send a refused ask again at once, also one for 0 while too many slots are held', () => {
  const slots = Limit.concurrent('slots', 2);
  for (const reserved of [0, 1]) {
    for (const [requested, available] of [
      [0, -1],
      [1, 0],
      [2, 1],
      [1, 5],
    ] as const) {
      const forecast = forecastOf(slots, () => 0, reserved);
      forecast.refuse(refusal(slots, requested, null, available), NOW_MS, NOW_MS);
      expect(forecast.askMs(requested)).toBe(NOW_MS + 100);
    }
  }
});
