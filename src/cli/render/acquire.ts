import { formatCount, formatDuration, formatInstant } from '../../visualize/format.js';
import { type Cell, drawTable } from '../../visualize/table.js';
import type { AcquireLevelShape, AcquireLimitShape, AcquireShape } from '../shapes.js';
import type { Style } from '../terminal.js';
import { describeSource } from './limits.js';

/** The decision, then level by level why, then what became of what was taken. */
export function renderAcquire(data: AcquireShape, style: Style): string {
  const levels = data.levels.map((level, at) => renderLevel(level, at > 0, data, style));
  return [headline(data, style), ...levels, outcome(data)].join('\n\n');
}

function headline(data: AcquireShape, style: Style): string {
  const { granted, dryRun, entityId, resource, retryAfterMs, decidedBy } = data;
  // A degraded answer is never disguised.
  const answeredBy = decidedBy === 'store' ? '' : ` (decided by ${decidedBy}, not by the store)`;
  const verdict = granted
    ? style.green(dryRun ? 'would be granted' : 'granted')
    : style.red(dryRun ? 'would be denied' : 'denied');
  const what = `${verdict}: ${entityId} on ${resource}${answeredBy}`;
  if (granted) return what;
  const advice = retryAfterMs === null ? 'waiting does not help' : `retry in ${formatDuration(retryAfterMs)}`;
  return `${what}; ${refusers(data)}; ${advice}`;
}

function refusers({ levels }: AcquireShape): string {
  const names = levels.flatMap(({ entityId, limits }) =>
    limits.filter(({ exceeded }) => exceeded).map(({ name }) => `${name} of ${entityId}`),
  );
  return names.length === 0 ? 'too many writers at once' : `refused by ${names.join(', ')}`;
}

function renderLevel(level: AcquireLevelShape, isParent: boolean, data: AcquireShape, style: Style): string {
  const { entityId, configSource, limits } = level;
  const name = style.bold(isParent ? `${entityId} (parent)` : entityId);
  if (configSource === null) return `${name}: no limits, so it is not asked`;
  const title = `${name}: limits from ${describeSource(configSource, entityId, data.resource)}`;
  const rows = limits.map((limit) => renderLimit(limit, data, style));
  return `${title}\n${drawTable(['', 'LIMIT', 'BEFORE', 'ASKED', 'AFTER', ''], rows, style.width)}`;
}

function renderLimit(limit: AcquireLimitShape, data: AcquireShape, style: Style): readonly Cell[] {
  const { asked, before, after, exceeded } = limit;
  const mark = exceeded ? { value: '✗', paint: style.red } : asked === null ? ' ' : { value: '✓', paint: style.green };
  return [mark, limit.limit, before ?? '', asked ?? '', after ?? '', remark(limit, data, style)];
}

function remark(
  { asked, before, after, exceeded, retryAfterMs }: AcquireLimitShape,
  data: AcquireShape,
  style: Style,
): Cell {
  if (asked === null) return { value: 'not asked', paint: style.dim };
  if (!exceeded)
    return data.granted && !data.dryRun && asked > 0 && before !== null && before === after
      ? 'held, and given back'
      : '';
  const wait = retryAfterMs === null ? 'more than it can ever give' : `fits in ${formatDuration(retryAfterMs)}`;
  const missing = formatCount(asked - (before ?? 0));
  return { value: `REFUSED: ${missing} too many, ${wait}`, paint: style.red };
}

function outcome({ granted, dryRun, lease }: AcquireShape): string {
  if (dryRun) return 'Nothing was taken: this was a dry run.';
  if (!granted || lease === null) return 'Nothing was taken at any level.';
  if (lease.state === 'committed') return 'The lease was committed: rates stay spent, slots were given back.';
  if (lease.expiresAt === null) return 'Rates stay spent. There is nothing to hold: no slots, and no --lease-ttl.';
  return `Lease ${lease.id} is held until ${formatInstant(new Date(lease.expiresAt))}; rates stay spent.`;
}
