import type { Clock } from '../../clock.js';
import { BackendUnavailable, isHeadgateError, unavailableKind, type UnavailableKind } from '../../core/errors.js';
import { closedError } from './closed-error.js';

const FAILURES_TO_OPEN = 5;
const PROBE_EVERY_MS = 1_000;

/** The kinds that open the breaker. Throttling and contention show that the store works. */
const COUNTED: ReadonlySet<UnavailableKind> = new Set(['timeout', 'connection', 'server']);

/** Must not throw. */
export type OnOutage = (error: unknown) => void;

/** Refuses calls after five failures in a row, except for one probe a second, until the store answers again. */
export class Breaker {
  readonly #clock: Required<Clock>;
  readonly #onOutage: OnOutage | null;
  #failures = 0;
  #lastFailure: unknown = null;
  #nextProbeMs = 0;
  #isClosed = false;
  #isClosing = false;
  #isPassing = false;

  /** `onOutage` is called with an error when the breaker opens, and with null when the store has answered again. */
  constructor(clock: Required<Clock>, onOutage: OnOutage | null) {
    this.#clock = clock;
    this.#onOutage = onOutage;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether `enter` would pass and `answered` would change nothing. */
  get isClear(): boolean {
    return this.#failures === 0;
  }

  /** Refuses no more calls while the breaker is open: the last ones give slots back, and no later call would. */
  beginClose(): void {
    this.#isClosing = true;
  }

  /** Refuses none of the calls that `work` makes at once: they give back what the store has just granted. */
  letThrough(work: () => void): void {
    this.#isPassing = true;
    try {
      work();
    } finally {
      this.#isPassing = false;
    }
  }

  /** Refuses all later calls. */
  close(): void {
    this.#isClosed = true;
    // Lets `enter`, which is on the path of every acquire, need only one comparison.
    this.#failures = Number.POSITIVE_INFINITY;
  }

  /** Refuses a call while the breaker is open. */
  enter(where: string): void {
    if (this.#failures < FAILURES_TO_OPEN) return;
    if (this.#isClosed) throw closedError();
    if (this.#isClosing || this.#isPassing) return;
    const nowMs = this.#clock.now();
    const waitMs = this.#nextProbeMs - nowMs;
    // A longer wait is that of a clock that was set back.
    if (waitMs > 0 && waitMs <= PROBE_EVERY_MS) {
      const why = `the store failed ${this.#failures} times in a row`;
      throw new BackendUnavailable(`${where}: ${why}; next try in ${waitMs} ms`, 'breaker-open');
    }
    this.#nextProbeMs = nowMs + PROBE_EVERY_MS;
  }

  /** The store was not asked after all. If the call was the probe, the next call is the probe instead. */
  unasked(): void {
    this.#nextProbeMs = 0;
  }

  answered<T>(answer: T): T {
    if (this.#failures > 0) this.#recover();
    return answer;
  }

  failed(error: unknown): unknown {
    this.#count(error);
    return error;
  }

  #count(error: unknown): void {
    if (this.#isClosed || !isHeadgateError(error)) return;
    const kind = unavailableKind(error);
    if (kind === null || !COUNTED.has(kind)) {
      // The error is an answer, which shows that the store works.
      this.#recover();
      return;
    }
    // All calls of one group write get the same error object, which counts as one failure.
    if (error === this.#lastFailure) return;
    this.#lastFailure = error;
    this.#failures += 1;
    if (this.#failures >= FAILURES_TO_OPEN) this.#nextProbeMs = this.#clock.now() + PROBE_EVERY_MS;
    if (this.#failures === FAILURES_TO_OPEN) this.#onOutage?.(error);
  }

  #recover(): void {
    if (this.#isClosed) return;
    const wasOpen = this.#failures >= FAILURES_TO_OPEN;
    this.#failures = 0;
    if (wasOpen) this.#onOutage?.(null);
  }
}
