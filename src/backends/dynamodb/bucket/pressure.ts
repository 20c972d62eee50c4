import type { EpochMs } from '../../../core/units.js';
import type { ShardImage } from '../table/items.js';

export interface PressureOptions {
  /** Write units a second of one key above which its writers slow down. */
  readonly paceAbove: number;
  /** The rate that pacing alone should hold: a key which stays above it is split. */
  readonly splitAbove: number;
}

/** A partition of DynamoDB takes 1,000 write units a second. */
export const PRESSURE: PressureOptions = { paceAbove: 500, splitAbove: 1_000 };

/** Two images must be at least this far apart to tell a rate. */
const LEAST_SPAN_MS = 1_000;
const SPLIT_AFTER_MS = 2_000;
const LONGEST_PAUSE_MS = 25;

/**
 * How busy one key is, over all processes: each write adds its units to a counter in the item, so that the difference
 * of two images is the rate.
 */
export class Pressure {
  readonly #options: PressureOptions;
  #sinceMs: EpochMs | null = null;
  #sinceUnits = 0;
  #shardCount: number | null = null;
  #unitsPerSec = 0;
  #tooMuchSinceMs: EpochMs | null = null;
  #hot = false;

  constructor(options: PressureOptions) {
    this.#options = options;
  }

  get unitsPerSec(): number {
    return this.#unitsPerSec;
  }

  observe({ writeUnits, shardCount }: Pick<ShardImage, 'writeUnits' | 'shardCount'>, nowMs: EpochMs): void {
    // Somebody else has split it: what was too much for one key need not be for two.
    if (this.#shardCount !== null && this.#shardCount !== shardCount) this.reset();
    this.#shardCount = shardCount;
    const spanMs = this.#sinceMs === null ? 0 : nowMs - this.#sinceMs;
    const units = writeUnits - this.#sinceUnits;
    if (this.#sinceMs !== null && spanMs >= 0 && spanMs < LEAST_SPAN_MS && units >= 0) return;
    // A counter that went back is another item's: one that was split off or born again.
    if (this.#sinceMs !== null && spanMs >= LEAST_SPAN_MS && units >= 0) {
      this.#unitsPerSec = (units / spanMs) * 1_000;
      if (this.#unitsPerSec <= this.#options.splitAbove) this.#tooMuchSinceMs = null;
      else this.#tooMuchSinceMs ??= this.#sinceMs;
    }
    this.#sinceMs = nowMs;
    this.#sinceUnits = writeUnits;
  }

  /** DynamoDB itself says that this range of keys is too busy. */
  sayHot(): void {
    this.#hot = true;
  }

  /** In proportion to what is too much, up to 25 ms, jittered: writers of many processes must not march in step. */
  pauseMs(random: () => number): number {
    const excess = this.#unitsPerSec / this.#options.paceAbove - 1;
    return excess <= 0 ? 0 : Math.min(1, excess) * LONGEST_PAUSE_MS * (0.5 + random() / 2);
  }

  /** Whether pacing was not enough. */
  wantsSplit(nowMs: EpochMs): boolean {
    if (this.#hot) return true;
    return this.#tooMuchSinceMs !== null && nowMs - this.#tooMuchSinceMs >= SPLIT_AFTER_MS;
  }

  /** After a split, or an attempt at one: what was measured is no longer so. */
  reset(): void {
    this.#sinceMs = null;
    this.#unitsPerSec = 0;
    this.#tooMuchSinceMs = null;
    this.#hot = false;
  }
}
