import type { LimitStatus } from '../../core/bucket/decide.js';
import { isConsumed, refills } from '../../core/limit-kind.js';
import type { EpochMs } from '../../core/units.js';
import type { Context } from '../context.js';
import { emit } from '../events/emit.js';
import type { LimitAsked, LimiterEvent, LimitViolation } from '../events/limiter-event.js';
import { amountsOfKind, emitSlots } from '../lease/lease-events.js';
import { callListener, report } from '../store-context.js';
import type { DecisionEvent } from './decision-event.js';
import type { Decision } from './decision.js';
import type { AcquireRequest } from './request.js';

/** Calls `onDecision` and `onEvent`. An exception that they throw does not affect the decision. */
export function emitDecision(
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
  if (onEvent !== null) emitDecisionMade(context, event, decision, startMs, waitedMs);
  if (onDecision !== null) callListener(onDecision, [event], (error) => report(context.options, error, 'onDecision'));
}

function emitDecisionMade(
  context: Context,
  event: DecisionEvent,
  decision: Decision,
  startMs: EpochMs,
  waitedMs: number | undefined,
): void {
  const violations = decision.granted ? [] : decision.violations.map(violationOf);
  const durationMs = Math.max(0, context.clock.now() - startMs);
  const paused = decision.granted ? null : (decision.paused ?? null);
  const tokens = decision.granted ? amountsOfKind(decision.lease.account, isConsumed) : {};
  const limits = limitsAsked(decision);
  // A literal, because to spread the whole event takes as long as the rest of a decision in memory.
  const { namespace, entityId, resource, consume: named, granted, reason, retryAfterMs, decidedBy, ...others } = event;
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
  if (decision.granted) emitSlots(context, decision.lease.account);
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
