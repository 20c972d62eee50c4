import { InfrastructureError } from '../../../core/errors.js';
import { SteadyTime, type TimeSources } from '../../../core/steady-time.js';
import type { EpochMs } from '../../../core/units.js';
import { machineTime } from '../../../machine-time.js';

/** `Date` has whole seconds, so smaller differences cannot be measured. */
const TOLERANCE_MS = 1_000;

/** A correction above this is reported: two clients that follow the same store differ by at most this much. */
const REPORTED_MS = 2_000;

/** A large difference between the `Date` of an answer and the offset in use. */
export interface ClockNews {
  /** `moved`: two answers agreed, and the offset was corrected. `disregarded`: the next answer did not confirm it. */
  readonly kind: 'moved' | 'disregarded';
  readonly byMs: number;
}

/** The offset that one answer shows. */
interface ClockReading {
  readonly estimateMs: number;
  readonly blurMs: number;
}

/**
 * The offset from a steady clock of this machine to the store's time, measured from the `Date` of answers. It changes
 * only if two answers in a row agree that it is off by more than a second, and then stays until it is off by that much
 * again.
 */
export class ClockOffset {
  #ms: number | null = null;
  #doubt: ClockReading | null = null;
  #news: ClockNews | null = null;

  /** null: not known yet. */
  get ms(): number | null {
    return this.#ms;
  }

  /** The last answer contradicted the offset in use, and no second answer has confirmed or refuted it. */
  get isInDoubt(): boolean {
    return this.#doubt !== null;
  }

  /** The latest large difference. Each is returned once. */
  takeNews(): ClockNews | null {
    const news = this.#news;
    this.#news = null;
    return news;
  }

  /** `sentAtMs` and `receivedAtMs` are by the steady clock: the wall clock may be set in between. */
  observe(date: string | undefined, sentAtMs: number, receivedAtMs: number): void {
    const storeMs = date === undefined ? Number.NaN : Date.parse(date);
    if (Number.isNaN(storeMs)) return;
    const reading = {
      // The middle of the second that `Date` names, minus the middle of the time that the request took.
      estimateMs: Math.round(storeMs + 500 - (sentAtMs + receivedAtMs) / 2),
      // The longer an answer took, the less precise its time is.
      blurMs: (receivedAtMs - sentAtMs) / 2,
    };
    const current = { estimateMs: this.#ms ?? 0, blurMs: 0 };
    const doubt = this.#doubt;
    const confirmsDoubt = doubt !== null && agree(reading, doubt);
    if (agree(reading, current)) {
      // An answer that is so slow that it agrees with both decides nothing.
      if (!confirmsDoubt) this.#settle(current.estimateMs, doubt);
    } else if (confirmsDoubt) this.#move(reading.estimateMs);
    else this.#doubt = reading;
  }

  #settle(ms: number, doubt: ClockReading | null): void {
    if (doubt !== null) this.#report('disregarded', doubt.estimateMs - ms);
    this.#ms = ms;
    this.#doubt = null;
  }

  #move(estimateMs: number): void {
    const ms = Math.abs(estimateMs) <= TOLERANCE_MS ? 0 : estimateMs;
    // The first correction is not reported: it only sets the offset when the store is opened.
    if (this.#ms !== null) this.#report('moved', ms - this.#ms);
    this.#ms = ms;
    this.#doubt = null;
  }

  #report(kind: ClockNews['kind'], byMs: number): void {
    if (Math.abs(byMs) > REPORTED_MS) this.#news = { kind, byMs };
  }
}

function agree(a: ClockReading, b: ClockReading): boolean {
  return Math.abs(a.estimateMs - b.estimateMs) <= TOLERANCE_MS + a.blurMs + b.blurMs;
}

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

/** The error that reports a large correction of the time, or of an answer whose time was ignored. */
export function errorOfNews({ kind, byMs }: ClockNews): InfrastructureError {
  const amount = `${Math.abs(byMs)} ms ${byMs > 0 ? 'ahead of' : 'behind'}`;
  const message =
    kind === 'moved'
      ? `The store's time was corrected: two answers named a time that is ${amount} the one in use`
      : `An answer named a time that is ${amount} the one in use. The next answer did not confirm it, so it was ignored`;
  return new InfrastructureError('infrastructure.clock', message);
}
