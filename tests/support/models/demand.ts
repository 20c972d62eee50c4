import type { EpochMs } from '../../../src/core/units.js';
import { MILLI } from '../../../src/core/units.js';
import type { Random } from '../../../src/testing/conformance/kit/random.js';
import type { Operation, Outcome } from '../dynamodb/workloads/bucket-work.js';
import type { TokenLedger } from './token-ledger.js';

export interface DemandShape {
  readonly entities: readonly string[];
  readonly amounts: readonly number[];
  /** Asks of each client at each tick. */
  readonly asks: number;
  /** How often a failed correction is repeated, 0 unless given. */
  readonly retries?: number;
  /** No client settles for more than was taken. */
  readonly withoutDebits?: boolean;
  /** The class of all asks; none unless given. */
  readonly priority?: string;
  /** All asks may be cut, down to one token. */
  readonly atMost?: true;
  /** The ledgers of the bucket of an entity and of the buckets of its parents. */
  readonly ledgersOf: (entityId: string) => readonly TokenLedger[];
  /** Ledgers whose bound is for asks of another class: these takes may go below it, as debits do. None unless given. */
  readonly othersOf?: (entityId: string) => readonly TokenLedger[];
}

interface Granted {
  readonly client: number;
  readonly lease: number;
  readonly entityId: string;
  readonly amount: number;
}

interface Correction extends Granted {
  readonly operation: Operation;
  readonly total: number;
  firstTryMs: EpochMs | null;
  tries: number;
}

/**
 * Random demand of clients: asks of several sizes, some of which are settled for less or more, or rolled back, a tick
 * after their grant. Books the outcomes.
 */
export class Demand {
  readonly counts = {
    asks: 0,
    granted: 0,
    exceeded: 0,
    cut: 0,
    denied: 0,
    contended: 0,
    refunds: 0,
    debits: 0,
    failed: 0,
  };
  /** The grants of each client. */
  readonly grantsOf = new Map<number, number>();
  /** Leases that took more than their ask, less than one token, or a part of an ask that may not be cut. */
  readonly wrongAmounts: string[] = [];
  /** Errors without a code of Headgate. */
  readonly untyped: string[] = [];
  readonly #random: Random;
  readonly #shape: DemandShape;
  #granted: Granted[] = [];
  #corrections: Correction[] = [];
  #leases = 0;

  constructor(random: Random, shape: DemandShape) {
    this.#random = random;
    this.#shape = shape;
  }

  /** New asks of one client, and corrections of its earlier grants. */
  operationsOf(client: number): readonly Operation[] {
    return [...this.takes(), ...this.correctionsOf(client)];
  }

  takes(): readonly Operation[] {
    const { entities, amounts, asks, priority, atMost } = this.#shape;
    const options = { ...(priority === undefined ? {} : { priority }), ...(atMost === undefined ? {} : { atMost }) };
    return Array.from({ length: asks }, (): Operation => {
      const [entityId, amount] = [this.#random.pick(entities), this.#random.pick(amounts)];
      return { kind: 'take', lease: ++this.#leases, entityId, amount, ...options };
    });
  }

  correctionsOf(client: number): readonly Operation[] {
    for (const granted of this.#granted.filter((lease) => lease.client === client)) this.#mayCorrect(granted);
    this.#granted = this.#granted.filter((lease) => lease.client !== client);
    return this.#corrections.filter((correction) => correction.client === client).map(({ operation }) => operation);
  }

  #mayCorrect(granted: Granted): void {
    const { lease, amount } = granted;
    const fate = this.#random.whole(1, 100);
    if (fate <= 15) this.#plan(granted, 0, { kind: 'rollback', lease });
    else if (fate <= 40) this.#settle(granted, this.#random.whole(0, amount - 1));
    else if (fate <= 50 && this.#shape.withoutDebits !== true) this.#settle(granted, amount + this.#random.whole(1, 3));
  }

  #settle(granted: Granted, total: number): void {
    this.#plan(granted, total, { kind: 'settle', lease: granted.lease, total });
  }

  #plan(granted: Granted, total: number, operation: Operation): void {
    this.#corrections.push({ ...granted, operation, total, firstTryMs: null, tries: 0 });
  }

  book(atMs: EpochMs, client: number, operations: readonly Operation[], outcomes: readonly Outcome[]): void {
    if (operations.length !== outcomes.length) throw new RangeError('One outcome per operation');
    for (const [at, operation] of operations.entries()) {
      const outcome = outcomes[at]!;
      if (outcome.kind === 'failed') {
        this.counts.failed += 1;
        if (outcome.code === null) this.untyped.push(outcome.message);
      }
      if (operation.kind === 'take') this.#bookTake(atMs, client, operation, outcome);
      else this.#bookCorrection(atMs, operation, outcome);
    }
  }

  #bookTake(
    atMs: EpochMs,
    client: number,
    { lease, entityId, amount: asked, atMost }: Extract<Operation, { readonly kind: 'take' }>,
    outcome: Outcome,
  ): void {
    this.counts.asks += 1;
    if (outcome.kind === 'denied') this.counts[outcome.reason === 'contended' ? 'contended' : 'denied'] += 1;
    if (outcome.kind !== 'granted') return;
    this.counts.granted += 1;
    this.grantsOf.set(client, (this.grantsOf.get(client) ?? 0) + 1);
    // Nothing was taken, so there is nothing to correct.
    if (outcome.exceeded) this.counts.exceeded += 1;
    if (outcome.exceeded) return;
    const { consumed: amount } = outcome;
    if (amount < asked) this.counts.cut += 1;
    if (amount > asked || amount < (atMost === undefined ? asked : 1)) {
      this.wrongAmounts.push(`lease ${lease} took ${amount} of ${asked}`);
    }
    this.#granted.push({ client, lease, entityId, amount });
    for (const ledger of this.#shape.ledgersOf(entityId)) ledger.take(atMs, amount * MILLI);
    for (const ledger of this.#shape.othersOf?.(entityId) ?? []) ledger.debit(atMs, amount * MILLI);
  }

  #bookCorrection(atMs: EpochMs, operation: Operation, outcome: Outcome): void {
    const correction = this.#corrections.find(({ lease }) => lease === operation.lease)!;
    correction.firstTryMs ??= atMs;
    correction.tries += 1;
    if (outcome.kind === 'failed' && correction.tries <= (this.#shape.retries ?? 0)) return;
    this.#corrections = this.#corrections.filter((other) => other !== correction);
    this.#close(correction, correction.firstTryMs, atMs, outcome.kind === 'done');
  }

  #close(correction: Correction, firstTryMs: EpochMs, atMs: EpochMs, done: boolean): void {
    const { entityId, amount, total, tries } = correction;
    const milli = (total - amount) * MILLI;
    this.counts[milli < 0 ? 'refunds' : 'debits'] += 1;
    const others = this.#shape.othersOf?.(entityId) ?? [];
    for (const ledger of [...this.#shape.ledgersOf(entityId), ...others]) {
      // A refund that succeeded only after a retry may have been lost.
      if (milli < 0) ledger.refund(firstTryMs, atMs, -milli, done && tries === 1);
      else if (done) ledger.debit(atMs, milli);
    }
  }

  /** Closes the corrections that still have retries left. */
  end(): void {
    for (const correction of this.#corrections) {
      const { firstTryMs } = correction;
      if (firstTryMs !== null) this.#close(correction, firstTryMs, firstTryMs, false);
    }
    this.#corrections = [];
  }
}
