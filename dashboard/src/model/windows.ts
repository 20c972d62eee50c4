/** Two windows of time, of which the older one is dropped: together they have what was added in the last one to two windows. */
export class Windows<T> {
  readonly #windowMs: number;
  readonly #make: () => T;
  #window = 0;
  #current: T;
  #previous: T;

  constructor(windowMs: number, make: () => T) {
    this.#windowMs = windowMs;
    this.#make = make;
    this.#current = make();
    this.#previous = make();
  }

  at(atMs: number): readonly [current: T, previous: T] {
    const window = Math.floor(atMs / this.#windowMs);
    if (window > this.#window) {
      this.#previous = window === this.#window + 1 ? this.#current : this.#make();
      this.#current = this.#make();
      this.#window = window;
    }
    return [this.#current, this.#previous];
  }
}
