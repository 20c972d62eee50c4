import { SteadyTime, type TimeSources } from '../../../../core/steady-time.js';
import type { EpochMs } from '../../../../core/units.js';

/** The time sources that the processes of a host share, besides the wall clock, which may be set. */
export interface HostTime extends TimeSources {
  /** A monotonic clock with the same value in all processes of the host. */
  readonly hostMs: () => number;
  /** Identifies the boot that `hostMs` belongs to. */
  readonly bootId: string;
}

/** The time that a process stored in the file. */
export interface TimeMark {
  readonly timeMs: EpochMs;
  /** The host's monotonic clock at that time. */
  readonly hostMs: number;
  readonly bootId: string;
}

/** A file without a write for this long is not in use: the next process that opens it trusts its own clock. */
const IDLE_MS = 60_000;

/** Smaller differences between clocks are ignored. */
const TOLERANCE_MS = 1_000;

/** A larger difference to the wall clock is reported. */
const REPORTED_MS = 60_000;

/** The time gains 2 ms a second on a wall clock that is ahead: at most 2 s of extra refill in a quarter of an hour. */
const GAIN = 1 / 500;
const MAX_GAINING_MS = 10_000;

/**
 * The time that the processes of one host use for a file. It starts with the wall clock, unless the file is in use with
 * another time, and advances with the monotonic clock. It is never behind the largest time in the file. It follows a
 * wall clock that is set so slowly that no limit shows it.
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
   * Adjusts to the time in the file: when it is opened, then about once a second. Returns how far the wall clock is
   * ahead of the time in use if that must be reported: once for each deviation.
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
