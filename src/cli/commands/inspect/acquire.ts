import { hasBalance, holdsSlots } from '../../../core/limit-kind.js';
import type { LimitStatus } from '../../../core/bucket/decide.js';
import { errorTraits } from '../../../core/error-codes.js';
import { HeadgateError } from '../../../core/errors.js';
import type { Limit } from '../../../core/limit.js';
import type { Decision } from '../../../limiter/acquire/decision.js';
import type { AcquireRequest } from '../../../limiter/acquire/request.js';
import { pausedByShape } from '../manage/pause-view.js';
import { findPaused, readChain } from './chain.js';
import { addExamples, appendValue, type Definition, onStore, type StoreAction } from '../../run/define-command.js';
import { parseAmounts, parseDuration, parseLimits } from '../../arguments/parse.js';
import type { Session } from '../../run/session.js';
import type { AcquireLevelShape, AcquireLimitShape, AcquireShape } from './acquire-shapes.js';
import { renderAcquire } from './acquire-view.js';

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
