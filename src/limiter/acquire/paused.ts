import type { LevelAnswer, LevelRef } from '../../backend.js';
import { parsePlainResource } from '../../core/identifiers.js';
import { type PausedBy, pauseWaitMs, viewPause } from '../../core/pause.js';
import type { EpochMs } from '../../core/units.js';
import { type FoundPause, laterFound } from '../config/find-pause.js';
import type { Denied } from './decision.js';
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
