import { BackendUnavailable } from '../../../core/errors.js';
import type { Deadline } from './deadline.js';

/** More concurrent requests would only wait for each other and for new connections. */
const MAX_IN_FLIGHT = 128;

interface Waiter {
  readonly turn: Turn;
  readonly admit: () => void;
  readonly refuse: (error: BackendUnavailable) => void;
}

/**
 * Bounds the concurrent requests of one process. Further requests wait in the order of their arrival. A request that
 * cannot start in time is refused, and is not sent.
 */
export class InFlight {
  #free: number;
  readonly #waiters: Waiter[] = [];
  #answeredMs = Number.NEGATIVE_INFINITY;

  constructor(most: number = MAX_IN_FLIGHT) {
    this.#free = most;
  }

  /**
   * Returns undefined if the request may start now, else a promise that resolves when it may or rejects if too late.
   */
  enter(deadline: Deadline): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= 1;
      return undefined;
    }
    return new Promise((admit, refuse) => {
      this.#waiters.push({ turn: turnUntil(deadline), admit, refuse });
    });
  }

  /** Ends a request. `answered`: the store answered it, whatever the answer says. */
  leave(answered: boolean): void {
    if (answered) this.#answeredMs = performance.now();
    this.#free += 1;
    while (this.#free > 0) {
      const waiter = this.#waiters.shift();
      if (waiter === undefined) return;
      if (isOver(waiter.turn)) {
        waiter.refuse(refusalOf(waiter.turn, this.#answeredMs));
        continue;
      }
      this.#free -= 1;
      waiter.admit();
    }
  }
}

/** A request that waits to be sent. */
export interface Turn {
  readonly sinceMs: number;
  /** The latest instant at which it may start. */
  readonly untilMs: number;
}

/** Half of the time is reserved for the request: one that starts later would most likely time out. */
export function turnUntil(deadline: Deadline): Turn {
  const sinceMs = performance.now();
  return { sinceMs, untilMs: sinceMs + (deadline - sinceMs) / 2 };
}

export function isOver({ untilMs }: Turn): boolean {
  return performance.now() > untilMs;
}

/**
 * A store that answered meanwhile is available: then this process sends too many requests, and the caller may retry.
 */
export function refusalOf({ sinceMs }: Turn, answeredMs: number): BackendUnavailable {
  return answeredMs >= sinceMs
    ? new BackendUnavailable('This process sends too many requests at once: one was not sent', 'contended')
    : new BackendUnavailable('The store answers none of the requests under way: one was not sent', 'timeout');
}
