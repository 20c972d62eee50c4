import { ValidationError } from '../../core/errors.js';
import { checkLimits, Limit } from '../../core/limit.js';
import type { Amounts } from '../../limiter/acquire/request.js';

/** `-l rpm:100/min -l slots:4/concurrent`; undefined if the option is missing. */
export function parseLimits(texts: readonly string[] | undefined): readonly Limit[] | undefined {
  const limits = texts?.map((text) => Limit.parse(text));
  if (limits !== undefined) checkLimits('-l', limits);
  return limits;
}

/** `-c rpm=1 -c tpm=500`. */
export function parseAmounts(texts: readonly string[] = []): Amounts {
  const amounts = new Map<string, number>();
  for (const text of texts) {
    const { name, amount } = /^(?<name>[^=]+)=(?<amount>\d+)$/.exec(text)?.groups ?? {};
    if (name === undefined) throw new ValidationError('-c', 'a limit and a whole amount such as rpm=1', text);
    if (amounts.has(name)) throw new ValidationError('-c', `given once for ${name}`, text);
    amounts.set(name, Number(amount));
  }
  // An assignment would fail for a limit called `__proto__`.
  return Object.fromEntries(amounts);
}

/** `500`, as a whole number. */
export function parseWhole(flag: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new ValidationError(flag, 'a whole number', text);
  return Number(text);
}

const MAX_PORT = 65_535;

/** `8700`. `least` is 0 where the operating system may choose the port. */
export function parsePort(flag: string, text: string, least: 0 | 1): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : -1;
  if (port < least || port > MAX_PORT) throw new ValidationError(flag, `a port from ${least} to ${MAX_PORT}`, text);
  return port;
}

const UNITS_MS = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['sec', 1_000],
  ['min', 60_000],
  ['h', 3_600_000],
  ['hour', 3_600_000],
  ['d', 86_400_000],
  ['day', 86_400_000],
]);

/** `90s`, `5min`, `2hour`; undefined if the text is not a duration. */
function readDuration(text: string): number | undefined {
  const { count, unit } = /^(?<count>\d{1,9})(?<unit>[a-z]+)$/.exec(text)?.groups ?? {};
  const unitMs = UNITS_MS.get(unit ?? '');
  return unitMs === undefined ? undefined : Number(count) * unitMs;
}

export function parseDuration(flag: string, text: string): number {
  const durationMs = readDuration(text);
  if (durationMs === undefined) throw new ValidationError(flag, 'a duration such as 90s, 5min or 2hour', text);
  return durationMs;
}

const ISO = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?<zone>Z|[+-]\d{2}:\d{2})?)?$/;

/** Reads an ISO 8601 date or time, in UTC unless it names a zone, or a duration before now. */
export function parseInstant(flag: string, text: string, now: Date): Date {
  const agoMs = readDuration(text);
  const instant = agoMs === undefined ? readIso(text) : new Date(now.getTime() - agoMs);
  if (instant !== undefined && !Number.isNaN(instant.getTime())) return instant;
  throw new ValidationError(
    flag,
    'a UTC time such as 2027-01-31 or 2027-01-31T10:00, or a duration before now such as 6hour',
    text,
  );
}

function readIso(text: string): Date | undefined {
  const match = isDay(text.slice(0, 10)) ? ISO.exec(text) : null;
  if (match === null) return undefined;
  // JavaScript reads a time without a zone as local time; windows of usage are in UTC.
  const needsZone = text.includes('T') && match.groups?.['zone'] === undefined;
  return new Date(needsZone ? `${text}Z` : text);
}

/** JavaScript reads 30 February as 2 March. */
function isDay(text: string): boolean {
  const day = new Date(text);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** `{"tier":"gold"}`. */
export function parseMetadata(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported below, with the same message as for JSON that is not an object.
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new ValidationError('--metadata', `a JSON object such as '{"tier":"gold"}'`, text);
}
