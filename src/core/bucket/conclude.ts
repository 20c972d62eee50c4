import { laterPause, type Pause, pauseWaitMs } from '../pause.js';
import type { EpochMs } from '../units.js';
import { announcedWait, type Verdict } from './decide.js';

/**
 * `exhausted`: retry after the wait. `contended`: too many writers at once, retry soon. `impossible`: more than the capacity.
 * `paused`: an operator has paused the entity or the bucket.
 */
export type DenialReason = 'exhausted' | 'contended' | 'impossible' | 'paused';

export type Conclusion =
  | { readonly granted: true }
  | { readonly granted: false; readonly reason: DenialReason; readonly retryAfterMs: number | null };

const GRANTED: Conclusion = { granted: true };

/** Denied while a level is paused, until the latest end of the pauses. Otherwise the limits decide. */
export function concludeAt(
  levels: readonly { readonly verdicts: readonly Verdict[]; readonly pause?: Pause }[],
  nowMs: EpochMs,
): Conclusion {
  let longest: Pause | null = null;
  for (const { pause } of levels) if (pause !== undefined) longest = laterPause(longest, pause);
  if (longest === null) return conclude(levels);
  return { granted: false, reason: 'paused', retryAfterMs: pauseWaitMs(longest, nowMs) };
}

/** Granted if no verdict of any level refuses, otherwise denied with the longest wait. */
export function conclude(levels: readonly { readonly verdicts: readonly Verdict[] }[]): Conclusion {
  let longestMs = 0;
  for (const { verdicts } of levels) {
    for (const verdict of verdicts) {
      if (verdict.shadow === true) continue;
      const waitMs = announcedWait(verdict);
      if (waitMs === null) return { granted: false, reason: 'impossible', retryAfterMs: null };
      if (waitMs > longestMs) longestMs = waitMs;
    }
  }
  return longestMs === 0 ? GRANTED : { granted: false, reason: 'exhausted', retryAfterMs: longestMs };
}
