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
  /** Asks in flight that may get a holder. */
  #asked = 0;

  constructor(clock: Required<Clock>, report: (error: unknown) => void) {
    this.#clock = clock;
    this.#report = report;
  }

  /** Whether there is no lease that has not expired, and no ask that may get one. */
  get isEmpty(): boolean {
    this.#dropExpired();
    return this.#leases.size === 0 && this.#asked === 0;
  }

  /** Notes an ask that gets a holder if it is granted. A grant while the limiter is closing is released too. */
  expect(answer: Promise<unknown>): void {
    const end = (): void => {
      this.#asked -= 1;
    };
    this.#asked += 1;
    answer.then(end, end);
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

  /** Starts to release every lease, and every lease that is added later. Returns how many there are and may be. */
  releaseAll(): number {
    this.#isClosing = true;
    const count = this.#leases.size + this.#asked;
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
