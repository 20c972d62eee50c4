import { SteadyTime, type TimeSources } from '../../../core/steady-time.js';
import type { EpochMs } from '../../../core/units.js';
import { machineTime } from '../../../machine-time.js';
import { ClockOffset, type ClockNews } from './clock-offset.js';

/**
 * The store's time: a steady clock of this machine, corrected by the `Date` of answers. All limiters of one client
 * share it. A step of this machine's wall clock does not move it.
 */
export class StoreClock {
  readonly #steady: SteadyTime;
  readonly #offset = new ClockOffset();
  #lastMs = 0;

  constructor(sources: TimeSources = machineTime) {
    this.#steady = new SteadyTime(sources);
  }

  /** Never goes back, even if a correction does. null: no answer has shown the time yet. */
  now(): EpochMs | null {
    const offsetMs = this.#offset.ms;
    if (offsetMs === null) return null;
    return (this.#lastMs = Math.max(this.#lastMs, this.#steady.now() + offsetMs));
  }

  get isInDoubt(): boolean {
    return this.#offset.isInDoubt;
  }

  takeNews(): ClockNews | null {
    return this.#offset.takeNews();
  }

  /** Returns a function to call with the `Date` of the answer to a request that is sent now. */
  startRequest(): (date: string | undefined) => void {
    const sentAtMs = this.#steady.now();
    return (date) => this.#offset.observe(date, sentAtMs, this.#steady.now());
  }
}
