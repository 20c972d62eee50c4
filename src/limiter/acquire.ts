import type { Awaitable, ConsumeOutcome, LevelAsk } from '../backend.js';
import { isHeadgateError } from '../core/errors.js';
import { buildLeaseId } from '../core/identifiers.js';
import type { EpochMs } from '../core/units.js';
import type { CachedConfig } from './config-cache.js';
import { type Context, report } from './context.js';
import type { Decision } from './decision.js';
import { isPromise } from './guard.js';
import type { Lease } from './lease.js';
import { buildLevels } from './levels.js';
import { decideWithoutStore } from './outage.js';
import { decisionOf } from './outcome.js';
import type { AcquireRequest } from './request.js';

/**
 * Asks once, for a request that was checked: chain and limits, then one consume over all levels.
 * Answers that are at hand are not awaited, so that an embedded store costs no turn of the event loop.
 */
export async function attempt(context: Context, request: AcquireRequest): Promise<Decision> {
  const { signal } = request;
  signal?.throwIfAborted();
  const nowMs = context.clock.now();
  let decision: Decision;
  try {
    const chained = context.resolver.chain(request.entityId, request.resource, nowMs);
    const chain = isPromise(chained) ? await chained : chained;
    const built = levelsOf(context, request, chain, nowMs);
    const levels = isPromise(built) ? await built : built;
    const answered = consume(context, request, levels, nowMs);
    decision = isPromise(answered) ? await answered : answered;
  } catch (error) {
    if (!isHeadgateError(error, 'backend.unavailable')) throw error;
    decision = await decideWithoutStore(context, request, error, nowMs);
  }
  if (signal?.aborted === true) {
    if (decision.granted) giveBack(context, decision.lease);
    throw signal.reason;
  }
  if (context.options.onDecision !== null) tell(context, request, decision);
  return decision;
}

/** Limits that the cache does not know yet may have been set elsewhere: looks once more before it refuses. */
function levelsOf(
  context: Context,
  request: AcquireRequest,
  chain: readonly CachedConfig[],
  nowMs: EpochMs,
): Awaitable<readonly LevelAsk[]> {
  try {
    return buildLevels(request, chain, context.options, nowMs);
  } catch (error) {
    if (!chain.some(({ fetchedAtMs }) => fetchedAtMs !== nowMs)) throw error;
    return context.resolver
      .renewChain(chain, nowMs)
      .then((renewed) => buildLevels(request, renewed, context.options, nowMs));
  }
}

function consume(
  context: Context,
  request: AcquireRequest,
  levels: readonly LevelAsk[],
  nowMs: EpochMs,
): Awaitable<Decision> {
  const { timeouts } = context.options;
  // The config may have taken its time: both together stay within the time of one acquire.
  const spentMs = Math.max(0, context.clock.now() - nowMs);
  const timeoutMs = Math.max(1, Math.min(timeouts.callMs, timeouts.acquireMs - spentMs));
  const leaseId = buildLeaseId(nowMs, context.random());
  const answered = context.guard.call({
    where: 'acquire',
    timeoutMs,
    signal: request.signal,
    start: () =>
      context.backend.consume({ namespaceId: context.namespaceId, nowMs, timeoutMs }, { leaseId, levels }),
    onLate: (outcome) => {
      const decision = decisionOf(context, request, leaseId, levels, outcome, 'store');
      if (decision.granted) giveBack(context, decision.lease);
    },
  });
  const decided = (outcome: ConsumeOutcome): Decision => {
    for (const [at, { configIsOlder }] of outcome.levels.entries()) {
      const level = levels[at];
      if (configIsOlder && level !== undefined) context.resolver.reread(level.entityId, request.resource, nowMs);
    }
    return decisionOf(context, request, leaseId, levels, outcome, 'store');
  };
  return isPromise(answered) ? answered.then(decided) : decided(answered);
}

/** The caller has left: what was taken for it goes back in the background. */
function giveBack(context: Context, lease: Lease): void {
  lease.rollback().catch((error: unknown) => report(context.options, error, 'giving back after the caller left'));
}

function tell(context: Context, request: AcquireRequest, decision: Decision): void {
  try {
    context.options.onDecision?.({
      namespace: context.namespace,
      entityId: request.entityId,
      resource: request.resource,
      consume: { ...request.consume } as Record<string, number>,
      granted: decision.granted,
      reason: decision.granted ? null : decision.reason,
      retryAfterMs: decision.granted ? null : decision.retryAfterMs,
      decidedBy: decision.decidedBy,
    });
  } catch (error) {
    report(context.options, error, 'onDecision');
  }
}
