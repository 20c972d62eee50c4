import { type Clock, startTimer } from '../../clock.js';
import type { EpochMs } from '../../core/units.js';

/** One timer, which moves with the time of the next wave. */
export class WaveTimer {
  readonly #clock: Required<Clock>;
  readonly #onDue: () => void;
  #running: { readonly atMs: EpochMs; readonly stop: () => void } | null = null;

  constructor(clock: Required<Clock>, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Infinity: no wave is due. */
  moveTo(atMs: EpochMs): void {
    if (this.#running?.atMs === atMs) return;
    this.#running?.stop();
    this.#running = null;
    if (!Number.isFinite(atMs)) return;
    const stop = startTimer(this.#clock, Math.max(0, atMs - this.#clock.now()), () => {
      this.#running = null;
      this.#onDue();
    });
    this.#running = { atMs, stop };
  }
}
