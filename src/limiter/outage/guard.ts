import type { Awaitable } from '../../backend.js';
import { type Clock, startTimer } from '../../clock.js';
import { BackendUnavailable, isHeadgateError, unavailableKind, type UnavailableKind } from '../../core/errors.js';
import { closedError } from './closed-error.js';
import { PendingCalls } from '../../core/pending-calls.js';

const FAILURES_TO_OPEN = 5;
const PROBE_EVERY_MS = 1_000;

/** The kinds that open the breaker. Throttling and contention show that the store works. */
const COUNTED: ReadonlySet<UnavailableKind> = new Set(['timeout', 'connection', 'server']);

export interface CallDetails<T> {
  /** The operation, for messages. */
  readonly where: string;
  /** null: no deadline for the call. Each request that the store makes then has its own deadline. */
  readonly timeoutMs: number | null;
  /** Aborts when the caller stops waiting. */
  readonly signal?: AbortSignal | undefined;
  /** Called with an answer that arrives after the caller stopped waiting. */
  readonly onLate?: (answer: T) => void;
}

/** Must not throw. */
type OnOutage = (error: unknown) => void;

/** Every call to the store goes through it. It sets the deadline of each call, and contains the breaker. */
export class Guard {
  readonly #clock: Required<Clock>;
  readonly #onOutage: OnOutage | null;
  #failures = 0;
  #lastFailure: unknown = null;
  #nextProbeMs = 0;
  #isClosed = false;
  /** Calls without an answer yet, including those whose caller stopped waiting. */
  readonly #pending = new PendingCalls();

  /** `onOutage` is called with an error when the breaker opens, and with null when the store has answered again. */
  constructor(clock: Required<Clock>, onOutage: OnOutage | null = null) {
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

  /** Resolves when no call is in flight: at once for a store that answers synchronously. */
  idle(): Promise<void> {
    return this.#pending.idle();
  }

  /** Refuses all later calls. */
  close(): void {
    this.#isClosed = true;
    // Lets `enter`, which is on the path of every acquire, need only one comparison.
    this.#failures = Number.POSITIVE_INFINITY;
  }

  /** Makes one call to the store. A synchronous answer is returned without a timer and without a promise. */
  call<T>(details: CallDetails<T>, start: () => Awaitable<T>): Awaitable<T> {
    this.enter(details.where);
    let answer: Awaitable<T>;
    try {
      answer = start();
    } catch (error) {
      throw this.failed(error);
    }
    return isPromise(answer) ? this.within(answer, details) : this.answered(answer);
  }

  /** Refuses a call while the breaker is open. `call` consists of `enter`, `answered`, `within` and `failed`. */
  enter(where: string): void {
    if (this.#failures < FAILURES_TO_OPEN) return;
    if (this.#isClosed) throw closedError();
    const nowMs = this.#clock.now();
    if (nowMs < this.#nextProbeMs) {
      throw new BackendUnavailable(
        `${where}: the store failed ${this.#failures} times in a row; next try in ${this.#nextProbeMs - nowMs} ms`,
        'breaker-open',
      );
    }
    this.#nextProbeMs = nowMs + PROBE_EVERY_MS;
  }

  answered<T>(answer: T): T {
    if (this.#failures > 0) this.#recover();
    return answer;
  }

  failed(error: unknown): unknown {
    this.#count(error);
    return error;
  }

  /** The answer, if it arrives before the deadline and before the signal aborts. */
  within<T>(answer: Promise<T>, { where, timeoutMs, signal, onLate }: CallDetails<T>): Promise<T> {
    this.#pending.begin();
    if (timeoutMs === null) return this.#whenever(answer);
    return new Promise((resolve, reject) => {
      let waits = true;
      const end = (): void => {
        waits = false;
        stopTimer();
        signal?.removeEventListener('abort', leave);
      };
      const giveUp = (error: unknown): void => {
        if (!waits) return;
        end();
        reject(this.failed(error));
      };
      const leave = (): void => giveUp(signal?.reason);
      const stopTimer = startTimer(this.#clock, timeoutMs, () =>
        giveUp(new BackendUnavailable(`${where}: no answer within ${timeoutMs} ms`, 'timeout')),
      );
      const take = (value: T): void => {
        if (!waits) {
          // Before the end of this call, because `onLate` may start another call and the store must not count as idle in between.
          onLate?.(value);
          this.#pending.end();
          return;
        }
        end();
        resolve(this.answered(value));
        this.#pending.end();
      };
      answer.then(take, (error: unknown) => {
        // No effect if the caller has stopped waiting.
        giveUp(error);
        this.#pending.end();
      });
      if (signal?.aborted === true) leave();
      else signal?.addEventListener('abort', leave, { once: true });
    });
  }

  async #whenever<T>(answer: Promise<T>): Promise<T> {
    try {
      return this.answered(await answer);
    } catch (error) {
      throw this.failed(error);
    } finally {
      this.#pending.end();
    }
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

export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  return value instanceof Promise;
}
