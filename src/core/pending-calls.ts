/** Counts calls that have no answer yet. A counter, because a set of promises costs each call a look-up. */
export class PendingCalls {
  #count = 0;
  readonly #whenIdle: (() => void)[] = [];

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count > 0) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  /** Resolves when no call is pending, and none was begun with the answer of the last one. */
  async idle(): Promise<void> {
    while (this.#count > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }
}
