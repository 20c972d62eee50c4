/** Counts by second for the last `seconds` seconds, in memory of a fixed size. */
export class SecondRing {
  readonly seconds: number;
  readonly #counts: Float64Array;
  #newest = 0;

  constructor(seconds: number) {
    this.seconds = seconds;
    this.#counts = new Float64Array(seconds);
  }

  add(atMs: number, count: number): void {
    const second = Math.floor(atMs / 1_000);
    this.#advance(second);
    // The clock of the machine may be set back. Such a count is dropped if its second is no longer kept.
    if (this.#newest - second >= this.seconds) return;
    const slot = second % this.seconds;
    this.#counts[slot] = (this.#counts[slot] ?? 0) + count;
  }

  /** The counts of the seconds that end at `atMs`, oldest first. The current second, which is not over, is left out. */
  read(atMs: number): number[] {
    const now = Math.floor(atMs / 1_000);
    this.#advance(now);
    const last = this.seconds - 1;
    return Array.from({ length: last }, (_, at) => this.#counts[(now - last + at) % this.seconds] ?? 0);
  }

  #advance(second: number): void {
    if (second <= this.#newest) return;
    const from = Math.max(this.#newest + 1, second - this.seconds + 1);
    for (let at = from; at <= second; at++) this.#counts[at % this.seconds] = 0;
    this.#newest = second;
  }
}
