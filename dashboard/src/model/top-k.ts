/** A counted key, with the detail that was seen last. `errorAtMost`: by how much the count may be too high. */
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
      count: this.#counts[slot] ?? 0,
      errorAtMost: this.#errors[slot] ?? 0,
      detail: this.#details[slot] as T,
    }));
  }

  clear(): void {
    this.#slots.clear();
    this.#keys.length = 0;
    this.#details.length = 0;
    this.#counts.fill(0);
    this.#errors.fill(0);
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

/** The most frequent keys of the last one to two windows. */
export class RecentTopK<T> {
  readonly #windowMs: number;
  #current: TopK<T>;
  #previous: TopK<T>;
  #window = 0;

  constructor(size: number, windowMs: number) {
    this.#windowMs = windowMs;
    this.#current = new TopK(size);
    this.#previous = new TopK(size);
  }

  add(atMs: number, key: string, detail: T): void {
    this.#roll(atMs);
    this.#current.add(key, detail);
  }

  /** The `count` most frequent, the most frequent first. */
  top(atMs: number, count: number): Counted<T>[] {
    this.#roll(atMs);
    const merged = new Map(this.#previous.entries().map((entry) => [entry.key, entry]));
    for (const entry of this.#current.entries()) {
      const before = merged.get(entry.key);
      merged.set(entry.key, {
        ...entry,
        count: entry.count + (before?.count ?? 0),
        errorAtMost: entry.errorAtMost + (before?.errorAtMost ?? 0),
      });
    }
    return [...merged.values()].toSorted((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1)).slice(0, count);
  }

  #roll(atMs: number): void {
    const window = Math.floor(atMs / this.#windowMs);
    if (window <= this.#window) return;
    const [current, previous] = [this.#current, this.#previous];
    previous.clear();
    if (window > this.#window + 1) current.clear();
    [this.#current, this.#previous] = [previous, current];
    this.#window = window;
  }
}
