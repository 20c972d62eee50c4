import { ValidationError } from '../../../core/errors.js';
import { type UsageWindow, windowEnd, windowStart as startOfWindow } from '../../../core/usage/usage.js';
import type { UsageRange } from '../../../limiter/api/usage-api.js';
import { drawBars } from '../../../visualize/chart.js';
import { formatCount } from '../../../visualize/format.js';
import { drawTable } from '../../../visualize/table.js';
import type { Session } from '../../run/session.js';
import type { Style } from '../../terminal/terminal.js';
import type { UsagePlotShape } from './usage-shapes.js';

/** The number of windows without `--from`: a day of hours, a month of days, a year of months. */
const WINDOWS_SHOWN = { hourly: 24, daily: 30, monthly: 12 } as const satisfies Record<UsageWindow, number>;
const MAX_WINDOWS = 1_000;

/** The start of every window of the range, from the oldest to the newest. */
export function windowStarts({ window, from, to }: UsageRange, now: Date): readonly number[] {
  const endMs = to?.getTime() ?? now.getTime() + 1;
  const firstMs = from === undefined ? startBefore(window, endMs) : startAfter(window, from.getTime());
  const starts: number[] = [];
  for (let startMs = firstMs; startMs < endMs; startMs = windowEnd(window, startMs)) {
    if (starts.length === MAX_WINDOWS) {
      throw new ValidationError('--from', `at most ${MAX_WINDOWS} ${window} windows before the end`, from);
    }
    starts.push(startMs);
  }
  if (starts.length === 0) throw new ValidationError('--to', 'later than --from by a window or more', to);
  return starts;
}

function startAfter(window: UsageWindow, fromMs: number): number {
  const startMs = startOfWindow(window, fromMs);
  return startMs < fromMs ? windowEnd(window, startMs) : startMs;
}

function startBefore(window: UsageWindow, endMs: number): number {
  let startMs = startOfWindow(window, endMs - 1);
  for (let shown = 1; shown < WINDOWS_SHOWN[window]; shown++) startMs = startOfWindow(window, startMs - 1);
  return startMs;
}

/** For each limit, and for `acquires`: the sum over all entities of the range by window. */
export async function readSeries(
  { limiter, progress }: Session,
  range: UsageRange,
  starts: readonly number[],
): Promise<ReadonlyMap<string, ReadonlyMap<number, number>>> {
  const series = new Map<string, Map<number, number>>();
  const add = (name: string, startMs: number, value: number): void => {
    const values = series.get(name) ?? new Map<number, number>();
    values.set(startMs, (values.get(startMs) ?? 0) + value);
    series.set(name, values);
  };
  const acquires = new Map<number, number>(starts.map((start) => [start, 0]));
  let read = 0;
  for await (const usage of limiter.usage.query({ ...range, limit: 1_000 })) {
    const startMs = usage.windowStart.getTime();
    for (const [name, tokens] of Object.entries(usage.tokens)) add(name, startMs, tokens);
    acquires.set(startMs, (acquires.get(startMs) ?? 0) + usage.acquires);
    read += 1;
    progress(`read ${read} records so far`);
  }
  return series.set('acquires', acquires);
}

export function renderPlot(plot: UsagePlotShape, asTable: boolean, style: Style): string {
  const { series, window } = plot;
  if (series.every(({ points }) => points.every(({ value }) => value === 0))) {
    return `No usage of ${plot.resource} by ${plot.entityId ?? 'all entities'} in this time.`;
  }
  if (asTable) {
    const points = series[0]?.points ?? [];
    const rows = points.map(({ windowStart }, at) => [
      windowLabel(windowStart, window),
      ...series.map((one) => one.points[at]?.value ?? 0),
    ]);
    return drawTable(['WINDOW (UTC)', ...series.map(({ name }) => name)], rows, style.width);
  }
  const drawn = series.filter(({ points }) => points.some(({ value }) => value !== 0));
  const empty = series.filter((one) => !drawn.includes(one)).map(({ name }) => name);
  const charts = drawn
    .map(({ name, points }) => {
      const bars = points.map(({ windowStart, value }) => ({
        label: windowLabel(windowStart, window),
        value,
        shown: formatCount(value),
      }));
      const title = `${name} of ${plot.resource}, ${plot.entityId ?? 'all entities'}, ${window} (UTC)`;
      return `${style.bold(title)}\n${drawBars(bars)}`;
    })
    .join('\n\n');
  return empty.length === 0 ? charts : `${charts}\n\nNo usage of ${empty.join(', ')} in this time.`;
}

/** The start of a window to the precision of its length: `2027-01-31 10:00`, `2027-01-31`, `2027-01`. */
export function windowLabel(start: string, window: UsageWindow): string {
  const length = { hourly: 16, daily: 10, monthly: 7 }[window];
  return start.slice(0, length).replace('T', ' ');
}
