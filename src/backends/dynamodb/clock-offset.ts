/** `Date` has whole seconds, so that nothing below this can be told. */
const TOLERANCE_MS = 1_000;

/**
 * How far this machine's clock is from the store's, from the `Date` of its answers. It is corrected only when it is off
 * by more than a second, and stays as it is until it is off by that much again.
 */
export class ClockOffset {
  #ms: number | null = null;

  /** null: no answer has come yet. */
  get ms(): number | null {
    return this.#ms;
  }

  observe(date: string | undefined, sentAtMs: number, receivedAtMs: number): void {
    const storeMs = date === undefined ? Number.NaN : Date.parse(date);
    if (Number.isNaN(storeMs)) return;
    // The middle of the second that it names, against the middle of the time that the answer took.
    const estimateMs = Math.round(storeMs + 500 - (sentAtMs + receivedAtMs) / 2);
    // An answer that took long says little.
    const blurMs = (receivedAtMs - sentAtMs) / 2;
    this.#ms ??= 0;
    if (Math.abs(estimateMs - this.#ms) <= TOLERANCE_MS + blurMs) return;
    this.#ms = Math.abs(estimateMs) <= TOLERANCE_MS ? 0 : estimateMs;
  }
}
