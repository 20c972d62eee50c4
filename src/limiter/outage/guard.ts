import type { Awaitable } from '../../backend.js';
import { type Clock, startTimer } from '../../clock.js';
import { BackendUnavailable } from '../../core/errors.js';
import { Breaker, type OnOutage } from './breaker.js';
import { PendingCalls } from '../../core/pending-calls.js';

export interface CallDetails<T> {
  /** The operation, for messages. */
  readonly where: string;
  /** null: no deadline for the call. Each request that the store makes then has its own deadline. */
  readonly timeoutMs: number | null;
  /** Aborts when the caller stops waiting. */
  readonly signal?: AbortSignal | undefined;
  /** Called with an answer that arrives after the caller stopped waiting. */
  readonly onLate?: (answer: T) => void;
  /**
   * The failure of a part of the answer, whose parts fail separately. undefined: the answer shows that the store works.
   * null: it shows nothing, because the store was not asked.
   */
  readonly failureIn?: (answer: T) => unknown;
}

/** Every call to the store goes through it. It is the breaker, and sets the deadline of each call. */
export class Guard extends Breaker {
  readonly #clock: Required<Clock>;
  /** Calls without an answer yet, including those whose caller stopped waiting. */
  readonly #pending = new PendingCalls();

  constructor(clock: Required<Clock>, onOutage: OnOutage | null = null) {
    super(clock, onOutage);
    this.#clock = clock;
  }

  /** Resolves when no call is in flight: at once for a store that answers synchronously. */
  idle(): Promise<void> {
    return this.#pending.idle();
  }

  /**
   * Makes one call to the store: `enter`, then `answered`, `within` or `failed`. A synchronous answer is returned
   * without a timer and without a promise.
   */
  call<T>(details: CallDetails<T>, start: () => Awaitable<T>): Awaitable<T> {
    this.enter(details.where);
    let answer: Awaitable<T>;
    try {
      answer = start();
    } catch (error) {
      throw this.failed(error);
    }
    return isPromise(answer) ? this.within(answer, details) : this.#received(answer, details);
  }

  #received<T>(answer: T, { failureIn }: CallDetails<T>): T {
    const failure = failureIn?.(answer);
    if (failure === undefined) return this.answered(answer);
    if (failure === null) this.unasked();
    else this.failed(failure);
    return answer;
  }

  /** The answer, if it arrives before the deadline and before the signal aborts. */
  within<T>(answer: Promise<T>, details: CallDetails<T>): Promise<T> {
    const { timeoutMs, signal } = details;
    this.#pending.begin();
    if (timeoutMs === null) return this.#whenever(answer, details);
    return new Promise((resolve, reject) => {
      // One object and few closures: every acquire of a hot group waits here.
      const waiting: WaitingCall<T> = { details, resolve, reject, state: 'waits', stopTimer: null, leave: null };
      waiting.stopTimer = startTimer(this.#clock, timeoutMs, () => this.#expire(waiting));
      answer.then(
        (value) => this.#take(waiting, value),
        (error: unknown) => {
          // No effect if the caller has stopped waiting.
          if (waiting.state === 'waits') endWith(waiting, this.failed(error));
          this.#pending.end();
        },
      );
      if (signal !== undefined) leaveWith(waiting, signal);
    });
  }

  #expire<T>(waiting: WaitingCall<T>): void {
    const { where, timeoutMs } = waiting.details;
    if (waiting.state !== 'waits') return;
    endWith(waiting, this.failed(new BackendUnavailable(`${where}: no answer within ${timeoutMs} ms`, 'timeout')));
  }

  #take<T>(waiting: WaitingCall<T>, value: T): void {
    const { state, details, resolve } = waiting;
    if (state === 'waits') {
      end(waiting);
      resolve(this.#received(value, details));
    } else {
      // Unlike an answer that came after the deadline, this one shows that the store works.
      if (state === 'left') this.#received(value, details);
      // Before the end of this call, because `onLate` may start another call and the store must not count as idle in between.
      details.onLate?.(value);
    }
    this.#pending.end();
  }

  async #whenever<T>(answer: Promise<T>, details: CallDetails<T>): Promise<T> {
    try {
      return this.#received(await answer, details);
    } catch (error) {
      throw this.failed(error);
    } finally {
      this.#pending.end();
    }
  }
}

/** A caller that awaits an answer. `left`: its signal has aborted. */
interface WaitingCall<T> {
  readonly details: CallDetails<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
  state: 'waits' | 'left' | 'over';
  stopTimer: (() => void) | null;
  /** The listener of its signal. */
  leave: (() => void) | null;
}

function end<T>(waiting: WaitingCall<T>): void {
  waiting.state = 'over';
  waiting.stopTimer?.();
  if (waiting.leave !== null) waiting.details.signal?.removeEventListener('abort', waiting.leave);
}

function endWith<T>(waiting: WaitingCall<T>, error: unknown): void {
  end(waiting);
  waiting.reject(error);
}

/** The reason of a caller says nothing about the store, also if it is an error of a limiter. */
function leaveWith<T>(waiting: WaitingCall<T>, signal: AbortSignal): void {
  const leave = (): void => {
    endWith(waiting, signal.reason);
    waiting.state = 'left';
  };
  waiting.leave = leave;
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
}

export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  return value instanceof Promise;
}
