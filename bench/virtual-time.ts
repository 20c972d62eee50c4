interface Timer {
  readonly atMs: number;
  readonly order: number;
  /** null: it was stopped. */
  ring: (() => void) | null;
}

/** More turns of the event loop than any chain of promises and immediates takes before it waits for a timer. */
const TURNS_BETWEEN_TIMERS = 4;
const nextTurn = setImmediate;

/**
 * Replaces the timers and the monotonic clock of this process while `run` runs: code takes no time, and each timer rings
 * as soon as all code before it has run. A run with the same random numbers always has the same course.
 */
export class VirtualTime {
  nowMs = 0;
  /** A binary heap; the first timer is the next to ring. Stopped timers stay in it until they are first. */
  readonly #heap: Timer[] = [];
  #started = 0;

  after(ms: number, ring: () => void): Timer {
    const timer = { atMs: this.nowMs + Math.max(0, ms), order: (this.#started += 1), ring };
    let at = this.#heap.push(timer) - 1;
    for (let parent = (at - 1) >> 1; at > 0 && isBefore(timer, this.#at(parent)); parent = (at - 1) >> 1) {
      this.#heap[at] = this.#at(parent);
      this.#heap[parent] = timer;
      at = parent;
    }
    return timer;
  }

  async sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.after(ms, resolve));
  }

  /** Runs the work in virtual time, with `random` instead of `Math.random`. */
  async run<T>(random: () => number, work: () => Promise<T>): Promise<T> {
    const restore = this.#replaceGlobals(random);
    try {
      let isDone = false;
      const result = work().finally(() => (isDone = true));
      // A rejection is reported by the await below, not as unhandled.
      result.catch(() => {});
      for (;;) {
        for (let turn = 0; turn < TURNS_BETWEEN_TIMERS; turn++) await new Promise((resolve) => nextTurn(resolve));
        if (isDone) return await result;
        this.#ringNext();
      }
    } finally {
      restore();
    }
  }

  #ringNext(): void {
    for (let timer = this.#takeFirst(); timer !== undefined; timer = this.#takeFirst()) {
      if (timer.ring === null) continue;
      this.nowMs = timer.atMs;
      timer.ring();
      return;
    }
    throw new Error('The simulated work waits, but no timer is set');
  }

  #takeFirst(): Timer | undefined {
    const [first] = this.#heap;
    const last = this.#heap.pop();
    if (last === undefined || last === first) return first;
    this.#heap[0] = last;
    for (let at = 0, child = 1; child < this.#heap.length; child = 2 * at + 1) {
      if (child + 1 < this.#heap.length && isBefore(this.#at(child + 1), this.#at(child))) child += 1;
      if (isBefore(last, this.#at(child))) break;
      this.#heap[at] = this.#at(child);
      this.#heap[child] = last;
      at = child;
    }
    return first;
  }

  #at(index: number): Timer {
    return this.#heap[index] as Timer;
  }

  #replaceGlobals(random: () => number): () => void {
    const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;
    const { random: realRandom } = Math;
    const realNow = performance.now;
    const start = (ring: () => void, ms = 0): Timer & { unref(): void } =>
      Object.assign(this.after(ms, ring), { unref: () => {} });
    Object.assign(globalThis, { setTimeout: start, clearTimeout: stopVirtual });
    performance.now = () => this.nowMs;
    Math.random = random;
    return () => {
      Object.assign(globalThis, { setTimeout: startTimer, clearTimeout: stopTimer });
      performance.now = realNow;
      Math.random = realRandom;
    };
  }
}

function isBefore(one: Timer, other: Timer): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

function stopVirtual(timer: Timer | undefined): void {
  if (timer !== undefined) timer.ring = null;
}
