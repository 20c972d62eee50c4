import type { EpochMs } from '../../core/units.js';

/** The mean time between two waves, if the store answers sooner. */
const PERIOD_MS = 25;
/** A limit that refills fewer tokens in a period is not paced: its waves are small anyway. */
const LEAST_TOKENS = 10;
/** What refills in this time stays in the limit, so that the writes of other processes do not refuse each other. */
const RESERVE_MS = 10;
const DECREASE = 0.8;
const INCREASE = 0.04;

/** How many tokens refill in a time, at most half of the capacity. */
type RefilledIn = (ms: number) => number;

/**
 * How many tokens one line asks for at once, and how long it waits between two waves. Processes that share a limit see
 * the same balance. Each lowers its share by a factor while the reserve is short, and raises it by a constant while it is
 * not. So their shares become equal, and their waves fit into the reserve, also if an image is old.
 */
export class WaveShare {
  readonly #random: () => number;
  #tokens = Number.POSITIVE_INFINITY;
  #nextMs: EpochMs = 0;
  #sentMs: EpochMs | null = null;
  /** The time between the last two waves. */
  #periodMs = PERIOD_MS;
  #judgedMs: EpochMs = 0;
  #wasRaised = false;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** The time of the next wave is random, so that the processes that share a limit do not ask at the same instant. */
  startWave(nowMs: EpochMs): void {
    this.#periodMs = Math.max(PERIOD_MS, nowMs - (this.#sentMs ?? nowMs));
    this.#sentMs = nowMs;
    this.#nextMs = nowMs + Math.floor(PERIOD_MS * (0.5 + this.#random()));
  }

  /** The answer to one ask of the wave that was sent at `askedMs`. A wave counts once: as short if one answer is. */
  learn(available: number, isRefused: boolean, askedMs: EpochMs, refilledIn: RefilledIn): void {
    const isShort = isRefused || available < refilledIn(RESERVE_MS);
    if (this.#judgedMs === askedMs && !(isShort && this.#wasRaised)) return;
    this.#judgedMs = askedMs;
    this.#wasRaised = !isShort;
    // A distant store answers few waves, which must be larger.
    const refilled = refilledIn(this.#periodMs);
    // More than refills in a period, so that a line that is alone can use up what is left over.
    const tokens = Math.min(2 * refilled, this.#tokens);
    this.#tokens = isShort ? Math.max(1, tokens * DECREASE) : tokens + refilled * INCREASE;
  }

  /** Whether a wave may ask for so many tokens. One ask may always be sent. */
  allows(tokens: number, refilledIn: RefilledIn): boolean {
    return !isPaced(refilledIn) || tokens <= this.#tokens;
  }

  /** When to send a wave of which the head could ask at `headMs`, and all waiters at `allMs`. */
  waveMs(headMs: EpochMs, allMs: EpochMs, refilledIn: RefilledIn): EpochMs {
    if (!isPaced(refilledIn)) return headMs;
    const isWhole = this.#tokens >= refilledIn(this.#periodMs);
    return Math.max(headMs, isWhole ? Math.min(this.#nextMs, allMs) : this.#nextMs);
  }
}

function isPaced(refilledIn: RefilledIn): boolean {
  return refilledIn(PERIOD_MS) >= LEAST_TOKENS;
}
