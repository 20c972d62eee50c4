import type { HeaderLine } from './headers.js';

/** How an adapter reads and writes the header fields of an answer. */
export interface ResponseFields {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
}

const LISTS = new Set(['ratelimit', 'ratelimit-policy']);
const WAITS = new Set(['retry-after', 'retry-after-ms']);

/**
 * Adds our header fields to those that an origin or another limiter has set: lists are joined, of two waits the longer
 * counts, and a triple that describes another limit stays.
 */
export function addFields(fields: ResponseFields, lines: readonly HeaderLine[]): void {
  const hasLongerWait = presentWaitMs(fields) >= waitMsIn(lines);
  for (const [name, value] of lines) {
    const present = fields.get(name);
    const key = name.toLowerCase();
    // Both forms of the wait come from one limiter, or they would contradict each other.
    if (WAITS.has(key)) {
      if (!hasLongerWait) fields.set(name, value);
    } else if (present === undefined || present === '') fields.set(name, value);
    else if (LISTS.has(key)) fields.set(name, `${present}, ${value}`);
  }
}

/** Header names have no case, and those of an object may be written in any. */
export function nameIn(headers: object, name: string): string {
  return Object.keys(headers).find((present) => present.toLowerCase() === name.toLowerCase()) ?? name;
}

function waitMsIn(lines: readonly HeaderLine[]): number {
  return Number(lines.find(([name]) => name === 'retry-after-ms')?.[1] ?? 0);
}

/** A wait that cannot be read stays: it is endless here. -1: there is none. */
function presentWaitMs(fields: ResponseFields): number {
  const seconds = fields.get('Retry-After') ?? '';
  const ms = fields.get('retry-after-ms') ?? '';
  return Math.max(seconds === '' ? -1 : msOf(seconds), ms === '' ? -1 : readable(Number(ms)));
}

/** `Retry-After` states seconds, or an instant. */
function msOf(retryAfter: string): number {
  const seconds = Number(retryAfter);
  return readable(Number.isNaN(seconds) ? Date.parse(retryAfter) - Date.now() : seconds * 1_000);
}

function readable(ms: number): number {
  return Number.isNaN(ms) ? Number.POSITIVE_INFINITY : ms;
}
