import { formatCount, formatDuration, formatInstant } from '../../../visualize/format.js';
import { type Cell, drawTable } from '../../../visualize/table.js';
import { describeSource } from '../../limits/describe-limits.js';
import type { Style } from '../../terminal/terminal.js';
import { describePause } from '../manage/pause-view.js';
import type { AcquireLevelShape, AcquireLimitShape, AcquireShape } from './acquire-shapes.js';

/** The decision, then the reason level by level, then the outcome of the lease. */
export function renderAcquire(data: AcquireShape, style: Style): string {
  const levels = data.levels.map((level, at) => renderLevel(level, at > 0, data, style));
  return [headline(data, style), ...levels, outcome(data)].join('\n\n');
}

function headline(data: AcquireShape, style: Style): string {
  const { granted, dryRun, entityId, resource, retryAfterMs, decidedBy } = data;
  // A decision without the store must be visible as such.
  const answeredBy = decidedBy === 'store' ? '' : ` (decided by ${decidedBy}, not by the store)`;
  const verdict = granted
    ? style.green(dryRun ? 'would be granted' : 'granted')
    : style.red(dryRun ? 'would be denied' : 'denied');
  const what = `${verdict}: ${entityId} on ${resource}${answeredBy}`;
  if (granted) return what;
  const advice = retryAfterMs === null ? 'waiting does not help' : `retry in ${formatDuration(retryAfterMs)}`;
  return `${what}; ${refusers(data)}; ${advice}`;
}

function refusers({ levels, paused }: AcquireShape): string {
  if (paused !== null) {
    const what = paused.resource === null ? paused.entityId : `${paused.entityId} on ${paused.resource}`;
    return `${what} is paused ${describePause(paused)}`;
  }
  const names = levels.flatMap(({ entityId, limits }) =>
    limits.filter(({ exceeded, shadow }) => exceeded && shadow !== true).map(({ name }) => `${name} of ${entityId}`),
  );
  return names.length === 0 ? 'too many writers at once' : `refused by ${names.join(', ')}`;
}

function renderLevel(level: AcquireLevelShape, isParent: boolean, data: AcquireShape, style: Style): string {
  const { entityId, configSource, limits } = level;
  const name = style.bold(isParent ? `${entityId} (parent)` : entityId);
  if (configSource === null) return `${name}: no limits, so nothing is taken from it`;
  const title = `${name}: limits from ${describeSource(configSource, entityId, data.resource)}`;
  const rows = limits.map((limit) => renderLimit(limit, data, style));
  return `${title}\n${drawTable(['', 'LIMIT', 'BEFORE', 'ASKED', 'AFTER', ''], rows, style.width)}`;
}

function renderLimit(limit: AcquireLimitShape, data: AcquireShape, style: Style): readonly Cell[] {
  const { asked, before, after, exceeded, shadow } = limit;
  const mark =
    exceeded && shadow !== true
      ? { value: '✗', paint: style.red }
      : asked === null
        ? ' '
        : { value: '✓', paint: style.green };
  return [mark, limit.limit, before ?? '', asked ?? '', after ?? '', remark(limit, data, style)];
}

function remark(
  { asked, before, after, reserved = 0, shadow, near, exceeded, retryAfterMs }: AcquireLimitShape,
  data: AcquireShape,
  style: Style,
): Cell {
  if (asked === null) return { value: 'not asked', paint: style.dim };
  const isHeld = data.granted && !data.dryRun && asked > 0 && before !== null && before === after;
  if (!exceeded) {
    const remarks = [...(isHeld ? ['held, and given back'] : []), ...(near === true ? ['near the limit'] : [])];
    return near === true ? { value: remarks.join('; '), paint: style.yellow } : remarks.join('');
  }
  const wait = retryAfterMs === null ? 'more than it can ever give' : `fits in ${formatDuration(retryAfterMs)}`;
  const missing = formatCount(asked + reserved - (before ?? 0));
  const kept = reserved === 0 ? '' : ` (${formatCount(reserved)} must stay)`;
  const verdict = shadow === true ? 'not taken (shadow)' : 'REFUSED';
  return { value: `${verdict}: ${missing} too many${kept}, ${wait}`, paint: shadow === true ? style.dim : style.red };
}

function outcome({ granted, dryRun, lease }: AcquireShape): string {
  if (dryRun) return 'Nothing was taken: this was a dry run.';
  if (!granted || lease === null) return 'Nothing was taken at any level.';
  if (lease.state === 'committed') return 'The lease was committed: rates stay spent, slots were given back.';
  if (lease.expiresAt === null) return 'Rates stay spent. There is nothing to hold: no slots, and no --lease-ttl.';
  return `Lease ${lease.id} is held until ${formatInstant(new Date(lease.expiresAt))}; rates stay spent.`;
}
