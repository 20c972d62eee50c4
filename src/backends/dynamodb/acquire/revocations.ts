import { BackendUnavailable } from '../../../core/errors.js';
import { type Deadline, deadlineIn } from '../client/deadline.js';

/** About two minutes in all: an outage that lasts longer is for the operator, and for the expiry of the lease. */
const MAX_ATTEMPTS = 10;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
const ATTEMPT_MS = 1_000;

/** Beyond this, a process has lost so many answers that it would only add to what is wrong. */
const MAX_PENDING = 1_000;

/** Undoes one grant if it was made. May be called again after it failed. */
export type Revoke = (deadline: Deadline) => Promise<void>;

/**
 * Grants that no caller will ever hear of, on their way back: each is tried until it is certain that nothing is held. The
 * waits between two attempts keep no process alive.
 */
export class Revocations {
  readonly #random: () => number;
  readonly #pending = new Set<Promise<void>>();
  readonly #sleepers = new Set<() => void>();
  #isClosing = false;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** `report` hears of it if it cannot be done. */
  add(revoke: Revoke, report: (error: unknown) => void): void {
    if (this.#pending.size >= MAX_PENDING) {
      report(new BackendUnavailable(`More than ${MAX_PENDING} grants wait to be given back`, 'contended'));
      return;
    }
    const pending = this.#try(revoke, report).finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }

  /** Tries each once more, without waiting any longer. */
  async finish(): Promise<void> {
    this.#isClosing = true;
    for (const wake of this.#sleepers) wake();
    await Promise.all(this.#pending);
  }

  async #try(revoke: Revoke, report: (error: unknown) => void): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt === MAX_ATTEMPTS || this.#isClosing;
      try {
        await revoke(deadlineIn(ATTEMPT_MS));
        return;
      } catch (error) {
        if (isLast) {
          report(error);
          return;
        }
      }
      await this.#sleep(this.#random() * Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1)));
    }
  }

  async #sleep(ms: number): Promise<void> {
    if (this.#isClosing) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#sleepers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      timer.unref();
      this.#sleepers.add(wake);
    });
  }
}
