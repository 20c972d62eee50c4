import type { Awaitable } from '../../backend.js';
import { type Clock, startTimer } from '../../clock.js';
import { BackendUnavailable, isHeadgateError, type UnavailableKind } from '../../core/errors.js';
import { closedError } from './closed-error.js';

const FAILURES_TO_OPEN = 5;
const PROBE_EVERY_MS = 1_000;

/** Throttling and contention are answers of a store that lives. */
const COUNTED: ReadonlySet<UnavailableKind> = new Set(['timeout', 'connection', 'server']);

export interface Patience<T> {
  /** What is being done, for messages. */
  readonly where: string;
  /** null: for as long as it takes. Then every request that the store makes has a deadline of its own. */
  readonly timeoutMs: number | null;
  /** The caller may leave before the answer. */
  readonly signal?: AbortSignal | undefined;
  /** Gets an answer that came after the caller had gone. */
  readonly onLate?: (answer: T) => void;
}

/** The one door to the store: every call has a deadline, and after five failures in a row only a probe a second goes through. */
export class Guard {
  readonly #clock: Required<Clock>;
  #failures = 0;
  #lastFailure: unknown = null;
  #nextProbeMs = 0;
  #isClosed = false;
  /** Calls that have no answer yet, also those whose caller has left. */
  #pending = 0;
  readonly #whenIdle: (() => void)[] = [];

  constructor(clock: Required<Clock>) {
    this.#clock = clock;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when no call is under way: at once on a store that answers synchronously. */
  async idle(): Promise<void> {
    if (this.#pending > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  /** The limiter was closed: no call goes through any more. */
  close(): void {
    this.#isClosed = true;
    // So that `enter`, which every acquire passes, needs one comparison only.
    this.#failures = Number.POSITIVE_INFINITY;
  }

  /** One call of the store. An answer that is at hand is returned as it is: no timer, no turn of the event loop. */
  call<T>(patience: Patience<T>, start: () => Awaitable<T>): Awaitable<T> {
    this.enter(patience.where);
    let answer: Awaitable<T>;
    try {
      answer = start();
    } catch (error) {
      throw this.failed(error);
    }
    return isPromise(answer) ? this.within(answer, patience) : this.answered(answer);
  }

  /** Before a call: refuses it while the breaker is open. With `answered`, `within` and `failed` it makes up `call`. */
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
    if (!this.#isClosed) this.#failures = 0;
    return answer;
  }

  failed(error: unknown): unknown {
    this.#count(error);
    return error;
  }

  /** The answer, if it comes in time and before the caller leaves. */
  within<T>(answer: Promise<T>, { where, timeoutMs, signal, onLate }: Patience<T>): Promise<T> {
    this.#pending += 1;
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
          // May start another call, so that the store is not idle in between.
          onLate?.(value);
          this.#leave();
          return;
        }
        end();
        resolve(this.answered(value));
        this.#leave();
      };
      answer.then(take, (error: unknown) => {
        // After the caller has left, an answer that failed by itself needs no further hearing.
        giveUp(error);
        this.#leave();
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
      this.#leave();
    }
  }

  #leave(): void {
    this.#pending -= 1;
    if (this.#pending > 0) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  #count(error: unknown): void {
    if (this.#isClosed || !isHeadgateError(error)) return;
    if (!(error instanceof BackendUnavailable && COUNTED.has(error.kind))) {
      // An answer, if not the one that was hoped for: the store lives.
      this.#failures = 0;
      return;
    }
    // Those who were written as one group get one error: it is one failure.
    if (error === this.#lastFailure) return;
    this.#lastFailure = error;
    this.#failures += 1;
    if (this.#failures >= FAILURES_TO_OPEN) this.#nextProbeMs = this.#clock.now() + PROBE_EVERY_MS;
  }
}

export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  return value instanceof Promise;
}
