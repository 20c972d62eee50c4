/** The last `size` items. */
export class LastItems<T> {
  readonly #size: number;
  readonly #items: T[] = [];
  #next = 0;

  constructor(size: number) {
    this.#size = size;
  }

  add(item: T): void {
    this.#items[this.#next] = item;
    this.#next = (this.#next + 1) % this.#size;
  }

  /** The newest first. */
  newest(): T[] {
    const { length } = this.#items;
    return Array.from({ length }, (_, at) => this.#items[(this.#next - 1 - at + 2 * length) % length] as T);
  }
}
