import { ValidationError } from './errors.js';
import type { EpochMs } from './units.js';

/** While a pause runs, nothing is taken. What leases took before can still be settled, released and given back. */
export interface Pause {
  /** The first instant at which asks are decided again; `FOREVER_MS` for a pause that only `resume` ends. */
  readonly endMs: EpochMs;
  /** The text that callers get with the denial. */
  readonly reason: string;
}

/**
 * The end of a pause without an end: the last instant that a `Date` can represent. It is a number, so that one comparison
 * decides both kinds of pause, also in a condition of a store.
 */
export const FOREVER_MS: EpochMs = 8_640_000_000_000_000;

const MAX_REASON = 256;

/** Control characters would break lines of output, and no store keeps a lone surrogate. */
const ILLEGAL = /\p{Cc}|\p{Cs}/u;

export function isForever({ endMs }: Pick<Pause, 'endMs'>): boolean {
  return endMs >= FOREVER_MS;
}

/** Whether the pause stops asks at this time. */
export function isRunning(pause: Pause | null | undefined, nowMs: EpochMs): pause is Pause {
  return pause !== null && pause !== undefined && pause.endMs > nowMs;
}

/** The wait until the pause ends; null: it never ends by itself. */
export function pauseWaitMs(pause: Pause, nowMs: EpochMs): number | null {
  return isForever(pause) ? null : Math.max(1, pause.endMs - nowMs);
}

/** Of several pauses the one with the latest end applies. Of two with the same end, the later one gives the reason. */
export function laterPause(stored: Pause | null | undefined, added: Pause): Pause {
  return stored !== null && stored !== undefined && stored.endMs > added.endMs ? stored : added;
}

/** A pause as callers see it. */
export interface PauseView {
  /** null: only `resume` ends the pause. */
  readonly until: Date | null;
  readonly reason: string;
}

/** The pause that denied an ask: of the entity, of one of its parents, or of a bucket of one of them. */
export interface PausedBy extends PauseView {
  readonly entityId: string;
  /** null: the entity is paused on every resource. */
  readonly resource: string | null;
}

export function viewPause(pause: Pause): PauseView {
  return { until: isForever(pause) ? null : new Date(pause.endMs), reason: pause.reason };
}

/** What a pause (null: a resume) makes of the stored pause. */
export function planPause(stored: Pause | null | undefined, wanted: Pause | null): PauseChange {
  const before = stored ?? null;
  return { before, after: wanted === null ? null : laterPause(before, wanted) };
}

/** The stored pause before and after a change; null: none. */
export interface PauseChange {
  readonly before: Pause | null;
  readonly after: Pause | null;
}

export function samePause(a: Pause | null | undefined, b: Pause | null | undefined): boolean {
  return a?.endMs === b?.endMs && a?.reason === b?.reason;
}

/** Refuses a reason that no store could keep, or that would make every record of a bucket large. */
export function checkReason(reason: unknown, field = 'reason'): asserts reason is string {
  if (typeof reason !== 'string' || reason.length === 0 || reason.length > MAX_REASON || ILLEGAL.test(reason)) {
    throw new ValidationError(field, `a string of 1 to ${MAX_REASON} characters in one line`, reason);
  }
}

/** Plain data of a pause, for audit records and limits files: an end that is left out is a pause without an end. */
export interface PauseData {
  readonly until?: string;
  readonly reason: string;
}

export function encodePause(pause: Pause): PauseData {
  const { reason } = pause;
  return isForever(pause) ? { reason } : { until: new Date(pause.endMs).toISOString(), reason };
}

/** The inverse of `encodePause`. NaN as the end: the text is no instant. */
export function decodePause({ until, reason }: PauseData): Pause {
  return { endMs: until === undefined ? FOREVER_MS : Date.parse(until), reason };
}
