import type { EpochMs } from './units.js';

/** What a machine says about time. Handed in, so that a test steps each clock by itself. */
export interface TimeSources {
  /** Since the epoch. An operator or NTP may set it at any moment, in either direction. */
  readonly wallMs: () => number;
  /** Since some instant. It is never set; on Linux it stops while the machine is suspended. */
  readonly monotonicMs: () => number;
  /** Since the machine was started, suspensions included. Whole seconds on some systems. */
  readonly uptimeMs: () => number;
}

/** A smaller disagreement of wall clock and monotonic clock is drift. */
const STEP_MS = 1_000;

/** How closely wall clock and uptime measure the same suspension: each of them may have whole seconds only. */
const AGREEMENT_MS = 2_000;

/**
 * The time since the epoch that no step of the wall clock moves: the wall clock as it was first read, and what the
 * monotonic clock has counted since. A suspension is added when the wall clock and the uptime agree on its length; one of
 * them alone is a step.
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

  /** By how much the wall clock is ahead of the steady time; negative: behind. */
  wallLeadMs(): number {
    return this.#sources.wallMs() - this.now();
  }

  /** Only a monotonic clock that a test has replaced goes back. */
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
