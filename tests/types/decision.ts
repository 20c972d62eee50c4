import type { Decision, Lease, LimitStatus } from '../../src/index.js';

/** `granted` decides which fields exist. */
export function decisionNarrows(decision: Decision<'rpm'>): Lease<'rpm'> | number | null {
  // @ts-expect-error a denial has no lease
  void decision.lease;
  // @ts-expect-error a grant has no wait
  void decision.retryAfterMs;
  if (decision.granted) {
    // @ts-expect-error a grant has no violations
    void decision.violations;
    return decision.lease;
  }
  // @ts-expect-error a denial has no lease
  void decision.lease;
  const violations: readonly LimitStatus[] = decision.violations;
  return violations.length === 0 ? null : decision.retryAfterMs;
}

/** A wait may be null, which is not a valid delay of a timer. */
export function waitMayBeNever(decision: Decision): number {
  if (decision.granted) return 0;
  // @ts-expect-error null means that no wait helps
  const waitMs: number = decision.retryAfterMs;
  return waitMs;
}

/** Each reason is a separate case. */
export function reasonsAreKnown(decision: Decision): string {
  if (decision.granted) return 'granted';
  switch (decision.reason) {
    case 'exhausted':
      return 'wait';
    case 'contended':
      return 'retry';
    case 'impossible':
      return 'never';
    case 'paused':
      return decision.paused?.reason ?? '';
    // @ts-expect-error there is no such reason
    case 'unknown':
      return 'unknown';
  }
}
