import type { LimitStatus } from '../../core/bucket/decide.js';
import { refills } from '../../core/limit-kind.js';
import type { EpochMs } from '../../core/units.js';
import type { Denied } from '../acquire/decision.js';
import type { WaitingLine } from './waiting-line.js';

/** What the store denied, and when it was asked. */
export interface LastDenial {
  readonly denied: Denied;
  readonly askedMs: EpochMs;
}

/**
 * The limit whose line to join. A rate comes before slots, because its wait is known and slots may return at any time. Of
 * several, the one with the longest wait. null: no limit refused.
 */
export function refusalToWaitFor({ reason, violations }: Denied): LimitStatus | null {
  if (reason !== 'exhausted') return null;
  let found: LimitStatus | null = null;
  for (const status of violations) if (found === null || isLonger(status, found)) found = status;
  return found;
}

function isLonger(one: LimitStatus, other: LimitStatus): boolean {
  if (one.limit.kind !== other.limit.kind) return refills(one.limit.kind);
  return (one.retryAfterMs ?? 0) > (other.retryAfterMs ?? 0);
}

/**
 * Whether no wait until `endMs` helps: the ask is impossible, or its wait is known and longer. `refusal`: the limit to
 * wait for.
 */
export function isFinal({ denied, askedMs }: LastDenial, refusal: LimitStatus | null, endMs: EpochMs): boolean {
  if (denied.reason === 'impossible') return true;
  const isPaused = denied.reason === 'paused';
  // The wait for slots is not known: a lease may end at any time.
  if (!isPaused && (refusal === null || !refills(refusal.limit.kind))) return false;
  const waitMs = isPaused ? denied.retryAfterMs : (refusal?.retryAfterMs ?? 0);
  return waitMs === null || askedMs + waitMs > endMs;
}

/** A denial that this process decides from what it knows of the limit. */
export function denialOf(status: LimitStatus): Denied {
  const { retryAfterMs } = status;
  const statuses = [status];
  return { granted: false, reason: 'exhausted', retryAfterMs, statuses, violations: statuses, decidedBy: 'deny-cache' };
}

/** The part of a line that a waiter needs when its time is over. */
type LineAtTimeout = Pick<WaitingLine, 'isHeld' | 'refuse' | 'allServedInMs'> & {
  readonly outlook: Pick<WaitingLine['outlook'], 'lastRefusal'>;
};

/** null: the waiter joined without asking first, so it has no denial, and may ask now. */
export function denialAtTimeout(
  line: LineAtTimeout,
  tokens: number,
  last: LastDenial | null,
  nowMs: EpochMs,
): Denied | null {
  if (last !== null) return denialInLine(last, line, nowMs);
  // An ask now would take the tokens that waiters of higher priority need.
  return line.isHeld ? denialOf(line.refuse(tokens)) : null;
}

/**
 * The last denial, with its wait reduced by the time since. Another ask could fail, and the outage policy must not
 * replace a denial that is known.
 */
function denialInLine({ denied, askedMs }: LastDenial, line: LineAtTimeout, nowMs: EpochMs): Denied {
  const { lastRefusal } = line.outlook;
  const agedMs = nowMs - askedMs;
  const statuses = denied.statuses.map((status) => {
    if (!status.exceeded || status.shadow === true) return status;
    const isOfLine = status.entityId === lastRefusal.entityId && status.limit.name === lastRefusal.limit.name;
    const countedDownMs = Math.max(1, (status.retryAfterMs ?? 1) - agedMs);
    return { ...status, retryAfterMs: isOfLine && refills(status.limit.kind) ? line.allServedInMs() : countedDownMs };
  });
  const violations = statuses.filter(({ exceeded, shadow }) => exceeded && shadow !== true);
  const retryAfterMs = violations.reduce((longestMs, status) => Math.max(longestMs, status.retryAfterMs ?? 1), 1);
  return { ...denied, retryAfterMs, statuses, violations };
}
