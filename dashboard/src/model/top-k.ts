import { Windows } from './windows.js';

/** A key with the detail that was seen last. It was seen at least `count` times, and at most `errorAtMost` times more. */
export interface Counted<T> {
  readonly key: string;
  readonly count: number;
  readonly errorAtMost: number;
  readonly detail: T;
}

/**
 * Counts the most frequent keys of a stream in memory of a fixed size (the algorithm Space-Saving). A key that is more
 * frequent than 1 / `size` of all is never lost. https://www.cs.ucsb.edu/research/tech-reports/2005-23
 */
export class TopK<T> {
  readonly #size: number;
  readonly #slots = new Map<string, number>();
  readonly #keys: string[] = [];
  readonly #details: T[] = [];
  readonly #counts: Float64Array;
  readonly #errors: Float64Array;

  constructor(size: number) {
    this.#size = size;
    this.#counts = new Float64Array(size);
    this.#errors = new Float64Array(size);
  }

  add(key: string, detail: T): void {
    const slot = this.#slots.get(key) ?? this.#take(key);
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1;
    this.#details[slot] = detail;
  }

  entries(): Counted<T>[] {
    return this.#keys.map((key, slot) => ({
      key,
      count: (this.#counts[slot] ?? 0) - (this.#errors[slot] ?? 0),
      errorAtMost: this.#errors[slot] ?? 0,
      detail: this.#details[slot] as T,
    }));
  }

  /** A slot for a new key: a free one, or that of the least frequent key, whose count the new key inherits. */
  #take(key: string): number {
    let slot = this.#keys.length;
    if (slot === this.#size) {
      slot = this.#least();
      this.#slots.delete(this.#keys[slot] ?? '');
      this.#errors[slot] = this.#counts[slot] ?? 0;
    }
    this.#keys[slot] = key;
    this.#slots.set(key, slot);
    return slot;
  }

  #least(): number {
    const counts = this.#counts;
    let least = 0;
    for (let slot = 1; slot < this.#size; slot++) if ((counts[slot] ?? 0) < (counts[least] ?? 0)) least = slot;
    return least;
  }
}

export interface Top<T> {
  /** The most frequent first. */
  readonly rows: readonly Counted<T>[];
  /** There are other keys, of which the counts are not known well enough to be shown. */
  readonly hasOthers: boolean;
}

/** The most frequent keys of the last one to two windows. */
export class RecentTopK<T> {
  readonly #windows: Windows<TopK<T>>;

  constructor(size: number, windowMs: number) {
    this.#windows = new Windows(windowMs, () => new TopK(size));
  }

  add(atMs: number, key: string, detail: T): void {
    this.#windows.at(atMs)[0].add(key, detail);
  }

  /** At most `size` keys. One of which most may be the count of other keys, whose place it took, is left out. */
  top(atMs: number, size: number): Top<T> {
    const [current, previous] = this.#windows.at(atMs);
    const merged = new Map(previous.entries().map((entry) => [entry.key, entry]));
    for (const entry of current.entries()) {
      const before = merged.get(entry.key);
      merged.set(entry.key, {
        ...entry,
        count: entry.count + (before?.count ?? 0),
        errorAtMost: entry.errorAtMost + (before?.errorAtMost ?? 0),
      });
    }
    const known = [...merged.values()].filter(({ count, errorAtMost }) => errorAtMost <= count);
    const rows = known.toSorted((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1)).slice(0, size);
    return { rows, hasOthers: known.length < merged.size };
  }
}
