import type { EpochMs } from '../../../core/units.js';

const GO_DURATION = /^(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|µs|ns))+$/;
const GO_PART = /(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)/g;
const UNIT_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
  us: 0.001,
  µs: 0.001,
  ns: 0.000_001,
};

/** RFC 3339 and the three forms of an HTTP date. `Date.parse` alone finds a date in almost any text that has a number. */
const INSTANT = /^(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2,8},? )[\w :,.+-]*\d\d:\d\d/;
const ZONE = /(?:Z|GMT|UTC|[+-]\d\d:?\d\d)$/i;

/** Smaller numbers are seconds from now; larger ones are instants, in seconds, or from `FIRST_EPOCH_MS` on in milliseconds. */
const FIRST_EPOCH_SEC = 1e9;
const FIRST_EPOCH_MS = 1e10;

/**
 * The wait that a text states, in whole milliseconds, rounded up: a Go duration (`6m0s`, `12ms`), a number by its size
 * (seconds from now, an instant in seconds or in milliseconds), or an instant (RFC 3339, an HTTP date), in UTC if it names
 * no zone. null: it states none, or one that is over; -1 and 0 occur.
 */
export function parseWaitMs(text: string, nowMs: EpochMs): number | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  const number = Number(trimmed);
  if (!Number.isNaN(number)) return positive(waitOfNumber(number, nowMs));
  if (GO_DURATION.test(trimmed)) {
    const parts = Array.from(
      trimmed.matchAll(GO_PART),
      ([, amount, unit]) => Number(amount) * (UNIT_MS[unit ?? ''] ?? 0),
    );
    return positive(parts.reduce((sum, part) => sum + part, 0));
  }
  if (!INSTANT.test(trimmed)) return null;
  const zone = /^\d/.test(trimmed) ? 'Z' : ' GMT';
  return positive(Date.parse(ZONE.test(trimmed) ? trimmed : trimmed + zone) - nowMs);
}

function waitOfNumber(number: number, nowMs: EpochMs): number {
  if (number < FIRST_EPOCH_SEC) return number * 1_000;
  return (number < FIRST_EPOCH_MS ? number * 1_000 : number) - nowMs;
}

function positive(waitMs: number): number | null {
  // A multiplication such as 34.6 * 1000 may end just above the whole number.
  const whole = Math.ceil(waitMs - 1e-6);
  return Number.isFinite(whole) && whole > 0 ? whole : null;
}
