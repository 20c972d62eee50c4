import { LeaseClosed } from '../../core/errors.js';
import type { Context } from '../context.js';
import type { LeaseAccount } from './lease-account.js';

/** Aborts a signal when a lease is lost. Created, with its background sleep, only when the caller reads the signal. */
export class LossWatch {
  readonly #lost = new AbortController();
  readonly #context: Context;
  readonly #account: LeaseAccount;
  readonly #onExpiry: () => void;
  #sleep = new AbortController();

  /** `onExpiry` is called when the time of the lease has passed. */
  constructor(context: Context, account: LeaseAccount, isClosed: () => boolean, onExpiry: () => void) {
    this.#onExpiry = onExpiry;
    this.#context = context;
    this.#account = account;
    if (account.lost) this.lose();
    else if (!isClosed()) void this.#watch();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  lose(): void {
    this.#lost.abort(new LeaseClosed(this.#account.leaseId, 'expired', 'continue with'));
    this.stop();
  }

  /** Called when the expiry has moved, possibly to an earlier time. */
  restart(): void {
    this.stop();
    this.#sleep = new AbortController();
    void this.#watch();
  }

  stop(): void {
    this.#sleep.abort();
  }

  async #watch(): Promise<void> {
    const { clock } = this.#context;
    const { expiresAtMs } = this.#account;
    if (expiresAtMs === null || this.#lost.signal.aborted) return;
    try {
      await clock.sleep(Math.max(0, expiresAtMs - clock.now()), this.#sleep.signal, { background: true });
    } catch {
      // The watch was stopped.
      return;
    }
    this.lose();
    this.#onExpiry();
  }
}
