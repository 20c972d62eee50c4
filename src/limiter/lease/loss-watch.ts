import { LeaseClosed } from '../../core/errors.js';
import type { Context } from '../context.js';
import type { LeaseAccount } from './lease-account.js';
import { hasSlotsToEmit, emitLeaseEnd, emitSlotsEnded } from './lease-events.js';

/** Aborts a signal when a lease is lost, and emits the loss. Its background sleep begins when the caller reads the signal. */
export class LossWatch {
  readonly #lost = new AbortController();
  readonly #context: Context;
  readonly #account: LeaseAccount;
  #sleep = new AbortController();
  #isTold = false;

  constructor(context: Context, account: LeaseAccount) {
    this.#context = context;
    this.#account = account;
    if (account.lost) this.abort();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Watches for the expiry of the lease. */
  start(): void {
    void this.#watch();
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

  /** Without a holder nothing can expire. */
  stopIfUnheld(): void {
    if (this.#account.expiresAtMs === null) this.stop();
  }

  /** Aborts the signal without telling a loss: another process has ended the lease. */
  abort(): void {
    this.#lost.abort(new LeaseClosed(this.#account.leaseId, 'expired', 'continue with'));
    this.stop();
  }

  /** The loss is emitted once, however often it is noticed. */
  noteLoss(): void {
    this.abort();
    if (this.#isTold) return;
    this.#isTold = true;
    const hadSlots = hasSlotsToEmit(this.#context, this.#account);
    emitLeaseEnd(this.#context, this.#account, 'expired');
    if (hadSlots) emitSlotsEnded(this.#context, this.#account);
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
    this.noteLoss();
  }
}
