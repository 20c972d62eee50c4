import type { LimitStatus } from './bucket/decide.js';
import type { DenialReason } from './bucket/conclude.js';
import { HeadgateError } from './errors.js';
import type { PausedBy } from './pause.js';

/** A denial: the limits that refused, with their level, or the pause, and how long to wait. */
export class RateLimitExceeded extends HeadgateError<'limit.exceeded' | 'limit.impossible' | 'entity.paused'> {
  readonly statuses: readonly LimitStatus[];
  readonly violations: readonly LimitStatus[];
  /** The wait after which the same ask fits; null: it never fits. */
  readonly retryAfterMs: number | null;
  readonly reason: DenialReason;
  /** The pause, if that is the reason. Code `entity.paused`: the pause has no end. */
  declare readonly paused?: PausedBy;
  /** What decided: `fallback` if the store did not answer. */
  readonly decidedBy: string;

  constructor(denial: {
    readonly statuses: readonly LimitStatus[];
    readonly violations: readonly LimitStatus[];
    readonly retryAfterMs: number | null;
    readonly reason: DenialReason;
    readonly decidedBy: string;
    readonly paused?: PausedBy;
  }) {
    super(codeOf(denial), denial.paused === undefined ? describeDenial(denial) : describePause(denial.paused));
    this.statuses = denial.statuses;
    this.violations = denial.violations;
    this.retryAfterMs = denial.retryAfterMs;
    this.reason = denial.reason;
    this.decidedBy = denial.decidedBy;
    if (denial.paused !== undefined) this.paused = denial.paused;
  }

  /** The value of an HTTP `Retry-After` header in whole seconds, rounded up; null when waiting does not help. */
  get retryAfterHeader(): string | null {
    return this.retryAfterMs === null ? null : String(Math.max(1, Math.ceil(this.retryAfterMs / 1000)));
  }
}

function codeOf({ reason, retryAfterMs }: { readonly reason: DenialReason; readonly retryAfterMs: number | null }) {
  if (reason === 'impossible') return 'limit.impossible';
  return reason === 'paused' && retryAfterMs === null ? 'entity.paused' : 'limit.exceeded';
}

function describePause({ entityId, resource, until, reason }: PausedBy): string {
  const what = resource === null ? entityId : `${entityId} on ${resource}`;
  const end = until === null ? 'until it is resumed' : `until ${until.toISOString()}`;
  return `Paused: ${what} is paused ${end}: ${reason}`;
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
