import { formatCount, formatDuration } from '../../../src/visualize/format.js';

export { formatCount, formatDuration } from '../../../src/visualize/format.js';

/** The edge that a duration does not exceed; `Infinity`: it is above the last one; null: none is known. */
export function formatAtMost(durationMs: number | null): string {
  if (durationMs === null) return '–';
  if (durationMs === Infinity) return '> 60 s';
  return durationMs === 0 ? '< 1 ms' : `≤ ${formatDuration(durationMs)}`;
}

/** A rate with at most one decimal. */
export function formatRate(perSecond: number): string {
  return formatCount(Math.round(perSecond * 10) / 10);
}

const SHORT = new Intl.NumberFormat('en', { notation: 'compact' });

/** `12,345` as `12K`: for the axes of charts. */
export function formatShort(value: number): string {
  return SHORT.format(value);
}

/** The time of day in the reader's time zone, to the second. The Swedish form is that of ISO 8601. */
export function formatClock(atMs: number): string {
  return new Date(atMs).toLocaleTimeString('sv');
}

/** Date and time in the reader's time zone. */
export function formatTime(atMs: number): string {
  return new Date(atMs).toLocaleString('sv');
}

/** A window of usage, which begins in UTC: an hour, a day or a month. */
export function formatWindow(window: 'hourly' | 'daily' | 'monthly', start: string): string {
  const length = { hourly: 16, daily: 10, monthly: 7 }[window];
  return start.slice(0, length).replace('T', ' ');
}

/** One line of text for a value of unknown shape. */
export function formatValue(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** How long ago, at least a second. */
export function formatAge(sinceMs: number, nowMs: number): string {
  return formatDuration(Math.max(1, Math.floor((nowMs - sinceMs) / 1_000)) * 1_000);
}
