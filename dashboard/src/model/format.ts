export { formatCount, formatDuration } from '../../../src/visualize/format.js';

/** A rate with one decimal below 10. */
export function formatRate(perSecond: number): string {
  return perSecond < 10 && perSecond !== Math.round(perSecond) ? perSecond.toFixed(1) : String(Math.round(perSecond));
}

/** `12,345` as `12.3k`: for the axes of charts. */
export function formatShort(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)}G`;
  if (size >= 1e6) return `${trim(value / 1e6)}M`;
  if (size >= 1e3) return `${trim(value / 1e3)}k`;
  return trim(value);
}

function trim(value: number): string {
  return String(Math.round(value * 10) / 10);
}

const pad = (value: number): string => String(value).padStart(2, '0');

/** The time of day in the reader's time zone, to the second. */
export function formatClock(atMs: number): string {
  const at = new Date(atMs);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

/** Date and time in the reader's time zone. */
export function formatTime(atMs: number): string {
  const at = new Date(atMs);
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${formatClock(atMs)}`;
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

/** How long ago, to the second. */
export function formatAge(sinceMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.floor((nowMs - sinceMs) / 1_000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
