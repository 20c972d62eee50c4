import type { Awaitable, ConsumeOutcome, ConsumeRequest, LevelAsk } from '../../backend.js';
import { MAX_OPEN_LEASES } from '../../core/bucket/traces.js';
import { BackendUnavailable, isHeadgateError, unavailableKind } from '../../core/errors.js';
import { buildLeaseId, checkEntityId, checkResource } from '../../core/identifiers.js';
import type { Ask } from './ask.js';
import { acceptChain } from '../config/accept-chain.js';
import type { CachedConfig } from '../config/config-cache.js';
import { type Context, endOfCall, timeLeft } from '../context.js';
import { report } from '../store-context.js';
import type { Decision } from './decision.js';
import { isPromise } from '../outage/guard.js';
import type { Lease } from '../lease/lease.js';
import { buildLevels, unaskedParents } from './levels.js';
import { decideWithoutStore } from '../outage/outage.js';
import { CONTENDED, decisionOf, NO_ID_FREE, NO_STATUSES } from './outcome.js';
import { takeAtOnce } from './take-at-once.js';
import { denyByKnownPause, findKnownPause, isLastKnown, notePauses } from './paused.js';
import { type AcquireRequest, checkRequest, copyFields, readAmounts } from './request.js';

/** Gets the request as it was when the caller made the call. */
export type Finish<T> = (decision: Decision, request: AcquireRequest) => T;

/**
 * Asks once: resolves the chain and its limits, then makes one consume over all levels. Returns the result of `finish`.
 * Synchronous answers are not awaited, so that an embedded store needs no turn of the event loop.
 */
export function attempt<T>(
  context: Context,
  request: AcquireRequest,
  wants: Ask['wants'],
  finish: Finish<T>,
): Promise<T> {
  try {
    checkRequest(request);
    request.signal?.throwIfAborted();
    const named = readAmounts('consume', request.consume, 0);
    const nowMs = context.clock.now();
    const lease = wants === 'lease' ? takeAtOnce(context, request, named, nowMs) : null;
    if (lease !== null)
      return Promise.resolve(finish({ granted: true, lease, statuses: NO_STATUSES, decidedBy: 'store' }, request));
    const ask = { request, named, nowMs, wants };
    const decision = decideByStore(context, ask);
    if (!isPromise(decision)) return Promise.resolve(finish(deliver(request, decision, context), request));
    // The caller may change the object before the store answers. An answer that is there costs no copy.
    const kept = copyFields(request);
    ask.request = kept;
    return decision.then((late) => finish(deliver(kept, late, context), kept));
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Decides by the outage policy, for a limiter whose store could not be opened. */
export async function attemptWithoutStore<T>(
  context: Context,
  request: AcquireRequest,
  error: unknown,
  finish: Finish<T>,
): Promise<T> {
  checkRequest(request);
  checkEntityId(request.entityId);
  checkResource(request.resource);
  const named = readAmounts('consume', request.consume, 0);
  const ask: Ask = { request, named, nowMs: context.clock.now(), wants: 'decision' };
  return finish(deliver(request, await byPolicy(context, ask, error), context), request);
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
  const pause = findKnownPause(context, chain, ask.nowMs);
  if (pause !== null) return denyByKnownPause(context, ask, chain, pause);
  if (!context.knownPauses.isEmpty && !chain.some(isLastKnown)) {
    for (const { entityId } of chain) context.knownPauses.forget(entityId, null);
  }
  const levels = acceptChain(context, chain, ask.nowMs, (known) => {
    const asked = buildLevels(ask, known, context.options);
    if (asked.length < known.length) ask.unasked = unaskedParents(known, asked);
    return asked;
  });
  if (isPromise(levels)) return levels.then((resolved) => consume(context, ask, resolved, timeOfConsume(context, ask)));
  return consume(context, ask, levels, timeoutMs);
}

function timeOfCall({ options }: Context): number {
  return Math.min(options.timeouts.callMs, options.timeouts.acquireMs);
}

/** The timeout of the consume: together with the config read it stays within `acquireMs`. */
function timeOfConsume(context: Context, { nowMs }: Ask): number {
  return timeLeft(context, endOfCall(context, nowMs), 'acquire');
}

export function levelsToAsk(
  context: Context,
  ask: Omit<Ask, 'wants'>,
  chain: readonly CachedConfig[],
): Awaitable<readonly LevelAsk[]> {
  return acceptChain(context, chain, ask.nowMs, (known) => buildLevels(ask, known, context.options));
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
    if (isRemembered(answer)) guard.unasked();
    else guard.answered(answer);
    return decided(context, ask, grant, answer, draw);
  }
  if (leaseId !== null) context.heldLeases.expect(answer);
  const onLate = (outcome: ConsumeOutcome): void => {
    if (outcome.kind !== 'granted') return;
    const decision = decisionOf(context, ask, grant, outcome, 'store');
    if (decision.granted) giveBack(context, decision.lease);
  };
  return guard
    .within(answer, { where: 'acquire', timeoutMs, signal: request.signal, onLate, failureIn: nothingIfRemembered })
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

/** The denial alone would look like ordinary contention, which a retry solves. */
function reportCrowded({ options }: Context, { request }: Ask): void {
  const { entityId, resource } = request;
  const what = `A bucket of ${entityId} on ${resource} has ${MAX_OPEN_LEASES} holders, as many as it may have`;
  const advice =
    'Portable leases, and leases with leaseTtlMs, stay until they end or expire: end them, or use a shorter leaseTtlMs';
  report(options, new BackendUnavailable(`${what}. ${advice}`, 'contended'), 'acquire');
}

/** An answer from the deny cache does not show that the store works. */
function nothingIfRemembered(outcome: ConsumeOutcome): null | undefined {
  return isRemembered(outcome) ? null : undefined;
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
  // Callers that left have opened the breaker. Their slots would stay taken until they expire.
  context.guard.letThrough(() => {
    lease.rollback().catch((error: unknown) => report(context.options, error, 'giving back after the caller left'));
  });
}
