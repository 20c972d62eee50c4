import type { LimitStatus } from '../../core/bucket/decide.js';
import { errorTraits } from '../../core/error-codes.js';
import { HeadgateError } from '../../core/errors.js';
import type { Limit } from '../../core/limit.js';
import type { Decision } from '../../limiter/acquire/decision.js';
import type { AcquireRequest } from '../../limiter/acquire/request.js';
import { readChain } from '../chain.js';
import type { StoreAction } from '../define-command.js';
import { parseAmounts, parseDuration, parseLimits } from '../parse.js';
import { renderAcquire } from '../render/acquire.js';
import type { Session } from '../session.js';
import type { AcquireLevelShape, AcquireLimitShape, AcquireShape } from '../shapes.js';

interface AcquireOptions {
  readonly consume?: readonly string[];
  readonly limits?: readonly string[];
  readonly leaseTtl?: string;
  readonly hold?: boolean;
  readonly dryRun?: boolean;
}

/** A level before anything is asked of it. */
interface Level {
  readonly entityId: string;
  readonly configSource: AcquireLevelShape['configSource'];
  readonly limits: readonly Limit[];
}

interface Answer {
  readonly decision: Pick<AcquireShape, 'granted' | 'reason' | 'retryAfterMs' | 'decidedBy' | 'lease'>;
  readonly statuses: readonly LimitStatus[];
}

export const acquire: StoreAction<AcquireOptions> = async (session, [entityId = '', resource = ''], options) => {
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
  const { leaseTtl } = options;
  return {
    entityId,
    resource,
    consume: parseAmounts(options.consume),
    ...(limits === undefined ? {} : { limits }),
    ...(leaseTtl === undefined ? {} : { leaseTtlMs: parseDuration('--lease-ttl', leaseTtl) }),
  };
}

async function readLevels({ limiter }: Session, request: AcquireRequest): Promise<readonly Level[]> {
  const chain = await readChain(limiter, request.entityId);
  const levels = chain.map(async (entityId, at): Promise<Level> => {
    if (at === 0 && request.limits !== undefined) return { entityId, configSource: 'call', limits: request.limits };
    const { limits, configSource } = await limiter.config.resolve(entityId, request.resource);
    // No limits stand in the code of the command line.
    return { entityId, configSource: configSource === 'code' ? null : configSource, limits };
  });
  return Promise.all(levels);
}

async function take({ limiter }: Session, request: AcquireRequest, hold: boolean): Promise<Answer> {
  const decision = await limiter.tryAcquire(request);
  const { statuses, decidedBy, granted } = decision;
  if (!decision.granted) {
    const { reason, retryAfterMs } = decision;
    return { decision: { granted, reason, retryAfterMs, decidedBy, lease: null }, statuses };
  }
  const lease = await finish(decision, hold);
  return { decision: { granted, reason: null, retryAfterMs: null, decidedBy, lease }, statuses };
}

async function finish({ lease }: Extract<Decision, { granted: true }>, hold: boolean): Promise<AcquireShape['lease']> {
  const { id, expiresAt } = lease;
  if (hold) return { id, state: 'held', expiresAt: expiresAt?.toISOString() ?? null };
  await lease.commit();
  return { id, state: 'committed', expiresAt: null };
}

async function look({ limiter }: Session, request: AcquireRequest): Promise<Answer> {
  const statuses = await limiter.peek(request);
  const waits = statuses.map(({ retryAfterMs }) => retryAfterMs);
  const granted = statuses.every(({ exceeded }) => !exceeded);
  const impossible = waits.includes(null);
  const reason = granted ? null : impossible ? 'impossible' : 'exhausted';
  const retryAfterMs = reason === 'exhausted' ? Math.max(...waits.map(Number)) : null;
  return { decision: { granted, reason, retryAfterMs, decidedBy: 'store', lease: null }, statuses };
}

/** `idle`: how the limits stood before, also those that were not asked. */
function explainLevel(
  { entityId, configSource, limits }: Level,
  { consume = {} }: AcquireRequest,
  answer: Answer,
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
    // No status tells of an unlimited limit: it takes what is asked.
    const asked = limit.kind === 'unlimited' ? (consume[limit.name] ?? limit.cost ?? null) : null;
    return { ...known, asked, exceeded: false, retryAfterMs: 0 };
  });
  return { entityId, configSource, limits: explained };
}

function explainLimit(
  { limit, available, requested, exceeded, retryAfterMs }: LimitStatus,
  { decision: { granted, lease } }: Answer,
  dryRun: boolean,
): AcquireLimitShape {
  // The status of a take says what is left of it; of all others, what there is.
  const before = granted && !dryRun ? available + requested : available;
  const isBack = limit.kind === 'concurrent' && lease?.state !== 'held';
  const after = granted && !isBack ? before - requested : before;
  return { name: limit.name, limit: String(limit), asked: requested, before, after, exceeded, retryAfterMs };
}

function exitCodeOf({ granted, reason }: AcquireShape): number {
  if (granted) return 0;
  return errorTraits(reason === 'impossible' ? 'limit.impossible' : 'limit.exceeded').exit;
}
