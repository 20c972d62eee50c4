import { BackendUnavailable } from '../../../core/errors.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';

/** About two minutes in all. A longer outage is left to the operator and to the expiry of the lease. */
const MAX_ATTEMPTS = 10;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
const ATTEMPT_MS = 1_000;

/** Beyond this a process has lost so many answers that retries would only add load to a failing store. */
const MAX_PENDING = 1_000;

/** Undoes one grant if it was made. May be called again after a failure. */
export type Revoke = (deadline: Deadline) => Promise<void>;

/**
 * Gives back grants that no caller received. Each is retried until it is certain that nothing is held. The waits
 * between attempts do not keep the process alive.
 */
export class Revocations {
  readonly #random: () => number;
  readonly #pending = new Set<Promise<void>>();
  readonly #sleepers = new Set<() => void>();
  #isClosing = false;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Calls `report` if the revocation fails for good. */
  add(revoke: Revoke, report: (error: unknown) => void): void {
    if (this.#pending.size >= MAX_PENDING) {
      report(new BackendUnavailable(`More than ${MAX_PENDING} grants wait to be given back`, 'contended'));
      return;
    }
    const pending = this.#try(revoke, report).finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }

  /** Tries each pending revocation once more, without further waits. */
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
