/** A rate of 1 token a second as a plain account that settles at every operation, in whole tokens. */
export class EagerAccount {
  #capacity: number;
  #perSecond = 1;
  #tokens: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#tokens = capacity;
  }

  get capacity(): number {
    return this.#capacity;
  }

  get tokens(): number {
    return this.#tokens;
  }

  /** Takes, and gives back if the amount is negative. */
  spend(tokens: number): void {
    this.#tokens = Math.min(this.#capacity, this.#tokens - tokens);
  }

  pass(seconds: number): void {
    this.#tokens = Math.min(this.#capacity, this.#tokens + seconds * this.#perSecond);
  }

  fill(): void {
    this.#tokens = this.#capacity;
  }

  change(capacity: number, perSecond: number): void {
    this.#capacity = capacity;
    this.#perSecond = perSecond;
    this.#tokens = Math.min(this.#tokens, capacity);
  }
}
