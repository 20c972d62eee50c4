/**
 * The instant of a time in UTC such as `2026-11-16T14:00` or `2026-11-16`; undefined: no time. A text that is no time is
 * returned as it is, because the server says what is wrong with it.
 */
export function instantOf(text: string): string | undefined {
  if (text === '') return undefined;
  // JavaScript reads a time without a zone as local time, but a date as UTC.
  const atMs = Date.parse(/T[\d:.]+$/.test(text) ? `${text}Z` : text);
  return Number.isNaN(atMs) ? text : new Date(atMs).toISOString();
}
