import { drawBars } from '../../visualize/chart.js';
import { formatCount } from '../../visualize/format.js';
import { drawFields, drawTable } from '../../visualize/table.js';
import { moreLine } from '../paging.js';
import type { ListShape, UsagePlotShape, UsageShape, UsageSummaryShape } from '../shapes.js';
import type { Style } from '../terminal.js';

type Window = UsageShape['window'];

/** As much of an instant as tells windows apart: `2027-01-31 10:00`, `2027-01-31`, `2027-01`. */
function windowLabel(start: string, window: Window): string {
  const length = { hourly: 16, daily: 10, monthly: 7 }[window];
  return start.slice(0, length).replace('T', ' ');
}

export function renderUsage(list: ListShape<UsageShape>, style: Style): string {
  if (list.items.length === 0) return 'No usage.';
  const names = [...new Set(list.items.flatMap(({ tokens }) => Object.keys(tokens)))];
  const rows = list.items.map(({ entityId, window, windowStart, tokens, acquires, expired }) => [
    windowLabel(windowStart, window),
    entityId,
    ...names.map((name) => tokens[name] ?? 0),
    acquires,
    expired,
  ]);
  const table = drawTable(['WINDOW (UTC)', 'ENTITY', ...names, 'ACQUIRES', 'EXPIRED'], rows, style.width);
  return table + moreLine(list, style);
}

export function renderSummary(summary: UsageSummaryShape): string {
  const { entityId, resource, window, from, to, count, total, average, acquires, expired } = summary;
  const who = entityId ?? 'all entities';
  if (count === 0) return `No usage of ${resource} by ${who}.`;
  const fields = drawFields([
    ['resource', resource],
    ['entity', who],
    ['from', from === null ? '-' : minutes(from)],
    ['to', to === null ? '-' : minutes(to)],
    ['windows', `${formatCount(count)} ${window} with usage`],
    ['acquires', formatCount(acquires)],
    ['expired', `${formatCount(expired)} leases`],
  ]);
  const rows = Object.entries(total).map(([name, tokens]) => [name, tokens, average[name] ?? 0]);
  if (rows.length === 0) return fields;
  return `${fields}\n\n${drawTable(['LIMIT', 'TOTAL', 'AVERAGE PER WINDOW'], rows)}`;
}

function minutes(instant: string): string {
  return `${instant.slice(0, 16).replace('T', ' ')}Z`;
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
  return empty.length === 0 ? charts : `${charts}\n\nNothing of ${empty.join(', ')} in this time.`;
}
