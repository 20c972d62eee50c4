/** Counts requests that are being answered. A counter, because a set of promises costs each request a look-up. */
export class InFlight {
  #count = 0;
  #onIdle: (() => void)[] = [];

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Resolves when no request is being answered. */
  async idle(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }
}
