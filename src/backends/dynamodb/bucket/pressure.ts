import type { AskedAmount } from '../../../core/bucket/decide.js';
import type { EpochMs } from '../../../core/units.js';
import type { ShardImage } from '../table/items.js';

export interface PressureOptions {
  /** Write units per second on one key above which its writers are paced. */
  readonly paceAbove: number;
  /** Write units per second on one key above which pacing was not enough. A key that stays above it is split. */
  readonly splitAbove: number;
}

/** One key accepts 1,000 write units per second. */
export const PRESSURE: PressureOptions = { paceAbove: 500, splitAbove: 1_000 };

/** The least time between two images that a rate is measured from. */
const LEAST_SPAN_MS = 1_000;
const SPLIT_AFTER_MS = 2_000;
const LONGEST_PAUSE_MS = 25;

/**
 * The write rate of one key over all processes. Each write adds its units to a counter in the item, so the difference
 * of two images gives the rate.
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
    // Another process has split the shard: the rate of one key does not apply to two.
    if (this.#shardCount !== null && this.#shardCount !== shardCount) this.reset();
    this.#shardCount = shardCount;
    const spanMs = this.#sinceMs === null ? 0 : nowMs - this.#sinceMs;
    const units = writeUnits - this.#sinceUnits;
    if (this.#sinceMs !== null && spanMs >= 0 && spanMs < LEAST_SPAN_MS && units >= 0) return;
    // A counter that decreased belongs to another item, which was split off or created again.
    if (this.#sinceMs !== null && spanMs >= LEAST_SPAN_MS && units >= 0) {
      this.#unitsPerSec = (units / spanMs) * 1_000;
      if (this.#unitsPerSec <= this.#options.splitAbove) this.#tooMuchSinceMs = null;
      else this.#tooMuchSinceMs ??= this.#sinceMs;
    }
    this.#sinceMs = nowMs;
    this.#sinceUnits = writeUnits;
  }

  /** The store has reported that this key is too busy. */
  markHot(): void {
    this.#hot = true;
  }

  /**
   * The wait before the next write: in proportion to the excess over `paceAbove`, up to 25 ms, with jitter, so that the
   * writers of many processes do not synchronize.
   */
  pauseMs(random: () => number): number {
    const excess = this.#unitsPerSec / this.#options.paceAbove - 1;
    return excess <= 0 ? 0 : Math.min(1, excess) * LONGEST_PAUSE_MS * (0.5 + random() / 2);
  }

  /** Whether the key stayed above `splitAbove` for 2 s, or the store has reported it as too busy. */
  wantsSplit(nowMs: EpochMs): boolean {
    if (this.#hot) return true;
    return this.#tooMuchSinceMs !== null && nowMs - this.#tooMuchSinceMs >= SPLIT_AFTER_MS;
  }

  /** After a split, or an attempt at one: the measured rate no longer applies. */
  reset(): void {
    this.#sinceMs = null;
    this.#unitsPerSec = 0;
    this.#tooMuchSinceMs = null;
    this.#hot = false;
  }
}

/** How long the largest asks are recorded. */
const ASKS_COUNT_FOR_MS = 60_000;

/** The largest recent ask for each limit of a bucket. After a split, a share must be large enough to serve them. */
export class LargestAsks {
  readonly #milli = new Map<string, number>();
  #sinceMs: EpochMs = 0;

  /** An ask that may be cut fits into every share. */
  note(asks: readonly AskedAmount[], nowMs: EpochMs): void {
    if (nowMs - this.#sinceMs >= ASKS_COUNT_FOR_MS) {
      this.#milli.clear();
      this.#sinceMs = nowMs;
    }
    for (const { name, milli, atMost } of asks) {
      if (atMost !== true && milli > this.of(name)) this.#milli.set(name, Number(milli));
    }
  }

  /** In millitokens. */
  of(limit: string): number {
    return this.#milli.get(limit) ?? 0;
  }
}
