import type { ConsumeDecision, ConsumeRequest, LevelAnswer, LevelAsk, LevelRef } from '../../backend.js';
import {
  type Amount,
  amountOf,
  CONTENDED_RETRY_MS,
  type Holder,
  type LimitStatus,
  limitStatus,
  type Verdict,
} from '../../core/bucket/decide.js';
import { withAmount } from '../../core/bucket/at-most.js';
import { hasBalance } from '../../core/limit-kind.js';
import type { Ask } from './ask.js';
import type { Context } from '../context.js';
import type { ResolvedOptions } from '../options.js';
import type { Decision } from './decision.js';
import type { DecidedBy } from './decision-event.js';
import { denyByPause, findPauseIn } from './paused.js';
import { StoredLeaseAccount } from '../lease/lease-account.js';
import type { GrantedLevel } from '../lease/level-account.js';
import { PortableAccount } from '../lease/portable-account.js';
import { Lease } from '../lease/lease.js';

/** Converts the outcome of the backend to a decision. */
export function decisionOf(
  context: Context,
  { request, nowMs, wants, unasked }: Ask,
  { leaseId, levels }: ConsumeRequest,
  outcome: ConsumeDecision,
  decidedBy: DecidedBy,
): Decision {
  const granted = outcome.kind === 'granted';
  const pause = granted || outcome.reason !== 'paused' ? null : findPauseIn(levels, outcome.levels, nowMs);
  if (pause !== null) return denyByPause(pause, nowMs, decidedBy);
  const { onDecision, onEvent } = context.options;
  // `onEvent` gets every limit that was asked; `onDecision` only whether a shadow would have refused, or a limit is near.
  const hasListener = onEvent !== null || (onDecision !== null && levels.some(hasOptions));
  const needsStatuses = !granted || wants === 'decision' || hasListener;
  const statuses = needsStatuses ? statusesOf(levels, outcome.levels, request.resource, granted) : NO_STATUSES;
  if (!granted) {
    const violations = statuses.filter(({ exceeded, shadow }) => exceeded && shadow !== true);
    const { reason, retryAfterMs } = outcome;
    return { granted, reason, retryAfterMs, statuses, violations, decidedBy };
  }
  const ttlMs = request.leaseTtlMs ?? context.options.leaseTtlMs;
  const takes = taken(
    request.atMost === undefined ? levels : asCut(levels, outcome.levels, request.atMost),
    outcome.levels,
  );
  const account =
    leaseId !== null && levels.some(({ holder }) => holder?.portable !== undefined)
      ? portableAccount(context, leaseId, ttlMs, takes)
      : new StoredLeaseAccount(context, nowMs, leaseId, unasked === undefined ? takes : [...takes, ...unasked]);
  const lease = new Lease(context, account, decidedBy, ttlMs);
  context.firstStoredLease ??= lease;
  if (account.expiresAtMs !== null) context.heldLeases.add(lease);
  return { granted, lease, statuses, decidedBy };
}

function portableAccount(
  context: Context,
  leaseId: string,
  ttlMs: number,
  takes: readonly GrantedLevel[],
): PortableAccount {
  const levels = takes.map(({ asks, holder, place, ...level }) => ({
    ...level,
    granted: asks,
    refunds: holder?.rates !== null,
    place,
  }));
  const holders = takes.map(({ asks, holder }) => holder && withTaken(holder, asks));
  return new PortableAccount(context, { leaseId, ttlMs, levels }, holders);
}

/** The holder as it is stored, without amounts of limits that the level does not have or that were not taken. */
function withTaken(holder: Holder, asks: readonly Amount[]): Holder {
  const { portable } = holder;
  if (portable === undefined) return holder;
  const isOwn = ({ name }: Amount): boolean => amountOf(asks, name) !== undefined;
  const own = portable.taken.filter(isOwn);
  return { ...holder, slots: holder.slots.filter(isOwn), portable: { ...portable, taken: own } };
}

/** Too many concurrent writers within the timeout: retry soon. */
export const CONTENDED: ConsumeDecision = {
  kind: 'denied',
  reason: 'contended',
  retryAfterMs: CONTENDED_RETRY_MS,
  levels: [],
};

/** The denial when no free id was found for the lease. */
export const NO_ID_FREE: ConsumeDecision = { kind: 'denied', reason: 'contended', retryAfterMs: 1, levels: [] };

export const NO_STATUSES: readonly LimitStatus[] = [];

export function statusesOf(
  levels: readonly LevelRef[],
  answers: readonly LevelAnswer[],
  resource: string,
  granted: boolean,
): readonly LimitStatus[] {
  const perLevel = answers.map(({ verdicts }, at) =>
    verdicts.filter(isShown).map((verdict) => limitStatus(levels[at]?.entityId ?? '', resource, verdict, granted)),
  );
  return perLevel.length === 1 ? (perLevel[0] ?? []) : perLevel.flat();
}

/** An unlimited limit has no number to show: callers divide and compare what a status says. */
function isShown({ limit }: Verdict): boolean {
  return hasBalance(limit.kind);
}

/** Whether decisions have a listener. */
export function isHeard({ onDecision, onEvent }: ResolvedOptions): boolean {
  return onDecision !== null || onEvent !== null;
}

/** Whether the statuses of a grant say more to a listener than the amounts. */
function hasOptions({ asks }: LevelAsk): boolean {
  return asks.some(({ shadow, warnAt }) => shadow === true || warnAt !== undefined);
}

/** The levels with the amount that was taken of the limit that may be cut. */
function asCut(levels: readonly LevelAsk[], answers: readonly LevelAnswer[], atMost: string): readonly LevelAsk[] {
  return levels.map((level, at) => {
    const verdict = answers[at]?.verdicts.find(({ limit }) => limit.name === atMost);
    return verdict === undefined ? level : withAmount(level, atMost, verdict.requestedMilli);
  });
}

/** Keeps only the amounts that were asked: a level that does not have a limit took nothing of it. */
function taken(levels: readonly LevelAsk[], answers: readonly LevelAnswer[]): readonly GrantedLevel[] {
  let whole = true;
  for (let at = 0; at < levels.length; at++) {
    const answer = answers[at];
    if (levels[at]?.asks.length !== answer?.verdicts.length || answer?.place !== undefined) whole = false;
    if (answer?.verdicts.some(isUntaken) === true) whole = false;
  }
  if (whole) return levels;
  return levels.map((level, at) => {
    const { verdicts = [], place } = answers[at] ?? {};
    const untaken = verdicts.filter(isUntaken);
    const asks = level.asks.filter(({ name }) => isNamedIn(verdicts, name) && !isNamedIn(untaken, name));
    if (untaken.length === 0) return { ...level, asks, place };
    return { ...level, asks, place, untaken: new Set(untaken.map(({ limit }) => limit.name)) };
  });
}

function isNamedIn(verdicts: readonly Verdict[], name: string): boolean {
  return verdicts.some(({ limit }) => limit.name === name);
}

/** On a grant, a limit that does not fit is a shadow that was not taken. */
function isUntaken({ waitMs }: Verdict): boolean {
  return waitMs !== 0;
}
