import type { EpochMs } from '../../core/units.js';
import type { DecidedBy } from '../acquire/decision-event.js';
import type { Amounts } from '../acquire/request.js';
import type { Context } from '../context.js';
import { checkLeaseTtl } from '../options.js';
import { report } from '../store-context.js';
import { isPromise } from '../outage/guard.js';
import { readDeltas, readOperationId, readOptionalTotals, readTotals } from './correction-input.js';
import type { LeaseAccount } from './lease-account.js';
import { LeaseWriter } from './lease-writer.js';
import { PlainGrant } from './plain-grant.js';

/** How far a lease is. Only an open lease can be changed. */
export type LeaseState = 'open' | 'committed' | 'rolled-back' | 'expired';

/** Options of `lease.adjust`. */
export interface AdjustOptions {
  /** An id that makes repeated adjusts of a portable lease count once. */
  readonly operationId?: string;
}

const DONE = Promise.resolve();

/** The handle that a granted acquire returns. It corrects, keeps, ends or undoes what was taken. */
export class Lease<L extends string = string> {
  readonly decidedBy: DecidedBy;
  readonly #context: Context;
  #grant: LeaseAccount | PlainGrant;
  readonly #ttlMs: number;
  /** Created when it is needed. Most leases are committed as they were granted, which only sets `#isCommitted`. */
  #writer: LeaseWriter | null = null;
  #isCommitted = false;
  #isHandedOver = false;

  /** @internal */
  constructor(context: Context, grant: LeaseAccount | PlainGrant, decidedBy: DecidedBy, ttlMs: number) {
    this.decidedBy = decidedBy;
    this.#context = context;
    this.#grant = grant;
    this.#ttlMs = ttlMs;
  }

  /** @internal */
  get account(): LeaseAccount {
    if (this.#grant instanceof PlainGrant) this.#grant = this.#grant.openAccount(this.#context);
    return this.#grant;
  }

  #openWriter(): LeaseWriter {
    this.#writer ??= new LeaseWriter(this.#context, this.account, this, this.#isCommitted ? 'committed' : null);
    return this.#writer;
  }

  get entityId(): string {
    return this.account.entityId;
  }

  get resource(): string {
    return this.account.resource;
  }

  get id(): string {
    return this.account.leaseId;
  }

  /** What this lease has taken from its own entity's limits, in whole tokens. */
  get consumed(): Readonly<Record<L, number>> {
    return this.account.consumed() as Record<L, number>;
  }

  get state(): LeaseState {
    if (this.#isCommitted) return 'committed';
    return this.#writer?.closed ?? stateOf(this.account, this.#context.clock.now());
  }

  /** When the holder expires unless it is extended; null without a holder. */
  get expiresAt(): Date | null {
    const { expiresAtMs } = this.account;
    return expiresAtMs === null ? null : new Date(expiresAtMs);
  }

  /** Aborts when the lease is lost: it expired, or a write found that its holder no longer exists. */
  get signal(): AbortSignal {
    return this.#openWriter().signal;
  }

  /**
   * Adds to what was taken, or gives part of it back. May cause debt; never denies. Resolves when the store has written it.
   * `operationId`: of a portable lease, a call that repeats the id of one of the last adjusts counts once, also from
   * another process.
   */
  async adjust(deltas: Amounts<L>, options: AdjustOptions = {}): Promise<void> {
    const id = readOperationId(options, this.decidedBy !== 'store' || this.account.tokenContent !== undefined);
    const read = readDeltas(this.account, deltas);
    await this.#openWriter().correct({ kind: 'adjust', deltas: isPromise(read) ? await read : read, id });
  }

  /** States the real totals of the named limits. Totals are absolute, so the call can be repeated. The lease stays open. */
  async settle(actuals: Amounts<L>): Promise<void> {
    const read = readTotals(this.account, actuals);
    await this.#openWriter().correct({ kind: 'settle', totals: isPromise(read) ? await read : read });
  }

  /** Gives the slots back now; the lease stays open for settle. */
  async release(): Promise<void> {
    await this.#openWriter().release();
  }

  /** Moves the expiry to `ttlMs` from now. Throws `LeaseClosed` if the holder is gone. No effect if it never had one. */
  async extend(ttlMs: number = this.#ttlMs): Promise<void> {
    checkLeaseTtl(ttlMs);
    await this.#openWriter().extend(ttlMs);
  }

  /** Settles if totals are given, gives the slots back, keeps what rates took. One write, or none if nothing changes. */
  commit(actuals?: Amounts<L>): Promise<void> {
    const isUnwritten = actuals === undefined && !this.#isCommitted && !this.#grant.holds;
    // The common case.
    if (isUnwritten && this.#writer === null && this.#context.options.onEvent === null) {
      this.#isCommitted = true;
      return DONE;
    }
    return isUnwritten && this.#openWriter().commitUnwritten() ? DONE : this.#commit(actuals);
  }

  async #commit(actuals: Amounts<L> | undefined): Promise<void> {
    const read = readOptionalTotals(this.account, actuals);
    await this.#openWriter().end({ kind: 'commit', totals: isPromise(read) ? await read : read });
  }

  /** Gives everything back. A second call sends only what failed in the first. */
  async rollback(): Promise<void> {
    await this.#openWriter().end({ kind: 'rollback' });
  }

  /** @internal What `run` does when its function throws: keeps settled limits and gives the others back. */
  async rollbackUnsettled(): Promise<void> {
    await this.#openWriter().endUnsettled();
  }

  /**
   * A signed text with which `limiter.leases.resume` continues the lease, in this process or in another one. Only of a
   * lease that was acquired with `portable: true`. After this call, neither the end of a scope or of `run` nor `close`
   * ends the lease: that is left to the process that resumes it.
   */
  async token(): Promise<string> {
    // Loaded when it is needed, because loading `node:crypto` takes longer than the rest of the library.
    const { buildLeaseToken } = await import('./lease-token.js');
    const content = this.decidedBy === 'store' ? this.account.tokenContent?.() : undefined;
    const token = buildLeaseToken(content, this.#context.options.leaseSecrets);
    this.#isHandedOver = true;
    this.#context.heldLeases.delete(this);
    return token;
  }

  /** @internal Whether another process may continue the lease. */
  get isHandedOver(): boolean {
    return this.#isHandedOver;
  }

  /** Commits a lease that is still open and has no token. Never throws: failures reach `onError`. */
  async [Symbol.asyncDispose](): Promise<void> {
    // A commit or rollback that the caller did not await may still be running.
    await this.#writer?.idle();
    if (this.#isCommitted || (this.#writer?.closed ?? null) !== null || this.#isHandedOver) return;
    try {
      await this.commit();
    } catch (error) {
      report(this.#context.options, error, 'lease dispose');
    }
  }
}

function stateOf({ expiresAtMs, lost, closedAs = null }: LeaseAccount, nowMs: EpochMs): LeaseState {
  if (closedAs !== null) return closedAs;
  return lost || (expiresAtMs !== null && expiresAtMs <= nowMs) ? 'expired' : 'open';
}
