/**
 * A map by two strings. The maps are nested: joined keys would need a separator that neither key contains, and every
 * look-up would create and hash a new string.
 */
export class TwoKeyMap<V> {
  readonly #outer = new Map<string, Map<string, V>>();
  #size = 0;
  /** The second key seldom changes from one call to the next. */
  #lastSecond = '';
  #lastInner: Map<string, V> | undefined;
  /** Where the last eviction stopped. A new iteration would first skip the gaps of all deleted entries. */
  #oldest: ReturnType<TwoKeyMap<V>['entries']> | null = null;
  /** The deletions since that iteration began. */
  #deletions = 0;

  get size(): number {
    return this.#size;
  }

  get(first: string, second: string): V | undefined {
    return this.#innerOf(second)?.get(first);
  }

  set(first: string, second: string, value: V): void {
    let inner = this.#innerOf(second);
    if (inner === undefined) {
      inner = new Map();
      this.#outer.set(second, inner);
    }
    const before = inner.size;
    inner.set(first, value);
    this.#size += inner.size - before;
  }

  delete(first: string, second: string): void {
    const inner = this.#innerOf(second);
    if (inner?.delete(first) !== true) return;
    this.#size -= 1;
    // V8 makes a new table after as many changes as a map has entries, and an iterator that does not move keeps all
    // tables since its last step in memory.
    if (this.#oldest !== null && ++this.#deletions > this.#size) this.#oldest = null;
    if (inner.size > 0) return;
    this.#outer.delete(second);
    this.#lastInner = undefined;
  }

  /** Deletes an entry that was among the oldest when the eviction last began from the start. */
  deleteOldest(): void {
    let next = this.#oldest?.next();
    if (next === undefined || next.done === true) {
      this.#oldest = this.entries();
      this.#deletions = 0;
      next = this.#oldest.next();
    }
    if (next.done !== true) this.delete(next.value[0], next.value[1]);
  }

  clear(): void {
    // A running iteration over an inner map must not visit deleted entries.
    for (const inner of this.#outer.values()) inner.clear();
    this.#outer.clear();
    this.#lastInner = undefined;
    this.#oldest = null;
    this.#size = 0;
  }

  #innerOf(second: string): Map<string, V> | undefined {
    if (second === this.#lastSecond && this.#lastInner !== undefined) return this.#lastInner;
    this.#lastSecond = second;
    this.#lastInner = this.#outer.get(second);
    return this.#lastInner;
  }

  /** In the order of insertion within a second key. The map may change during the iteration. */
  *entries(): Generator<readonly [first: string, second: string, value: V]> {
    for (const [second, inner] of this.#outer) for (const [first, value] of inner) yield [first, second, value];
  }
}
