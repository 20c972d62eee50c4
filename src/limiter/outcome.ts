import type { ConsumeOutcome, LevelAsk } from '../backend.js';
import { type LimitStatus, limitStatus } from '../core/decide.js';
import type { Context } from './context.js';
import type { DecidedBy, Decision } from './decision.js';
import { StoredLeaseAccount } from './lease-account.js';
import { Lease } from './lease.js';
import type { AcquireRequest } from './request.js';

/** What the caller gets for what the backend said. */
export function decisionOf(
  context: Context,
  request: AcquireRequest,
  leaseId: string,
  levels: readonly LevelAsk[],
  outcome: ConsumeOutcome,
  decidedBy: DecidedBy,
): Decision {
  const granted = outcome.kind === 'granted';
  const statuses: LimitStatus[] = [];
  for (let at = 0; at < outcome.levels.length; at++) {
    const entityId = levels[at]?.entityId ?? request.entityId;
    for (const verdict of outcome.levels[at]?.verdicts ?? []) {
      statuses.push(limitStatus(entityId, request.resource, verdict, granted));
    }
  }
  if (!granted) {
    const violations = statuses.filter(({ exceeded }) => exceeded);
    const { reason, retryAfterMs } = outcome;
    return { granted, reason, retryAfterMs, statuses, violations, decidedBy };
  }
  const account = new StoredLeaseAccount(leaseId, request.entityId, request.resource, taken(levels, outcome));
  const ttlMs = request.leaseTtlMs ?? context.options.leaseTtlMs;
  return { granted, lease: new Lease(context, account, decidedBy, ttlMs), statuses, decidedBy };
}

/** A bucket may lack a limit that an old config still names: what was not asked was not taken. */
function taken(levels: readonly LevelAsk[], outcome: ConsumeOutcome): readonly LevelAsk[] {
  const asked = (at: number, name: string): boolean =>
    outcome.levels[at]?.verdicts.some(({ limit }) => limit.name === name) === true;
  const whole = levels.every(({ asks }, at) => asks.length === outcome.levels[at]?.verdicts.length);
  if (whole) return levels;
  return levels.map((level, at) => ({ ...level, asks: level.asks.filter(({ name }) => asked(at, name)) }));
}
