import type { PausedBy, PauseView } from '../../../core/pause.js';
import { formatInstant } from '../../../visualize/format.js';
import type { PausedByShape, PauseShape } from '../../run/common-shapes.js';

/** null: there is no pause, or it has ended. */
export function pauseShape(paused: PauseView | undefined, now: Date): PauseShape | null {
  if (paused === undefined || (paused.until !== null && paused.until <= now)) return null;
  return { until: paused.until?.toISOString() ?? null, reason: paused.reason };
}

export function pausedByShape({ entityId, resource, until, reason }: PausedBy): PausedByShape {
  return { entityId, resource, until: until?.toISOString() ?? null, reason };
}

/** `until 2027-01-31 10:00:00Z: the vendor asked for it`. */
export function describePause({ until, reason }: PauseShape): string {
  const end = until === null ? 'until it is resumed' : `until ${formatInstant(new Date(until))}`;
  return `${end}: ${reason}`;
}

/** The line of a record that has a pause; none for all others. */
export function pausedField(paused: PauseShape | null): readonly [string, string][] {
  return paused === null ? [] : [['paused', describePause(paused)]];
}
