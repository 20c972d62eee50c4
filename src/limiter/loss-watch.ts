import { LeaseClosed } from '../core/errors.js';
import type { Context } from './context.js';
import type { LeaseAccount } from './lease-account.js';

/** Tells a signal when a lease is lost. Sleeps in the background only while somebody has asked for the signal. */
export class LossWatch {
  readonly #lost = new AbortController();
  readonly #ended = new AbortController();
  readonly #account: LeaseAccount;

  constructor(context: Context, account: LeaseAccount, isClosed: () => boolean) {
    this.#account = account;
    if (account.lost) this.lose();
    else if (!isClosed() && account.expiresAtMs !== null) void this.#watch(context);
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  lose(): void {
    this.#lost.abort(new LeaseClosed(this.#account.leaseId, 'expired', 'go on with'));
    this.#ended.abort();
  }

  stop(): void {
    this.#ended.abort();
  }

  async #watch({ clock }: Context): Promise<void> {
    try {
      for (let endMs = this.#account.expiresAtMs; endMs !== null; endMs = this.#account.expiresAtMs) {
        const restMs = endMs - clock.now();
        if (restMs <= 0) {
          this.lose();
          return;
        }
        await clock.sleep(restMs, this.#ended.signal, { background: true });
      }
    } catch {
      // Ended: the sleep was told to stop.
    }
  }
}
