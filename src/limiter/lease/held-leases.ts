import type { Clock } from '../../clock.js';

/** The part of a lease that `close` needs. */
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
  #sweepAt = FIRST_SWEEP;
  #isClosing = false;

  constructor(clock: Required<Clock>, report: (error: unknown) => void) {
    this.#clock = clock;
    this.#report = report;
  }

  /** Releases the lease at once if the limiter is closing. */
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

  /** Starts to release every lease, and every lease that is added later. Returns how many it starts with. */
  releaseAll(): number {
    this.#isClosing = true;
    const count = this.#leases.size;
    for (const lease of this.#leases) this.#release(lease);
    this.#leases.clear();
    return count;
  }

  #release(lease: HeldLease): void {
    lease.release().catch(this.#report);
  }

  /** Keeps memory bounded if callers never end their leases. */
  #dropExpired(): void {
    const nowMs = this.#clock.now();
    for (const lease of this.#leases) {
      if (lease.expiresAt === null || lease.expiresAt.getTime() <= nowMs) this.#leases.delete(lease);
    }
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#leases.size);
  }
}
