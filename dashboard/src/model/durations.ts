const EDGES_MS = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

/** A histogram of durations that halves its counts now and then, so that old ones lose weight. */
export class Durations {
  readonly #counts = new Float64Array(EDGES_MS.length + 1);
  #total = 0;

  add(durationMs: number): void {
    const slot = EDGES_MS.findIndex((edge) => durationMs <= edge);
    const at = slot === -1 ? EDGES_MS.length : slot;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#total += 1;
    if (this.#total < 20_000) return;
    for (let index = 0; index < this.#counts.length; index++) {
      this.#counts[index] = Math.floor((this.#counts[index] ?? 0) / 2);
    }
    this.#total = this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** The edge below which that share of the durations is; null: none yet, or above the last edge. */
  quantile(share: number): number | null {
    let sum = 0;
    for (const [at, edge] of EDGES_MS.entries()) {
      sum += this.#counts[at] ?? 0;
      if (this.#total > 0 && sum >= share * this.#total) return edge;
    }
    return null;
  }
}
