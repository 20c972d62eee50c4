import type { Awaitable } from '../backend.js';
import type { Clock } from '../clock.js';
import { BackendUnavailable, isHeadgateError, type UnavailableKind } from '../core/errors.js';

const FAILURES_TO_OPEN = 5;
const PROBE_EVERY_MS = 1_000;

/** Throttling and contention are answers of a store that lives. */
const COUNTED: ReadonlySet<UnavailableKind> = new Set(['timeout', 'connection', 'server']);

export interface GuardedCall<T> {
  /** What is being done, for messages. */
  readonly where: string;
  readonly timeoutMs: number;
  readonly start: () => Awaitable<T>;
  /** The caller may leave before the answer. */
  readonly signal?: AbortSignal | undefined;
  /** Gets an answer that came after the caller had gone. */
  readonly onLate?: (answer: T) => void;
}

/** The one door to the store: every call has a deadline, and after five failures in a row only a probe a second goes through. */
export class Guard {
  readonly #clock: Required<Clock>;
  #failures = 0;
  #nextProbeMs = 0;

  constructor(clock: Required<Clock>) {
    this.#clock = clock;
  }

  /** An answer that is at hand is returned as it is: no timer, no turn of the event loop. */
  call<T>(call: GuardedCall<T>): Awaitable<T> {
    this.#refuseWhileOpen(call.where);
    let answer: Awaitable<T>;
    try {
      answer = call.start();
    } catch (error) {
      this.#count(error);
      throw error;
    }
    if (isPromise(answer)) return this.#await(answer, call);
    this.#failures = 0;
    return answer;
  }

  #refuseWhileOpen(where: string): void {
    if (this.#failures < FAILURES_TO_OPEN) return;
    const nowMs = this.#clock.now();
    if (nowMs < this.#nextProbeMs) {
      throw new BackendUnavailable(
        `${where}: the store failed ${this.#failures} times in a row; next try in ${this.#nextProbeMs - nowMs} ms`,
        'breaker-open',
      );
    }
    this.#nextProbeMs = nowMs + PROBE_EVERY_MS;
  }

  async #await<T>(answer: Promise<T>, call: GuardedCall<T>): Promise<T> {
    const { where, timeoutMs, signal, onLate } = call;
    const done = new AbortController();
    const leave = (): void => done.abort(signal?.reason);
    if (signal?.aborted === true) leave();
    signal?.addEventListener('abort', leave, { once: true });
    const deadline = this.#clock.sleep(timeoutMs, done.signal).then(() => {
      throw new BackendUnavailable(`${where}: no answer within ${timeoutMs} ms`, 'timeout');
    });
    let late = true;
    try {
      const value = await Promise.race([answer.finally(() => (late = false)), deadline]);
      this.#failures = 0;
      return value;
    } catch (error) {
      this.#count(error);
      // The deadline speaks for whoever left first: a rejected answer needs no further hearing.
      if (late) answer.then(onLate, ignore);
      throw error;
    } finally {
      signal?.removeEventListener('abort', leave);
      deadline.catch(ignore);
      done.abort();
    }
  }

  #count(error: unknown): void {
    if (!(isHeadgateError(error) && COUNTED.has((error as BackendUnavailable).kind))) return;
    this.#failures += 1;
    if (this.#failures >= FAILURES_TO_OPEN) this.#nextProbeMs = this.#clock.now() + PROBE_EVERY_MS;
  }
}

export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  return value instanceof Promise || (typeof value === 'object' && value !== null && 'then' in value);
}

function ignore(): void {}
