import { hasBalance, holdsSlots } from '../../../core/limit-kind.js';
import type { LimitStatus } from '../../../core/bucket/decide.js';
import { errorTraits } from '../../../core/error-codes.js';
import { HeadgateError } from '../../../core/errors.js';
import type { Limit } from '../../../core/limit.js';
import type { Decision } from '../../../limiter/acquire/decision.js';
import type { AcquireRequest } from '../../../limiter/acquire/request.js';
import { formatCount, formatDuration, formatInstant } from '../../../visualize/format.js';
import { type Cell, drawTable } from '../../../visualize/table.js';
import { describePause, pausedByShape } from '../manage/pause-view.js';
import { findPaused, readChain } from './chain.js';
import { addExamples, appendValue, type Definition, onStore, type StoreAction } from '../../run/define-command.js';
import { describeSource } from '../../limits/describe-limits.js';
import { parseAmounts, parseDuration, parseLimits } from '../../arguments/parse.js';
import type { Session } from '../../run/session.js';
import type { Style } from '../../terminal/terminal.js';
import type { AcquireLevelShape, AcquireLimitShape, AcquireShape } from './acquire-shapes.js';

export const define: Definition = (command, context) => {
  addExamples(command, [
    'acquire user-1 gpt-4 -c rpm=1 -c tpm=500',
    'acquire user-1 gpt-4 -c rpm=1 --dry-run',
    'acquire user-1 gpt-4 -c slots=1 --hold --lease-ttl 5min',
    'acquire user-1 gpt-4 -c rpm=1 -l rpm:5/min',
    'acquire user-1 gpt-4 -c tpm=500 --priority batch',
    'acquire user-1 gpt-4 -c rpm=1 -c tpm=5000 --at-most tpm',
  ])
    .option('-c, --consume <limit=amount>', 'the amount to take of a limit; can be repeated', appendValue)
    .option('-l, --limits <limit>', 'a limit that replaces the stored ones for this call; can be repeated', appendValue)
    .option('--priority <class>', 'the priority class, whose reserves must stay; by default none')
    .option('--at-most <limit>', 'the limit that may be cut to what there is, at least to 1')
    .option('--lease-ttl <duration>', 'the time until the lease expires: 5s to 7day, by default 1min')
    .option('--hold', 'keep slots until the lease expires, instead of giving them back at once')
    .option('--dry-run', 'take nothing')
    .action(onStore(context, acquire));
};

interface AcquireOptions {
  readonly consume?: readonly string[];
  readonly limits?: readonly string[];
  readonly priority?: string;
  readonly atMost?: string;
  readonly leaseTtl?: string;
  readonly hold?: boolean;
  readonly dryRun?: boolean;
}

/** The configuration of one level of the chain. */
interface Level {
  readonly entityId: string;
  readonly configSource: AcquireLevelShape['configSource'];
  readonly limits: readonly Limit[];
}

interface TriedRequest {
  readonly decision: Pick<AcquireShape, 'granted' | 'reason' | 'retryAfterMs' | 'decidedBy' | 'lease' | 'paused'>;
  readonly statuses: readonly LimitStatus[];
}

const acquire: StoreAction<AcquireOptions> = async (session, [entityId = '', resource = ''], options) => {
  const request = readRequest(entityId, resource, options);
  const { dryRun = false, hold = false } = options;
  const levels = await readLevels(session, request);
  const idle = request.limits === undefined ? await session.limiter.status(request) : [];
  const answer = dryRun ? await look(session, request) : await take(session, request, hold);
  const data: AcquireShape = {
    dryRun,
    entityId,
    resource,
    ...answer.decision,
    levels: levels.map((level) => explainLevel(level, request, answer, dryRun, idle)),
  };
  return { data, text: (style) => renderAcquire(data, style), exitCode: exitCodeOf(data) };
};

function readRequest(entityId: string, resource: string, options: AcquireOptions): AcquireRequest {
  if (options.dryRun === true && options.hold === true) {
    throw new HeadgateError('input.invalid', '--dry-run takes nothing, so that --hold has nothing to keep');
  }
  const limits = parseLimits(options.limits);
  const { leaseTtl, priority, atMost } = options;
  return {
    entityId,
    resource,
    consume: parseAmounts(options.consume),
    ...(limits === undefined ? {} : { limits }),
    ...(priority === undefined ? {} : { priority }),
    ...(atMost === undefined ? {} : { atMost }),
    ...(leaseTtl === undefined ? {} : { leaseTtlMs: parseDuration('--lease-ttl', leaseTtl) }),
  };
}

async function readLevels({ limiter }: Session, request: AcquireRequest): Promise<readonly Level[]> {
  const chain = await readChain(limiter, request.entityId);
  const levels = chain.map(async (entityId, at): Promise<Level> => {
    if (at === 0 && request.limits !== undefined) return { entityId, configSource: 'call', limits: request.limits };
    const { limits, configSource } = await limiter.config.resolve(entityId, request.resource);
    // The command line opens its limiter without limits, so that the level `code` is empty.
    return { entityId, configSource: configSource === 'code' ? null : configSource, limits };
  });
  return Promise.all(levels);
}

async function take({ limiter }: Session, request: AcquireRequest, hold: boolean): Promise<TriedRequest> {
  const decision = await limiter.tryAcquire(request);
  const { statuses, decidedBy, granted } = decision;
  if (!decision.granted) {
    const { reason, retryAfterMs } = decision;
    const paused = decision.paused === undefined ? null : pausedByShape(decision.paused);
    return { decision: { granted, reason, retryAfterMs, decidedBy, lease: null, paused }, statuses };
  }
  const lease = await finish(decision, hold);
  return { decision: { granted, reason: null, retryAfterMs: null, decidedBy, lease, paused: null }, statuses };
}

async function finish({ lease }: Extract<Decision, { granted: true }>, hold: boolean): Promise<AcquireShape['lease']> {
  const { id, expiresAt } = lease;
  if (hold) return { id, state: 'held', expiresAt: expiresAt?.toISOString() ?? null };
  await lease.commit();
  return { id, state: 'committed', expiresAt: null };
}

async function look({ limiter }: Session, request: AcquireRequest): Promise<TriedRequest> {
  const now = new Date();
  const paused = await findPaused(limiter, request, now);
  if (paused !== null) {
    const retryAfterMs = paused.until === null ? null : new Date(paused.until).getTime() - now.getTime();
    const decision = { granted: false, reason: 'paused', retryAfterMs, decidedBy: 'store', lease: null } as const;
    return { decision: { ...decision, paused }, statuses: [] };
  }
  const statuses = await limiter.peek(request);
  const refusing = statuses.filter(({ exceeded, shadow }) => exceeded && shadow !== true);
  const granted = refusing.length === 0;
  const waits = refusing.map(({ retryAfterMs }) => retryAfterMs);
  const impossible = waits.includes(null);
  const reason = granted ? null : impossible ? 'impossible' : 'exhausted';
  const retryAfterMs = reason === 'exhausted' ? Math.max(...waits.map(Number)) : null;
  return { decision: { granted, reason, retryAfterMs, decidedBy: 'store', lease: null, paused: null }, statuses };
}

/** `idle`: the status before the request of all limits, including those that it does not name. */
function explainLevel(
  { entityId, configSource, limits }: Level,
  { consume = {} }: AcquireRequest,
  answer: TriedRequest,
  dryRun: boolean,
  idle: readonly LimitStatus[],
): AcquireLevelShape {
  const of = (statuses: readonly LimitStatus[], name: string): LimitStatus | undefined =>
    statuses.find((status) => status.entityId === entityId && status.limit.name === name);
  const explained = limits.map((limit): AcquireLimitShape => {
    const status = of(answer.statuses, limit.name);
    if (status !== undefined) return explainLimit(status, answer, dryRun);
    const before = of(idle, limit.name)?.available ?? null;
    const known = { name: limit.name, limit: String(limit), before, after: before };
    // An unlimited limit has no status: it takes what is asked.
    const asked = hasBalance(limit.kind) ? null : (consume[limit.name] ?? limit.cost ?? null);
    return { ...known, asked, exceeded: false, retryAfterMs: 0 };
  });
  return { entityId, configSource, limits: explained };
}

function explainLimit(
  { limit, available, requested, reserved, shadow, near, exceeded, retryAfterMs }: LimitStatus,
  { decision: { granted, lease } }: TriedRequest,
  dryRun: boolean,
): AcquireLimitShape {
  // The status of a grant has the balance after the take; every other status has the balance before it.
  const taken = exceeded ? 0 : requested;
  const before = granted && !dryRun ? available + taken : available;
  const isGivenBack = holdsSlots(limit.kind) && lease?.state !== 'held';
  const after = granted && !isGivenBack ? before - taken : before;
  const asked = { name: limit.name, limit: String(limit), asked: requested, before, after, exceeded, retryAfterMs };
  return {
    ...asked,
    ...(reserved === undefined ? {} : { reserved }),
    ...(shadow === undefined ? {} : { shadow }),
    ...(near === undefined ? {} : { near }),
  };
}

function exitCodeOf({ granted, reason, retryAfterMs }: AcquireShape): number {
  if (granted) return 0;
  if (reason === 'paused' && retryAfterMs === null) return errorTraits('entity.paused').exit;
  return errorTraits(reason === 'impossible' ? 'limit.impossible' : 'limit.exceeded').exit;
}

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
