import { startTimer, type Clock } from '../../clock.js';

/** What `close` needs of a lease. */
export interface HeldLease {
  readonly expiresAt: Date | null;
  release(): Promise<void>;
}

const FIRST_SWEEP = 1_000;

/** Leases of this process that have a holder in the store, so that closing the limiter can give the slots back. */
export class HeldLeases {
  readonly #leases = new Set<HeldLease>();
  readonly #clock: Required<Clock>;
  readonly #report: (error: unknown) => void;
  readonly #releasing = new Set<Promise<void>>();
  #sweepAt = FIRST_SWEEP;
  #isClosing = false;

  constructor(clock: Required<Clock>, report: (error: unknown) => void) {
    this.#clock = clock;
    this.#report = report;
  }

  /** A grant that is answered while the limiter closes is given back at once. */
  add(lease: HeldLease): void {
    if (this.#isClosing) {
      this.#release(lease);
      return;
    }
    this.#leases.add(lease);
    if (this.#leases.size >= this.#sweepAt) this.#dropExpired();
  }

  delete(lease: HeldLease): void {
    this.#leases.delete(lease);
  }

  /** Gives back what every lease holds. Resolves when all have been tried, at the latest after `timeoutMs`. */
  async releaseAll(timeoutMs: number): Promise<void> {
    this.#isClosing = true;
    for (const lease of this.#leases) this.#release(lease);
    this.#leases.clear();
    if (this.#releasing.size === 0) return;
    await new Promise<void>((resolve) => {
      const stopTimer = startTimer(this.#clock, timeoutMs, resolve);
      void Promise.all(this.#releasing).finally(() => {
        stopTimer();
        resolve();
      });
    });
  }

  #release(lease: HeldLease): void {
    const releasing = lease
      .release()
      .catch(this.#report)
      .finally(() => this.#releasing.delete(releasing));
    this.#releasing.add(releasing);
  }

  /** Callers that never end their leases must not fill the memory. */
  #dropExpired(): void {
    const nowMs = this.#clock.now();
    for (const lease of this.#leases) {
      if (lease.expiresAt === null || lease.expiresAt.getTime() <= nowMs) this.#leases.delete(lease);
    }
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#leases.size);
  }
}
