import { Windows } from './windows.js';

const EDGES_MS = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

/** A histogram of the durations of the last one to two windows. */
export class Durations {
  readonly #windows: Windows<Float64Array>;

  constructor(windowMs: number) {
    this.#windows = new Windows(windowMs, () => new Float64Array(EDGES_MS.length + 1));
  }

  add(atMs: number, durationMs: number): void {
    const [counts] = this.#windows.at(atMs);
    const slot = EDGES_MS.findIndex((edge) => durationMs <= edge);
    const at = slot === -1 ? EDGES_MS.length : slot;
    counts[at] = (counts[at] ?? 0) + 1;
  }

  /** The edge below which that share of the durations is; `Infinity`: above the last edge, of 60 s; null: none yet. */
  quantile(atMs: number, share: number): number | null {
    const [current, previous] = this.#windows.at(atMs);
    const counts = current.map((count, at) => count + (previous[at] ?? 0));
    const total = counts.reduce((sum, count) => sum + count, 0);
    if (total === 0) return null;
    let sum = 0;
    const slot = counts.findIndex((count) => (sum += count) >= share * total);
    return EDGES_MS[slot] ?? Infinity;
  }
}
