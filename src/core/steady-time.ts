import type { EpochMs } from './units.js';

/** The clocks of a machine. Handed in, so that a test can step each clock separately. */
export interface TimeSources {
  /** Since the epoch. An operator or NTP may set it at any moment, in either direction. */
  readonly wallMs: () => number;
  /** Since an arbitrary instant. It is never set; on Linux it stops while the machine is suspended. */
  readonly monotonicMs: () => number;
  /** Since the machine was started, suspensions included. Whole seconds on some systems. */
  readonly uptimeMs: () => number;
}

/** How long a reading of the wall clock is used. */
const WALL_READING_MS = 1;

/**
 * The same clocks, with one reading of the wall clock for all readings of the monotonic clock within a millisecond: each
 * reading costs as much as the rest of a decision in memory. A step or a suspension is so noticed up to 1 ms later.
 */
export function withSharedWallReading(sources: TimeSources): TimeSources {
  let monotonicMs = 0;
  let readAtMs = Number.NEGATIVE_INFINITY;
  let readWallMs = 0;
  return {
    monotonicMs: () => (monotonicMs = sources.monotonicMs()),
    wallMs: () => {
      if (Math.abs(monotonicMs - readAtMs) >= WALL_READING_MS) {
        readAtMs = monotonicMs;
        readWallMs = sources.wallMs();
      }
      return readWallMs + (monotonicMs - readAtMs);
    },
    uptimeMs: sources.uptimeMs,
  };
}

/** A smaller difference between wall clock and monotonic clock is drift. */
const STEP_MS = 1_000;

/** How far wall clock and uptime may differ for the same suspension: each may have a resolution of one second. */
const AGREEMENT_MS = 2_000;

/**
 * The time since the epoch, unaffected by steps of the wall clock: the first reading of the wall clock plus the progress
 * of the monotonic clock since then. A suspension is added when the wall clock and the uptime agree on its length. A jump
 * of only one of them is a step and is ignored.
 */
export class SteadyTime {
  readonly #sources: TimeSources;
  /** The epoch time at which the monotonic clock was 0. */
  #originMs: number;
  #wallLeadMs: number;
  #uptimeLeadMs: number;
  #lastMonotonicMs: number;

  constructor(sources: TimeSources) {
    this.#sources = sources;
    const monotonicMs = sources.monotonicMs();
    this.#wallLeadMs = sources.wallMs() - monotonicMs;
    this.#uptimeLeadMs = sources.uptimeMs() - monotonicMs;
    this.#originMs = this.#wallLeadMs;
    this.#lastMonotonicMs = monotonicMs;
  }

  now(): EpochMs {
    const monotonicMs = this.#sources.monotonicMs();
    if (monotonicMs < this.#lastMonotonicMs) this.#startAgain(this.#lastMonotonicMs - monotonicMs);
    this.#lastMonotonicMs = monotonicMs;
    const wallLeadMs = this.#sources.wallMs() - monotonicMs;
    if (Math.abs(wallLeadMs - this.#wallLeadMs) > STEP_MS) this.#judgeStep(wallLeadMs, monotonicMs);
    return Math.floor(this.#originMs + monotonicMs);
  }

  /** How far the wall clock is ahead of the steady time; negative: behind. */
  wallLeadMs(): number {
    return this.#sources.wallMs() - this.now();
  }

  /** Called when the monotonic clock goes back, which happens only when a test replaces it. */
  #startAgain(backMs: number): void {
    this.#originMs += backMs;
    this.#wallLeadMs += backMs;
    this.#uptimeLeadMs += backMs;
  }

  #judgeStep(wallLeadMs: number, monotonicMs: number): void {
    const uptimeLeadMs = this.#sources.uptimeMs() - monotonicMs;
    const steppedMs = wallLeadMs - this.#wallLeadMs;
    const suspendedMs = uptimeLeadMs - this.#uptimeLeadMs;
    this.#wallLeadMs = wallLeadMs;
    this.#uptimeLeadMs = uptimeLeadMs;
    if (suspendedMs <= AGREEMENT_MS || Math.abs(steppedMs - suspendedMs) > AGREEMENT_MS) return;
    this.#originMs += Math.min(steppedMs, suspendedMs);
  }
}
