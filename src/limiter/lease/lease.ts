import type { Amount } from '../../core/bucket/decide.js';
import { BackendUnavailable, LeaseClosed, ValidationError } from '../../core/errors.js';
import { isConsumed } from '../../core/limit.js';
import { holdsSlots, type LimitKind } from '../../core/limit-kind.js';
import { MAX_AMOUNT } from '../../core/units.js';
import type { Context } from '../context.js';
import { report } from '../store-context.js';
import type { DecidedBy } from '../acquire/decision-event.js';
import { emit } from '../events/emit.js';
import type { LeaseEnded } from '../events/limiter-event.js';
import type { LeaseAccount } from './lease-account.js';
import type { LeaseOperation } from './lease-operation.js';
import { LossWatch } from './loss-watch.js';
import { PlainGrant } from './plain-grant.js';
import { checkLeaseTtl } from '../options.js';
import { type Amounts, readAmounts } from '../acquire/request.js';

export type LeaseState = 'open' | 'committed' | 'rolled-back' | 'expired';

export interface AdjustOptions {
  readonly operationId?: string;
}

const DONE = Promise.resolve();

/** The handle that a granted acquire returns. It corrects, keeps, ends or undoes what was taken. */
export class Lease<L extends string = string> {
  readonly decidedBy: DecidedBy;
  readonly #context: Context;
  #grant: LeaseAccount | PlainGrant;
  readonly #ttlMs: number;
  #closed: 'committed' | 'rolled-back' | null = null;
  #watch: LossWatch | null = null;
  #settled: Set<string> | null = null;
  #isLossTold = false;
  #isHandedOver = false;
  /** Serialises the writes of one lease, because each is calculated from the result of the previous one. */
  #writing: Promise<unknown> | null = null;

  /** @internal */
  constructor(context: Context, grant: LeaseAccount | PlainGrant, decidedBy: DecidedBy, ttlMs: number) {
    this.decidedBy = decidedBy;
    this.#context = context;
    this.#grant = grant;
    this.#ttlMs = ttlMs;
  }

  get #account(): LeaseAccount {
    if (this.#grant instanceof PlainGrant) this.#grant = this.#grant.openAccount(this.#context);
    return this.#grant;
  }

  get entityId(): string {
    return this.#account.entityId;
  }

  get resource(): string {
    return this.#account.resource;
  }

  get id(): string {
    return this.#account.leaseId;
  }

  /** What this lease has taken from its own entity's limits, in whole tokens. */
  get consumed(): Readonly<Record<L, number>> {
    return this.#account.consumed() as Record<L, number>;
  }

  /** @internal What this lease has taken from the limits of its own entity whose kind fits. */
  takenOf(isWanted: (kind: LimitKind) => boolean): Readonly<Record<string, number>> {
    return this.#only(isWanted, this.consumed);
  }

  /** @internal `consumed` without slots. */
  get tokens(): Readonly<Record<string, number>> {
    return this.takenOf(isConsumed);
  }

  get state(): LeaseState {
    if (this.#closed !== null) return this.#closed;
    const { expiresAtMs, lost, closedAs = null } = this.#account;
    if (closedAs !== null) return closedAs;
    return lost || (expiresAtMs !== null && expiresAtMs <= this.#context.clock.now()) ? 'expired' : 'open';
  }

  /** When the holder expires unless it is extended; null without a holder. */
  get expiresAt(): Date | null {
    const { expiresAtMs } = this.#account;
    return expiresAtMs === null ? null : new Date(expiresAtMs);
  }

  /** Aborts when the lease is lost: it expired, or a write found that its holder no longer exists. */
  get signal(): AbortSignal {
    this.#watch ??= new LossWatch(
      this.#context,
      this.#account,
      () => this.#closed !== null,
      () => this.#tellLoss(),
    );
    return this.#watch.signal;
  }

  /**
   * Adds to what was taken, or gives part of it back. May cause debt; never denies. Resolves when the store has written it.
   * `operationId`: of a portable lease, a call that repeats the id of one of the last adjusts counts once, also from
   * another process.
   */
  async adjust(deltas: Amounts<L>, options: AdjustOptions = {}): Promise<void> {
    const { operationId = null } = options;
    checkOperationId(operationId);
    if (operationId !== null && this.decidedBy === 'store' && this.#account.tokenContent === undefined) {
      throw new ValidationError('operationId', 'left out: only a portable lease remembers it', operationId);
    }
    const amounts = readAmounts('deltas', required('deltas', deltas), -MAX_AMOUNT);
    if (this.#isUnknown(amounts)) await this.#account.learnLimits();
    this.#refuseOthers('deltas', amounts);
    await this.#write('adjust', { kind: 'adjust', deltas: amounts, id: operationId });
  }

  /** States the real totals of the named limits. Totals are absolute, so the call can be repeated. The lease stays open. */
  async settle(actuals: Amounts<L>): Promise<void> {
    const amounts = readAmounts('actuals', required('actuals', actuals), 0);
    if (this.#isUnknown(amounts)) await this.#account.learnLimits();
    this.#refuseOthers('actuals', amounts);
    await this.#write('settle', { kind: 'settle', totals: amounts });
    this.#settled = new Set([...(this.#settled ?? []), ...amounts.map(({ name }) => name)]);
  }

  /** Gives the slots back now; the lease stays open for settle. */
  async release(): Promise<void> {
    await this.#exclusively(async () => {
      if (this.#closed !== null || !this.#account.holds) return;
      this.#refuseClosedLimiter('release');
      await this.#perform('release', { kind: 'release' });
      this.#context.heldLeases.delete(this);
    });
  }

  /** Moves the expiry to `ttlMs` from now. Throws `LeaseClosed` if the holder no longer exists. No effect without a holder. */
  async extend(ttlMs: number = this.#ttlMs): Promise<void> {
    checkLeaseTtl(ttlMs);
    await this.#exclusively(async () => {
      this.#refuseClosed('extend');
      if (this.#account.lost) throw new LeaseClosed(this.id, 'expired', 'extend');
      if (!this.#account.holds) return;
      this.#refuseClosedLimiter('extend');
      const extended = await this.#account.extend(ttlMs);
      if (extended === true) {
        this.#watch?.restart();
        this.tellSlots();
        return;
      }
      if (extended !== false && this.#hasSlotsToTell()) this.#tellSlots({});
      if (extended === false) this.#noteLoss();
      else this.#watch?.lose();
      throw new LeaseClosed(this.id, extended === false ? 'expired' : extended, 'extend');
    });
  }

  /** Settles if totals are given, gives the slots back, keeps what rates took. One write, or none if nothing changes. */
  commit(actuals?: Amounts<L>): Promise<void> {
    // The common case: nothing to write.
    if (actuals === undefined && this.#closed === null && this.#writing === null && !this.#grant.holds) {
      this.#close('committed');
      return DONE;
    }
    return this.#commit(actuals);
  }

  async #commit(actuals: Amounts<L> | undefined): Promise<void> {
    const amounts = readAmounts('actuals', actuals, 0);
    if (this.#isUnknown(amounts)) await this.#account.learnLimits();
    this.#refuseOthers('actuals', amounts);
    if (this.#closed === 'committed') return;
    await this.#end('committed', { kind: 'commit', totals: amounts });
  }

  /** Gives everything back. A second call sends only what failed in the first. */
  async rollback(): Promise<void> {
    await this.#end('rolled-back', { kind: 'rollback' });
  }

  /** @internal What `run` does when its function throws: keeps settled limits and gives the others back. */
  async rollbackUnsettled(): Promise<void> {
    const settled = this.#settled;
    if (settled === null) return this.rollback();
    await this.#end('committed', { kind: 'keep', names: settled });
  }

  /**
   * A signed text with which `limiter.leases.resume` continues the lease, in this process or in another one. Only of a
   * lease that was acquired with `portable: true`. After this call, neither the end of a scope or of `run` nor `close`
   * ends the lease: that is left to the process that resumes it.
   */
  async token(): Promise<string> {
    const { leaseSecrets } = this.#context.options;
    // Loaded when it is needed, because loading `node:crypto` takes longer than the rest of the library.
    const { buildLeaseToken, requireSecrets } = await import('./lease-token.js');
    requireSecrets(leaseSecrets);
    const content = this.decidedBy === 'store' ? this.#account.tokenContent?.() : undefined;
    if (content === undefined) {
      const expected = 'true in the request of a lease that the store has granted: only such a lease has a token';
      throw new ValidationError('portable', expected, false);
    }
    const token = buildLeaseToken(content, leaseSecrets);
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
    await this.#writing?.catch(() => {});
    if (this.#closed !== null || this.#isHandedOver) return;
    try {
      await this.commit();
    } catch (error) {
      report(this.#context.options, error, 'lease dispose');
    }
  }

  async #end(state: 'committed' | 'rolled-back', operation: LeaseOperation): Promise<void> {
    await this.#exclusively(async () => {
      if (this.#closed === state) return;
      const attempted = state === 'committed' ? 'commit' : 'roll back';
      this.#refuseClosed(attempted);
      this.#refuseClosedLimiter(attempted);
      const taken = state === 'rolled-back' && this.#context.options.onEvent !== null ? this.consumed : undefined;
      await this.#perform(attempted, operation);
      this.#close(state, taken);
      this.#context.heldLeases.delete(this);
    });
  }

  async #write(attempted: string, operation: LeaseOperation): Promise<void> {
    await this.#exclusively(async () => {
      this.#refuseClosed(attempted);
      this.#refuseClosedLimiter(attempted);
      await this.#perform(attempted, operation);
    });
  }

  async #perform(attempted: string, operation: LeaseOperation): Promise<void> {
    const hadSlots = this.#hasSlotsToTell();
    const performed = await this.#account.perform(operation);
    const isEndedElsewhere = performed !== 'done' && performed !== 'lost';
    if (hadSlots && (isEndedElsewhere || !this.#hasSlotsToTell())) this.#tellSlots({});
    if (performed === 'done') return;
    if (performed === 'lost') {
      this.#noteLoss();
      return;
    }
    this.#watch?.lose();
    throw new LeaseClosed(this.id, performed, attempted);
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

  /** `amounts`: what a rollback gave back. */
  #close(state: 'committed' | 'rolled-back', amounts?: Readonly<Record<string, number>>): void {
    this.#closed = state;
    this.#watch?.stop();
    if (this.#context.options.onEvent !== null) this.#tellEnd(state, amounts);
  }

  #noteLoss(): void {
    this.#watch?.lose();
    this.#tellLoss();
  }

  /** Once, however often the loss is noticed. */
  #tellLoss(): void {
    if (this.#context.options.onEvent === null || this.#isLossTold) return;
    this.#isLossTold = true;
    const hadSlots = this.#hasSlotsToTell();
    this.#tellEnd('expired');
    if (hadSlots) this.#tellSlots({});
  }

  #only(
    isWanted: (kind: LimitKind) => boolean,
    amounts: Readonly<Record<string, number>>,
  ): Readonly<Record<string, number>> {
    const isOfKind = (name: string): boolean => {
      const kind = this.#account.kindOf(name);
      return kind !== undefined && isWanted(kind);
    };
    // Most leases have only tokens: nothing is copied for them.
    if (Object.keys(amounts).every(isOfKind)) return amounts;
    return Object.fromEntries(Object.entries(amounts).filter(([name]) => isOfKind(name)));
  }

  /** @internal Tells `onEvent` which slots the lease holds, and for how long. */
  tellSlots(): void {
    if (this.#hasSlotsToTell()) this.#tellSlots(this.takenOf(holdsSlots));
  }

  #hasSlotsToTell(): boolean {
    if (this.#context.options.onEvent === null || !this.#grant.holds) return false;
    return Object.keys(this.takenOf(holdsSlots)).length > 0;
  }

  #tellSlots(slots: Readonly<Record<string, number>>): void {
    const { options, namespace } = this.#context;
    const { entityId, resource, id: leaseId } = this;
    const expiresAt = Object.keys(slots).length === 0 ? null : this.expiresAt;
    emit(options, { type: 'slots', namespace, entityId, resource, leaseId, slots, expiresAt });
  }

  #tellEnd(how: LeaseEnded['how'], amounts: Readonly<Record<string, number>> = this.consumed): void {
    const { options, namespace } = this.#context;
    const { entityId, resource, id: leaseId } = this;
    const tokens = this.#only(isConsumed, amounts);
    emit(options, { type: 'lease-end', namespace, entityId, resource, leaseId, how, amounts, tokens });
  }

  #refuseClosed(attempted: string): void {
    if (this.#closed !== null) throw new LeaseClosed(this.id, this.#closed, attempted);
  }

  #refuseClosedLimiter(attempted: string): void {
    if (!this.#context.guard.isClosed) return;
    const advice = 'Commit or roll back leases before close(), which gives back the slots of those still open';
    throw new BackendUnavailable(`Cannot ${attempted} lease ${this.id}: the limiter is closed. ${advice}`, 'closed');
  }

  /** Only unknown names need a read before the write. All other corrections keep the order in which they were called. */
  #isUnknown(amounts: readonly Amount[]): boolean {
    return amounts.some(({ name }) => this.#account.kindOf(name) === undefined);
  }

  #refuseOthers(field: string, amounts: readonly Amount[]): void {
    for (const { name } of amounts) {
      const kind = this.#account.kindOf(name);
      if (kind !== undefined && isConsumed(kind)) continue;
      const expected = kind === undefined ? 'the name of a limit' : 'of a rate: slots are given back by release()';
      throw new ValidationError(`${field}.${name}`, expected, name);
    }
  }
}

const MAX_OPERATION_ID = 64;

function checkOperationId(id: unknown): void {
  if (id === null || (typeof id === 'string' && /^[0-9A-Za-z_.~-]+$/.test(id) && id.length <= MAX_OPERATION_ID)) return;
  throw new ValidationError('operationId', `1 to ${MAX_OPERATION_ID} letters, digits, "_", ".", "~" or "-"`, id);
}

function required(field: string, amounts: Amounts | undefined): Amounts {
  if (amounts === undefined) throw new ValidationError(field, 'an object of amounts by limit name', amounts);
  return amounts;
}
