import type { Attributes, Tracer } from '@opentelemetry/api';
import type { LimiterEvent } from '../../limiter/events/limiter-event.js';

type EventOf<Type extends LimiterEvent['type']> = Extract<LimiterEvent, { readonly type: Type }>;

/**
 * Makes the span of an event that belongs to a call of the app. The listener runs within that call, so that the span is a
 * child of the span that is active there.
 */
export function traceEvent(tracer: Tracer, event: LimiterEvent, nowMs: number): void {
  if (event.type === 'decision') {
    span(tracer, 'headgate.acquire', nowMs - event.durationMs, nowMs, decisionAttributes(event));
  } else if (event.type === 'lease-end') {
    span(tracer, 'headgate.lease.end', nowMs, nowMs, endAttributes(event));
  }
}

function span(tracer: Tracer, name: string, startMs: number, endMs: number, attributes: Attributes): void {
  tracer.startSpan(name, { startTime: startMs, attributes }).end(endMs);
}

function decisionAttributes(event: EventOf<'decision'>): Attributes {
  const { granted, reason, decidedBy, priority, retryAfterMs, waitedMs, violations, paused } = event;
  return {
    ...placeOf(event),
    'headgate.outcome': granted ? 'granted' : 'denied',
    'headgate.decided_by': decidedBy,
    ...(reason === null ? {} : { 'headgate.reason': reason }),
    ...(retryAfterMs === null ? {} : { 'headgate.retry_after_ms': retryAfterMs }),
    ...(priority === undefined ? {} : { 'headgate.priority': priority }),
    ...(waitedMs === undefined ? {} : { 'headgate.waited_ms': waitedMs }),
    ...(paused === null ? {} : { 'headgate.paused_entity_id': paused.entityId }),
    ...(violations.length === 0
      ? {}
      : {
          'headgate.violated.limits': violations.map(({ limit }) => limit),
          'headgate.violated.entity_ids': violations.map(({ entityId }) => entityId),
        }),
    ...tokenAttributes(event.tokens),
  };
}

function endAttributes(event: EventOf<'lease-end'>): Attributes {
  return {
    ...placeOf(event),
    'headgate.lease_id': event.leaseId,
    'headgate.lease_end': event.how,
    ...tokenAttributes(event.tokens),
  };
}

function placeOf({ namespace, entityId, resource }: EventOf<'decision'> | EventOf<'lease-end'>): Attributes {
  return { 'headgate.namespace': namespace, 'headgate.entity_id': entityId, 'headgate.resource': resource };
}

function tokenAttributes(tokens: Readonly<Record<string, number>>): Attributes {
  return Object.fromEntries(Object.entries(tokens).map(([limit, amount]) => [`headgate.tokens.${limit}`, amount]));
}
