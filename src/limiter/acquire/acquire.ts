import type { Awaitable, ConsumeOutcome, ConsumeRequest, LevelAsk } from '../../backend.js';
import type { LimitStatus } from '../../core/bucket/decide.js';
import { MAX_HOLDERS_OF_PORTABLE } from '../../core/bucket/portable.js';
import { BackendUnavailable, isHeadgateError, unavailableKind } from '../../core/errors.js';
import { isConsumed, refills } from '../../core/limit-kind.js';
import { amountsOfKind, tellSlots } from '../lease/lease-events.js';
import type { EpochMs } from '../../core/units.js';
import { buildLeaseId, checkEntityId, checkResource } from '../../core/identifiers.js';
import type { Ask } from './ask.js';
import type { CachedConfig } from '../config/config-cache.js';
import { type Context, endOfCall, timeLeft } from '../context.js';
import { report } from '../store-context.js';
import type { Decision } from './decision.js';
import type { DecisionEvent } from './decision-event.js';
import { emit } from '../events/emit.js';
import type { LimitAsked, LimiterEvent, LimitViolation } from '../events/limiter-event.js';
import { isPromise } from '../outage/guard.js';
import type { Lease } from '../lease/lease.js';
import { buildLevels } from './levels.js';
import { decideWithoutStore } from '../outage/outage.js';
import { CONTENDED, decisionOf, NO_ID_FREE, NO_STATUSES } from './outcome.js';
import { takeAtOnce } from './take-at-once.js';
import { findPause, type FoundPause } from '../config/find-pause.js';
import { denyByPause, findPauseIn } from './paused.js';
import { type AcquireRequest, checkRequest, readAmounts } from './request.js';

/**
 * Asks once: resolves the chain and its limits, then makes one consume over all levels. Returns the result of `finish`.
 * Synchronous answers are not awaited, so that an embedded store needs no turn of the event loop.
 */
export function attempt<T>(
  context: Context,
  request: AcquireRequest,
  wants: Ask['wants'],
  finish: (decision: Decision) => T,
): Promise<T> {
  try {
    checkRequest(request);
    request.signal?.throwIfAborted();
    const named = readAmounts('consume', request.consume, 0);
    const nowMs = context.clock.now();
    const lease = wants === 'lease' ? takeAtOnce(context, request, named, nowMs) : null;
    if (lease !== null)
      return Promise.resolve(finish({ granted: true, lease, statuses: NO_STATUSES, decidedBy: 'store' }));
    const decision = decideByStore(context, { request, named, nowMs, wants });
    return isPromise(decision)
      ? decision.then((late) => finish(deliver(request, late, context)))
      : Promise.resolve(finish(deliver(request, decision, context)));
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Decides by the outage policy, for a limiter whose store could not be opened. */
export async function attemptWithoutStore<T>(
  context: Context,
  request: AcquireRequest,
  error: unknown,
  finish: (decision: Decision) => T,
): Promise<T> {
  checkRequest(request);
  checkEntityId(request.entityId);
  checkResource(request.resource);
  const named = readAmounts('consume', request.consume, 0);
  const ask: Ask = { request, named, nowMs: context.clock.now(), wants: 'decision' };
  return finish(deliver(request, await byPolicy(context, ask, error), context));
}

/** The decision of the store, or of the outage policy if the store does not answer. */
function decideByStore(context: Context, ask: Ask): Awaitable<Decision> {
  try {
    const { request, nowMs } = ask;
    const chain = context.resolver.chain(request.entityId, request.resource, nowMs, endOfCall(context, nowMs));
    const decision = isPromise(chain)
      ? chain.then((resolved) => askStore(context, ask, resolved, timeOfConsume(context, ask)))
      : askStore(context, ask, chain, timeOfCall(context));
    return isPromise(decision) ? decision.catch((error: unknown) => byPolicy(context, ask, error)) : decision;
  } catch (error) {
    return byPolicy(context, ask, error);
  }
}

/** Contention is not an outage: the ask is denied and can be retried. No policy may grant it. */
function byPolicy(context: Context, ask: Ask, error: unknown): Awaitable<Decision> {
  if (!isHeadgateError(error, 'backend.unavailable')) throw error;
  const kind = unavailableKind(error);
  if (kind === 'closed') throw error;
  if (kind === 'contended') {
    return decisionOf(context, ask, { leaseId: null, levels: [] }, CONTENDED, 'store');
  }
  return decideWithoutStore(context, ask, error);
}

function askStore(context: Context, ask: Ask, chain: readonly CachedConfig[], timeoutMs: number): Awaitable<Decision> {
  ask.request.signal?.throwIfAborted();
  const pause = pauseIn(context, chain, ask.nowMs);
  if (pause !== null) return pausedByConfig(context, ask, chain, pause);
  if (!context.knownPauses.isEmpty && !chain.some(isLastKnown)) context.knownPauses.forget(ask.request.entityId, null);
  const levels = levelsOf(context, ask, chain);
  if (isPromise(levels)) return levels.then((resolved) => consume(context, ask, resolved, timeOfConsume(context, ask)));
  return consume(context, ask, levels, timeoutMs);
}

/** Comes before everything else that is wrong with the request: a revoked key learns nothing about the limits. */
function pausedByConfig(
  context: Context,
  { request, nowMs }: Ask,
  chain: readonly CachedConfig[],
  pause: FoundPause,
): Decision {
  context.knownPauses.note(request.entityId, pause);
  const isRead = chain.some((entry) => entry.entityId === pause.entityId && entry.fetchedAtMs === nowMs);
  return denyByPause(pause, nowMs, chain.some(isLastKnown) ? 'fallback' : isRead ? 'store' : 'deny-cache');
}

/** An entry that is used because the store does not answer may be from before this process ended the pause. */
function pauseIn({ resolver }: Context, chain: readonly CachedConfig[], nowMs: EpochMs): FoundPause | null {
  const pause = findPause(chain, nowMs);
  if (pause === null || !chain.some(isLastKnown)) return pause;
  return findPause(
    chain.filter((entry) => !isLastKnown(entry) || resolver.cache.isCurrent(entry)),
    nowMs,
  );
}

function isLastKnown(entry: CachedConfig): boolean {
  return entry.isLastKnown === true;
}

function timeOfCall({ options }: Context): number {
  return Math.min(options.timeouts.callMs, options.timeouts.acquireMs);
}

/** The timeout of the consume: together with the config read it stays within `acquireMs`. */
function timeOfConsume(context: Context, { nowMs }: Ask): number {
  return timeLeft(context, endOfCall(context, nowMs), 'acquire');
}

/** Another process may have set limits that are not in the cache yet: reads the config once more before it refuses. */
export function levelsOf(
  context: Context,
  ask: Omit<Ask, 'wants'>,
  chain: readonly CachedConfig[],
): Awaitable<readonly LevelAsk[]> {
  try {
    return buildLevels(ask, chain, context.options);
  } catch (error) {
    if (!chain.some(({ fetchedAtMs }) => fetchedAtMs !== ask.nowMs)) throw error;
    return context.resolver
      .renewChain(chain, ask.nowMs, endOfCall(context, ask.nowMs))
      .then((renewed) => buildLevels(ask, renewed, context.options));
  }
}

/** The number of random ids that are tried for one lease. The probability that an id is taken is 1 in 262,144. */
const MAX_DRAWS = 5;

function consume(
  context: Context,
  ask: Ask,
  levels: readonly LevelAsk[],
  timeoutMs: number,
  draw = 1,
): Awaitable<Decision> {
  const { backend, guard, namespaceId, tuning } = context;
  const { nowMs, request } = ask;
  const leaseId = keepsHolder(levels) ? buildLeaseId(nowMs, context.random()) : null;
  const grant = grantOf(request, leaseId, levels);
  guard.enter('acquire');
  let answer: Awaitable<ConsumeOutcome>;
  try {
    answer = backend.consume({ namespaceId, nowMs, timeoutMs, tuning, signal: request.signal }, grant);
  } catch (error) {
    throw guard.failed(error);
  }
  if (!isPromise(answer)) {
    // An answer from the deny cache does not show that the store works.
    if (!isRemembered(answer)) guard.answered(answer);
    return decided(context, ask, grant, answer, draw);
  }
  const onLate = (outcome: ConsumeOutcome): void => {
    if (outcome.kind !== 'granted') return;
    const decision = decisionOf(context, ask, grant, outcome, 'store');
    if (decision.granted) giveBack(context, decision.lease);
  };
  return guard
    .within(answer, { where: 'acquire', timeoutMs, signal: request.signal, onLate })
    .then((outcome) => decided(context, ask, grant, outcome, draw));
}

function grantOf(
  { atomic, atMost }: AcquireRequest,
  leaseId: string | null,
  levels: readonly LevelAsk[],
): ConsumeRequest {
  if (atomic !== true && atMost === undefined) return { leaseId, levels };
  return { leaseId, levels, ...(atomic === true ? { atomic } : {}), ...(atMost === undefined ? {} : { atMost }) };
}

function keepsHolder(levels: readonly LevelAsk[]): boolean {
  for (const { holder } of levels) if (holder !== null) return true;
  return false;
}

function decided(
  context: Context,
  ask: Ask,
  grant: ConsumeRequest,
  outcome: ConsumeOutcome,
  draw: number,
): Awaitable<Decision> {
  if (outcome.kind === 'id-taken') {
    if (draw < MAX_DRAWS) return consume(context, ask, grant.levels, timeOfConsume(context, ask), draw + 1);
    return decisionOf(context, ask, grant, NO_ID_FREE, 'store');
  }
  for (let at = 0; at < grant.levels.length; at++) {
    const level = grant.levels[at];
    if (level === undefined || outcome.levels[at]?.configIsOlder !== true) continue;
    context.resolver.reread(level.entityId, ask.request.resource, ask.nowMs);
  }
  if (outcome.kind === 'denied' && outcome.crowded === true) reportCrowded(context, ask);
  const decision = decisionOf(context, ask, grant, outcome, isRemembered(outcome) ? 'deny-cache' : 'store');
  notePauses(context, ask, grant.levels, outcome);
  return decision;
}

/** A bucket that another process paused may be known only from the answer of the store. */
function notePauses(context: Context, { request, nowMs }: Ask, levels: readonly LevelAsk[], outcome: ConsumeOutcome) {
  const { knownPauses } = context;
  if (outcome.kind === 'denied' && outcome.reason === 'paused') {
    const found = findPauseIn(levels, outcome.levels, nowMs);
    if (found !== null) knownPauses.note(request.entityId, { ...found, resource: request.resource });
  } else if (!knownPauses.isEmpty && request.limits === undefined && !isRemembered(outcome)) {
    knownPauses.forget(request.entityId, request.resource);
  }
}

/** The denial alone would look like ordinary contention, which a retry solves. */
function reportCrowded({ options }: Context, { request }: Ask): void {
  const { entityId, resource } = request;
  const what = `A bucket of ${entityId} on ${resource} has ${MAX_HOLDERS_OF_PORTABLE} holders, as many as it may have`;
  const advice = 'Portable leases keep their holder until they expire: use a shorter leaseTtlMs';
  report(options, new BackendUnavailable(`${what}. ${advice}`, 'contended'), 'acquire');
}

function isRemembered(outcome: ConsumeOutcome): boolean {
  return outcome.kind === 'denied' && outcome.remembered === true;
}

/** The last step: rejects if the signal aborted meanwhile. */
function deliver(request: AcquireRequest, decision: Decision, context: Context): Decision {
  if (request.signal?.aborted === true) {
    if (decision.granted) giveBack(context, decision.lease);
    throw request.signal.reason;
  }
  return decision;
}

/** Gives back, in the background, what was taken for a caller that stopped waiting. */
export function giveBack(context: Context, lease: Lease): void {
  lease.rollback().catch((error: unknown) => report(context.options, error, 'giving back after the caller left'));
}

/** Calls `onDecision` and `onEvent`. An exception that they throw does not affect the decision. */
export function tell(
  context: Context,
  request: AcquireRequest,
  decision: Decision,
  startMs: EpochMs,
  waitedMs?: number,
): void {
  const { onDecision, onEvent } = context.options;
  if (onDecision === null && onEvent === null) return;
  const event: DecisionEvent = {
    namespace: context.namespace,
    entityId: request.entityId,
    resource: request.resource,
    consume: consumeOf(request, decision),
    ...(request.priority === undefined ? {} : { priority: request.priority }),
    granted: decision.granted,
    ...(decision.granted && decision.statuses.some(({ exceeded }) => exceeded) ? { exceeded: true as const } : {}),
    ...(decision.statuses.some(({ near }) => near) ? { near: true as const } : {}),
    reason: decision.granted ? null : decision.reason,
    retryAfterMs: decision.granted ? null : decision.retryAfterMs,
    decidedBy: decision.decidedBy,
  };
  if (onEvent !== null) {
    const violations = decision.granted ? [] : decision.violations.map(violationOf);
    const durationMs = Math.max(0, context.clock.now() - startMs);
    const paused = decision.granted ? null : (decision.paused ?? null);
    const tokens = decision.granted ? amountsOfKind(decision.lease.account, isConsumed) : {};
    const limits = limitsAsked(decision);
    // A literal, because to spread the whole event takes as long as the rest of a decision in memory.
    const {
      namespace,
      entityId,
      resource,
      consume: named,
      granted,
      reason,
      retryAfterMs,
      decidedBy,
      ...others
    } = event;
    const made: LimiterEvent = {
      type: 'decision',
      namespace,
      entityId,
      resource,
      consume: named,
      granted,
      reason,
      retryAfterMs,
      decidedBy,
      limits,
      tokens,
      violations,
      paused,
      durationMs,
    };
    if (waitedMs !== undefined) Object.assign(made, { waitedMs });
    emit(context.options, Object.assign(made, others));
    if (decision.granted) tellSlots(context, decision.lease.account);
  }
  try {
    onDecision?.(event);
  } catch (error) {
    report(context.options, error, 'onDecision');
  }
}

/** The amounts of the request. Of a limit that was cut: what was taken. */
function consumeOf({ consume: amounts, atMost }: AcquireRequest, decision: Decision): Record<string, number> {
  const asked = { ...amounts } as Record<string, number>;
  const taken = atMost === undefined || !decision.granted ? undefined : decision.lease.consumed[atMost];
  return atMost === undefined || taken === undefined ? asked : { ...asked, [atMost]: taken };
}

function limitsAsked(decision: Decision): readonly LimitAsked[] {
  const { statuses, decidedBy } = decision;
  if (!decision.granted || statuses.length > 0 || decidedBy === 'open') return statuses.map(askedOf);
  // The short way of an acquire makes no statuses: it took from rates of the entity itself.
  const { entityId } = decision.lease;
  const taken = Object.entries(amountsOfKind(decision.lease.account, refills));
  return taken.map(([limit, requested]) => ({ entityId, limit, requested, exceeded: false }));
}

function askedOf({ entityId, limit, requested, exceeded }: LimitStatus): LimitAsked {
  return { entityId, limit: limit.name, requested, exceeded };
}

function violationOf({ entityId, limit, requested, available, retryAfterMs }: LimitStatus): LimitViolation {
  return { entityId, limit: limit.name, requested, available, retryAfterMs };
}
