import { SteadyTime, type TimeSources } from '../../../core/steady-time.js';
import type { EpochMs } from '../../../core/units.js';

/** What the processes of one host have in common, besides the wall clock that may be set. */
export interface HostTime extends TimeSources {
  /** A monotonic clock of which all processes of the host read the same value. */
  readonly hostMs: () => number;
  /** Which start of which machine `hostMs` belongs to. */
  readonly bootId: string;
}

/** The time that a process left in the file. */
export interface TimeMark {
  readonly timeMs: EpochMs;
  /** What the host's monotonic clock said then. */
  readonly hostMs: number;
  readonly bootId: string;
}

/** A file that was not written to for so long is not in use: the next process to open it believes its own clock. */
const IDLE_MS = 60_000;

/** Clocks that differ by less are the same. */
const TOLERANCE_MS = 1_000;

/** A wall clock that differs by more is reported. */
const REPORTED_MS = 60_000;

/** Time gains on a wall clock that is ahead by 2 ms a second: at most 2 s of rate more in a quarter of an hour. */
const GAIN = 1 / 500;
const MAX_GAINING_MS = 10_000;

/**
 * The time by which the processes of one host use a file. It begins with the wall clock, unless the file is in use by
 * another time, and advances with the monotonic clock. It is never behind the largest time in the file. A wall clock that
 * is set is followed so slowly that no limit shows it.
 */
export class FileClock {
  readonly #host: HostTime;
  readonly #steady: SteadyTime;
  #offsetMs = 0;
  #lastMs = 0;
  #gainedAtMs: EpochMs;
  #hasFollowed = false;
  #hasReported = false;

  constructor(host: HostTime) {
    this.#host = host;
    this.#steady = new SteadyTime(host);
    this.#gainedAtMs = this.#steady.now();
  }

  /** Never goes back. */
  now(): EpochMs {
    return (this.#lastMs = Math.max(this.#lastMs, Math.floor(this.#steady.now() + this.#offsetMs)));
  }

  mark(): TimeMark {
    return { timeMs: this.now(), hostMs: Math.ceil(this.#host.hostMs()), bootId: this.#host.bootId };
  }

  /**
   * Takes in what the file says: when it is opened, then about once a second. Gives by how much the wall clock is ahead of
   * the time in use, if that must be reported: once for each time that it goes wrong.
   */
  follow(mark: TimeMark | null): number | null {
    const ownMs = this.#steady.now() + this.#offsetMs;
    if (mark !== null) {
      const agoMs = this.#host.hostMs() - mark.hostMs;
      const isInUse = mark.bootId === this.#host.bootId && agoMs >= 0 && agoMs < IDLE_MS;
      const fileMs = isInUse ? mark.timeMs + agoMs : mark.timeMs;
      const isAhead = ownMs - fileMs > TOLERANCE_MS;
      if (fileMs > ownMs || (isAhead && isInUse && !this.#hasFollowed)) this.#offsetMs += fileMs - ownMs;
    }
    this.#hasFollowed = true;
    this.#gainOnWallClock();
    return this.#differenceToReport();
  }

  #gainOnWallClock(): void {
    const nowMs = this.#steady.now();
    const passedMs = Math.min(nowMs - this.#gainedAtMs, MAX_GAINING_MS);
    this.#gainedAtMs = nowMs;
    const leadMs = this.#wallLeadMs();
    if (leadMs > TOLERANCE_MS) this.#offsetMs += Math.min(leadMs, passedMs * GAIN);
  }

  #differenceToReport(): number | null {
    const leadMs = this.#wallLeadMs();
    const isWrong = Math.abs(leadMs) > REPORTED_MS;
    const isNew = isWrong && !this.#hasReported;
    this.#hasReported = isWrong;
    return isNew ? Math.round(leadMs) : null;
  }

  #wallLeadMs(): number {
    return this.#steady.wallLeadMs() - this.#offsetMs;
  }
}
