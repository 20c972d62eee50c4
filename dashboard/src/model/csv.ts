import type { UsageView } from '../api/types.js';
import { limitsIn, valueOf } from './usage-series.js';

/** A spreadsheet would run a cell that begins with one of these as a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: string): string {
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Usage as CSV (RFC 4180): one row for each entity and window, one column for each limit. */
export function usageCsv(usage: readonly UsageView[]): string {
  const limits = limitsIn(usage);
  const head = ['entity', 'resource', 'window', 'start', 'end', ...limits, 'acquires', 'expired'];
  const rows = usage.map((one) => [
    cell(one.entityId),
    cell(one.resource),
    one.window,
    one.windowStart,
    one.windowEnd,
    ...limits.map((name) => String(valueOf(one, name))),
    String(one.acquires),
    String(one.expired),
  ]);
  return `${[head.map(cell), ...rows].map((row) => row.join(',')).join('\r\n')}\r\n`;
}
