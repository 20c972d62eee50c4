/** One who waits: called when it may ask, or ask again. */
type Wake = () => void;

/** Who waits for which buckets, in this process: first come, first served, and woken when something is given back. */
export class WaitingLines {
  readonly #lines = new Map<string, Wake[]>();
  readonly #listeners = new Map<string, Set<Wake>>();

  /** Joins the end of a line. `turn` is called at once if the line is empty, otherwise when all before have left. */
  join(key: string, turn: Wake): void {
    const line = this.#lines.get(key);
    if (line === undefined) {
      this.#lines.set(key, [turn]);
      turn();
    } else {
      line.push(turn);
    }
  }

  leave(key: string, turn: Wake): void {
    const line = this.#lines.get(key);
    if (line === undefined) return;
    const at = line.indexOf(turn);
    if (at < 0) return;
    line.splice(at, 1);
    if (line.length === 0) this.#lines.delete(key);
    else if (at === 0) line[0]?.();
  }

  listen(keys: readonly string[], wake: Wake): void {
    for (const key of keys) {
      const listeners = this.#listeners.get(key) ?? new Set();
      this.#listeners.set(key, listeners.add(wake));
    }
  }

  unlisten(keys: readonly string[], wake: Wake): void {
    for (const key of keys) {
      const listeners = this.#listeners.get(key);
      listeners?.delete(wake);
      if (listeners?.size === 0) this.#listeners.delete(key);
    }
  }

  /** Something was given back to this bucket. */
  announce(key: string): void {
    const listeners = this.#listeners.get(key);
    if (listeners !== undefined) for (const wake of listeners) wake();
  }
}
