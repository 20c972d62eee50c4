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
  for (const [name, value] of lines) {
    const present = fields.get(name);
    const key = name.toLowerCase();
    if (present === undefined || present === '') fields.set(name, value);
    else if (LISTS.has(key)) fields.set(name, `${present}, ${value}`);
    else if (WAITS.has(key) && Number(value) > Number(present)) fields.set(name, value);
  }
}
