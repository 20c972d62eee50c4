/** `Date` has whole seconds, so that nothing below this can be told. */
const TOLERANCE_MS = 1_000;

/** A correction above this is no tuning: two clients that follow the same store may differ by so much. */
const REPORTED_MS = 2_000;

/** What `Date` said against what was believed, where the difference is large. */
export interface ClockNews {
  /** `moved`: two answers agreed, and the time was corrected. `disregarded`: one answer said so, the next one did not. */
  readonly kind: 'moved' | 'disregarded';
  readonly byMs: number;
}

/** One answer that contradicts what is believed. */
interface Doubt {
  readonly estimateMs: number;
  readonly blurMs: number;
}

/**
 * What to add to a steady clock of this machine to get the store's time, from the `Date` of answers. It moves only when
 * two answers in a row agree that it is off by more than a second; then it stays until it is off by that much again.
 */
export class ClockOffset {
  #ms: number | null = null;
  #doubt: Doubt | null = null;
  #news: ClockNews | null = null;

  /** null: not known yet. */
  get ms(): number | null {
    return this.#ms;
  }

  /** The last answer contradicted what is believed, and no second one has settled it. */
  get isInDoubt(): boolean {
    return this.#doubt !== null;
  }

  /** The latest large difference, once. */
  takeNews(): ClockNews | null {
    const news = this.#news;
    this.#news = null;
    return news;
  }

  /** `sentAtMs` and `receivedAtMs` are by the steady clock: the wall clock may be set in between. */
  observe(date: string | undefined, sentAtMs: number, receivedAtMs: number): void {
    const storeMs = date === undefined ? Number.NaN : Date.parse(date);
    if (Number.isNaN(storeMs)) return;
    const seen = {
      // The middle of the second that it names, against the middle of the time that the answer took.
      estimateMs: Math.round(storeMs + 500 - (sentAtMs + receivedAtMs) / 2),
      // An answer that took long says little.
      blurMs: (receivedAtMs - sentAtMs) / 2,
    };
    const believed = { estimateMs: this.#ms ?? 0, blurMs: 0 };
    const doubt = this.#doubt;
    const confirmsDoubt = doubt !== null && agree(seen, doubt);
    if (agree(seen, believed)) {
      // An answer so slow that it agrees with both decides nothing.
      if (!confirmsDoubt) this.#settle(believed.estimateMs, doubt);
    } else if (confirmsDoubt) this.#move(seen.estimateMs);
    else this.#doubt = seen;
  }

  #settle(ms: number, doubt: Doubt | null): void {
    if (doubt !== null) this.#report('disregarded', doubt.estimateMs - ms);
    this.#ms = ms;
    this.#doubt = null;
  }

  #move(estimateMs: number): void {
    const ms = Math.abs(estimateMs) <= TOLERANCE_MS ? 0 : estimateMs;
    // The first answers of all correct a clock that was never right: every store is opened like that.
    if (this.#ms !== null) this.#report('moved', ms - this.#ms);
    this.#ms = ms;
    this.#doubt = null;
  }

  #report(kind: ClockNews['kind'], byMs: number): void {
    if (Math.abs(byMs) > REPORTED_MS) this.#news = { kind, byMs };
  }
}

function agree(a: Doubt, b: Doubt): boolean {
  return Math.abs(a.estimateMs - b.estimateMs) <= TOLERANCE_MS + a.blurMs + b.blurMs;
}
