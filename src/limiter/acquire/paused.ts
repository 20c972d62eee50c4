import type { ConsumeOutcome, LevelAnswer, LevelAsk, LevelRef } from '../../backend.js';
import { parsePlainResource } from '../../core/identifiers.js';
import { type PausedBy, pauseWaitMs, viewPause } from '../../core/pause.js';
import type { EpochMs } from '../../core/units.js';
import type { CachedConfig } from '../config/config-cache.js';
import { findPause, type FoundPause, laterFound } from '../config/find-pause.js';
import type { Context } from '../context.js';
import type { Ask } from './ask.js';
import type { Decision, Denied } from './decision.js';
import type { DecidedBy } from './decision-event.js';

/** The running pause with the latest end in the answers of a store; null: there is none. */
export function findPauseIn(
  levels: readonly LevelRef[],
  answers: readonly LevelAnswer[],
  nowMs: EpochMs,
): FoundPause | null {
  let found: FoundPause | null = null;
  for (const [at, { pause }] of answers.entries()) {
    const level = levels[at];
    if (level === undefined || pause === undefined) continue;
    found = laterFound(found, { entityId: level.entityId, resource: parsePlainResource(level.resource), pause }, nowMs);
  }
  return found;
}

/** The decision while a pause runs. It has no statuses, because no limit refused. */
export function denyByPause(found: FoundPause, nowMs: EpochMs, decidedBy: DecidedBy): Denied {
  const retryAfterMs = pauseWaitMs(found.pause, nowMs);
  const paused = viewFoundPause(found);
  return { granted: false, reason: 'paused', retryAfterMs, statuses: [], violations: [], decidedBy, paused };
}

export function viewFoundPause({ entityId, resource, pause }: FoundPause): PausedBy {
  return { entityId, resource, ...viewPause(pause) };
}

/** Comes before all other errors of the request: the caller of a revoked key must not find out which limits exist. */
export function denyByKnownPause(
  context: Context,
  { request, nowMs }: Ask,
  chain: readonly CachedConfig[],
  pause: FoundPause,
): Decision {
  notePause(context, request.entityId, pause);
  const isRead = chain.some((entry) => entry.entityId === pause.entityId && entry.fetchedAtMs === nowMs);
  return denyByPause(pause, nowMs, chain.some(isLastKnown) ? 'fallback' : isRead ? 'store' : 'deny-cache');
}

/** An entry that is used because the store does not answer may be from before this process ended the pause. */
export function findKnownPause(
  { knownPauses }: Context,
  chain: readonly CachedConfig[],
  nowMs: EpochMs,
): FoundPause | null {
  const pause = findPause(chain, nowMs);
  if (pause === null || !chain.some(isLastKnown)) return pause;
  return findPause(chain, nowMs, (entry, resource) => knownPauses.isEndedIn(entry, resource));
}

export function isLastKnown(entry: CachedConfig): boolean {
  return entry.isLastKnown === true;
}

/** A bucket that another process paused may be known only from the answer of the store. */
export function notePauses(
  context: Context,
  { request, nowMs }: Ask,
  levels: readonly LevelAsk[],
  outcome: ConsumeOutcome,
) {
  const { knownPauses } = context;
  if (outcome.kind === 'denied' && outcome.reason === 'paused') {
    const found = findPauseIn(levels, outcome.levels, nowMs);
    if (found !== null) notePause(context, request.entityId, { ...found, resource: request.resource });
  } else if (!knownPauses.isEmpty && request.limits === undefined && outcome.kind === 'granted') {
    // An ask shows nothing about the buckets that it did not take from.
    const seen = levels.map(({ entityId }) => entityId);
    for (const entityId of [request.entityId, ...seen]) {
      const known = knownPauses.find(entityId, request.resource);
      if (known !== undefined && seen.includes(known.entityId)) knownPauses.forget(entityId, request.resource);
    }
  }
}

/** Also for the paused entity itself: its other children may ask during an outage. */
function notePause({ knownPauses }: Context, entityId: string, found: FoundPause): void {
  knownPauses.note(entityId, found);
  if (found.entityId !== entityId) knownPauses.note(found.entityId, found);
}
