import type { ClosedState } from '../../core/bucket/portable.js';
import { BackendUnavailable, LeaseClosed } from '../../core/errors.js';
import type { Context } from '../context.js';
import type { HeldLease } from './held-leases.js';
import type { LeaseAccount } from './lease-account.js';
import type { Correction, Ending, LeaseOperation } from './lease-operation.js';
import { LossWatch } from './loss-watch.js';
import { hasSlotsToEmit, emitLeaseEnd, emitSlots, emitSlotsEnded } from './lease-events.js';

/** Performs the operations of one lease, one after another, and keeps whether the lease has ended or was lost. */
export class LeaseWriter {
  readonly #context: Context;
  readonly #account: LeaseAccount;
  readonly #held: HeldLease;
  #closed: ClosedState | null;
  #watch: LossWatch | null = null;
  readonly #settled = new Set<string>();
  /** Serialises the writes of one lease, because each is calculated from the result of the previous one. */
  #writing: Promise<unknown> | null = null;

  /** `held`: the lease, as `context.heldLeases` has it. */
  constructor(context: Context, account: LeaseAccount, held: HeldLease, closed: ClosedState | null) {
    this.#context = context;
    this.#account = account;
    this.#held = held;
    this.#closed = closed;
  }

  /** How this process has ended the lease; null: not yet. */
  get closed(): ClosedState | null {
    return this.#closed;
  }

  /** Aborts when the lease is lost. */
  get signal(): AbortSignal {
    const isFirst = this.#watch === null;
    const watch = this.#lossWatch();
    if (isFirst && this.#closed === null) watch.start();
    return watch.signal;
  }

  async correct(correction: Correction): Promise<void> {
    await this.#exclusively(async () => {
      this.#refuseClosed(correction.kind);
      this.#refuseClosedLimiter(correction.kind);
      await this.#perform(correction.kind, correction);
      if (correction.kind === 'settle') for (const { name } of correction.totals) this.#settled.add(name);
    });
  }

  /** Gives the slots back. No effect if the lease has none, or has ended. */
  async release(): Promise<void> {
    await this.#exclusively(async () => {
      if (this.#closed !== null || !this.#account.holds) return;
      this.#refuseClosedLimiter('release');
      await this.#perform('release', { kind: 'release' });
      this.#context.heldLeases.delete(this.#held);
    });
  }

  async extend(ttlMs: number): Promise<void> {
    await this.#exclusively(async () => {
      this.#refuseClosed('extend');
      if (this.#account.lost) throw new LeaseClosed(this.#account.leaseId, 'expired', 'extend');
      if (!this.#account.holds) return;
      this.#refuseClosedLimiter('extend');
      const extended = await this.#account.extend(ttlMs);
      if (extended === true) {
        this.#watch?.restart();
        emitSlots(this.#context, this.#account);
        return;
      }
      if (extended === false) this.#lossWatch().noteLoss();
      else this.#endedElsewhere(hasSlotsToEmit(this.#context, this.#account));
      throw new LeaseClosed(this.#account.leaseId, extended === false ? 'expired' : extended, 'extend');
    });
  }

  /** Commits a lease that has nothing to write. False: it has ended, or a write is in flight. */
  commitUnwritten(): boolean {
    if (this.#closed !== null || this.#writing !== null || this.#account.isPartlyChanged === true) return false;
    this.#close('committed', false);
    return true;
  }

  async end(ending: Ending): Promise<void> {
    await this.#exclusively(async () => {
      const state = ending.kind === 'rollback' ? 'rolled-back' : 'committed';
      if (this.#closed === state) return;
      const attempted = ending.kind === 'rollback' ? 'roll back' : 'commit';
      this.#refuseClosed(attempted);
      this.#refuseClosedLimiter(attempted);
      const returned = returnedBy(ending, this.#context, this.#account);
      const isRepeated = this.#account.closedAs === state;
      await this.#perform(attempted, ending);
      this.#close(state, isRepeated, returned);
      this.#context.heldLeases.delete(this.#held);
    });
  }

  /** Keeps the limits that were settled, and gives the others back. */
  async endUnsettled(): Promise<void> {
    // A settle that the caller did not await may still be running.
    await this.idle();
    await this.end(this.#settled.size === 0 ? { kind: 'rollback' } : { kind: 'keep', names: this.#settled });
  }

  /** Resolves when no write is in flight. */
  async idle(): Promise<void> {
    await this.#writing?.catch(() => {});
  }

  async #perform(attempted: string, operation: LeaseOperation): Promise<void> {
    const hadSlots = hasSlotsToEmit(this.#context, this.#account);
    const performed = await this.#account.perform(operation);
    if (performed !== 'done' && performed !== 'lost') {
      this.#endedElsewhere(hadSlots);
      throw new LeaseClosed(this.#account.leaseId, performed, attempted);
    }
    if (hadSlots && !hasSlotsToEmit(this.#context, this.#account)) emitSlotsEnded(this.#context, this.#account);
    if (performed === 'lost') this.#lossWatch().noteLoss();
    else this.#watch?.stopIfUnheld();
  }

  #endedElsewhere(hadSlots: boolean): void {
    this.#watch?.abort();
    if (hadSlots) emitSlotsEnded(this.#context, this.#account);
  }

  async #exclusively(work: () => Promise<void>): Promise<void> {
    const turn = this.#writing === null ? work() : this.#writing.then(work, work);
    this.#writing = turn;
    try {
      await turn;
    } finally {
      if (this.#writing === turn) this.#writing = null;
    }
  }

  /** `isRepeated`: a client that got no answer has sent the same again. `returned`: what a rollback gave back. */
  #close(state: ClosedState, isRepeated: boolean, returned?: Readonly<Record<string, number>>): void {
    this.#closed = state;
    this.#watch?.stop();
    if (!isRepeated) emitLeaseEnd(this.#context, this.#account, state, returned);
  }

  #lossWatch(): LossWatch {
    this.#watch ??= new LossWatch(this.#context, this.#account);
    return this.#watch;
  }

  #refuseClosed(attempted: string): void {
    if (this.#closed !== null) throw new LeaseClosed(this.#account.leaseId, this.#closed, attempted);
  }

  #refuseClosedLimiter(attempted: string): void {
    if (this.#context.guard.isClosed) throw closedLimiterError(this.#account.leaseId, attempted);
  }
}

/** What a rollback gives back; undefined: there is no listener. */
function returnedBy({ kind }: Ending, { options }: Context, account: LeaseAccount) {
  return kind === 'rollback' && options.onEvent !== null ? account.consumed() : undefined;
}

function closedLimiterError(leaseId: string, attempted: string): BackendUnavailable {
  const advice = 'Commit or roll back leases before close(), which gives back the slots of those still open';
  return new BackendUnavailable(`Cannot ${attempted} lease ${leaseId}: the limiter is closed. ${advice}`, 'closed');
}
