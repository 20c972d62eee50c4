import type { Awaitable, ConsumeOutcome, ConsumeRequest, LevelAsk } from '../backend.js';
import type { Amount } from '../core/decide.js';
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
import { type AcquireRequest, checkRequest, readAmounts } from './request.js';

/**
 * Asks once: chain and limits, then one consume over all levels. Answers that are at hand are not awaited, so that an
 * embedded store costs no turn of the event loop.
 */
export function attempt(context: Context, request: AcquireRequest): Promise<Decision> {
  try {
    checkRequest(request);
    request.signal?.throwIfAborted();
    const decision = decideByStore(context, request);
    return isPromise(decision)
      ? decision.then((late) => deliver(context, request, late))
      : Promise.resolve(deliver(context, request, decision));
  } catch (error) {
    return Promise.reject(error);
  }
}

/** The decision, or what the outage policy says if the store does not answer. */
function decideByStore(context: Context, request: AcquireRequest): Awaitable<Decision> {
  const nowMs = context.clock.now();
  const named = readAmounts('consume', request.consume, 0);
  try {
    const chain = context.resolver.chain(request.entityId, request.resource, nowMs);
    const decision = isPromise(chain)
      ? chain.then((resolved) => askStore(context, request, named, resolved, nowMs))
      : askStore(context, request, named, chain, nowMs);
    if (!isPromise(decision)) return decision;
    return decision.catch((error: unknown) => byPolicy(context, request, named, error, nowMs));
  } catch (error) {
    return byPolicy(context, request, named, error, nowMs);
  }
}

function byPolicy(
  context: Context,
  request: AcquireRequest,
  named: readonly Amount[],
  error: unknown,
  nowMs: EpochMs,
): Promise<Decision> {
  if (!isHeadgateError(error, 'backend.unavailable')) throw error;
  return decideWithoutStore(context, request, named, error, nowMs);
}

function askStore(
  context: Context,
  request: AcquireRequest,
  named: readonly Amount[],
  chain: readonly CachedConfig[],
  nowMs: EpochMs,
): Awaitable<Decision> {
  const levels = levelsOf(context, request, named, chain, nowMs);
  if (isPromise(levels)) return levels.then((resolved) => consume(context, request, resolved, nowMs));
  return consume(context, request, levels, nowMs);
}

/** The last step: the caller may have left meanwhile. */
function deliver(context: Context, request: AcquireRequest, decision: Decision): Decision {
  if (request.signal?.aborted === true) {
    if (decision.granted) giveBack(context, decision.lease);
    throw request.signal.reason;
  }
  if (context.options.onDecision !== null) tell(context, request, decision);
  return decision;
}

/** Limits that the cache does not know yet may have been set elsewhere: looks once more before it refuses. */
function levelsOf(
  context: Context,
  request: AcquireRequest,
  named: readonly Amount[],
  chain: readonly CachedConfig[],
  nowMs: EpochMs,
): Awaitable<readonly LevelAsk[]> {
  try {
    return buildLevels(request, named, chain, context.options, nowMs);
  } catch (error) {
    if (!chain.some(({ fetchedAtMs }) => fetchedAtMs !== nowMs)) throw error;
    return context.resolver
      .renewChain(chain, nowMs)
      .then((renewed) => buildLevels(request, named, renewed, context.options, nowMs));
  }
}

function consume(
  context: Context,
  request: AcquireRequest,
  levels: readonly LevelAsk[],
  nowMs: EpochMs,
): Awaitable<Decision> {
  const { backend, guard, namespaceId } = context;
  const { callMs, acquireMs } = context.options.timeouts;
  const timeoutMs = Math.min(callMs, acquireMs);
  const grant = { leaseId: keepsHolder(levels) ? buildLeaseId(nowMs, context.random()) : null, levels };
  guard.enter('acquire');
  let answer: Awaitable<ConsumeOutcome>;
  try {
    answer = backend.consume({ namespaceId, nowMs, timeoutMs }, grant);
  } catch (error) {
    throw guard.failed(error);
  }
  if (!isPromise(answer)) return decided(context, request, grant, guard.answered(answer), nowMs);
  // The config may have taken its time: both together stay within the time of one acquire.
  const leftMs = Math.max(1, Math.min(callMs, acquireMs - (context.clock.now() - nowMs)));
  const onLate = (outcome: ConsumeOutcome): void => {
    const decision = decisionOf(context, request, grant, outcome, 'store', nowMs);
    if (decision.granted) giveBack(context, decision.lease);
  };
  return guard
    .within(answer, { where: 'acquire', timeoutMs: leftMs, signal: request.signal, onLate })
    .then((outcome) => decided(context, request, grant, outcome, nowMs));
}

function keepsHolder(levels: readonly LevelAsk[]): boolean {
  for (const { holder } of levels) if (holder !== null) return true;
  return false;
}

function decided(
  context: Context,
  request: AcquireRequest,
  grant: ConsumeRequest,
  outcome: ConsumeOutcome,
  nowMs: EpochMs,
): Decision {
  for (let at = 0; at < grant.levels.length; at++) {
    const level = grant.levels[at];
    if (level === undefined || outcome.levels[at]?.configIsOlder !== true) continue;
    context.resolver.reread(level.entityId, request.resource, nowMs);
  }
  return decisionOf(context, request, grant, outcome, 'store', nowMs);
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
