import type { LimitStatus } from './bucket/decide.js';
import { HeadgateError } from './errors.js';

/** A denial: the limits that refused, with their level, and how long to wait. */
export class RateLimitExceeded extends HeadgateError<'limit.exceeded' | 'limit.impossible'> {
  readonly statuses: readonly LimitStatus[];
  readonly violations: readonly LimitStatus[];
  /** The wait after which the same ask fits; null: it never fits. */
  readonly retryAfterMs: number | null;
  readonly reason: 'exhausted' | 'contended' | 'impossible';
  /** What decided: `fallback` if the store did not answer. */
  readonly decidedBy: string;

  constructor(denial: {
    readonly statuses: readonly LimitStatus[];
    readonly violations: readonly LimitStatus[];
    readonly retryAfterMs: number | null;
    readonly reason: 'exhausted' | 'contended' | 'impossible';
    readonly decidedBy: string;
  }) {
    super(denial.reason === 'impossible' ? 'limit.impossible' : 'limit.exceeded', describeDenial(denial));
    this.statuses = denial.statuses;
    this.violations = denial.violations;
    this.retryAfterMs = denial.retryAfterMs;
    this.reason = denial.reason;
    this.decidedBy = denial.decidedBy;
  }

  /** The value of an HTTP `Retry-After` header in whole seconds, rounded up; null when waiting does not help. */
  get retryAfterHeader(): string | null {
    return this.retryAfterMs === null ? null : String(Math.max(1, Math.ceil(this.retryAfterMs / 1000)));
  }
}

function describeDenial(denial: {
  readonly violations: readonly LimitStatus[];
  readonly retryAfterMs: number | null;
  readonly reason: string;
}): string {
  const causes = denial.violations.map(
    (v) => `${String(v.limit)} of ${v.entityId} on ${v.resource} has ${v.available} left, ${v.requested} asked`,
  );
  const subject = causes.length > 0 ? causes.join('; ') : 'too many writers at once';
  const advice =
    denial.retryAfterMs === null
      ? 'waiting does not help: it is more than the limit can ever hold'
      : `retry in ${denial.retryAfterMs} ms`;
  return `Rate limit exceeded: ${subject}; ${advice}`;
}
