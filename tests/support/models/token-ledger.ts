import { credit, type Rate } from '../../../src/core/bucket/bucket.js';
import type { EpochMs } from '../../../src/core/units.js';

/** The takes and refunds of one bucket at one instant, in millitokens. Their order within the instant is unknown. */
interface Instant {
  readonly atMs: EpochMs;
  taken: number;
  debited: number;
  /** Refunds that may count from this instant. */
  refundedFrom: number;
  /** Refunds that count at the latest at this instant. */
  refundedUntil: number;
}

/**
 * Compares the outcomes that callers got from one bucket, in millitokens, with what the bucket may give.
 *
 * A take leaves a balance that is not negative, and no balance is ever above the capacity. So in every window that ends
 * with a take:   takes - refunds + debits before its last instant  <=  capacity + refill of the window.
 * For an operation with an unknown outcome, the ledger assumes what allows the bucket most: it leaves out takes and
 * debits without an answer, and counts a refund in every window in which it may have counted.
 */
export class TokenLedger {
  readonly #rate: Rate;
  readonly #instants = new Map<EpochMs, Instant>();
  /** Takes with a known grant. */
  grants = 0;
  /** Known takes and debits, less every refund that may have counted. */
  leastNet = 0;
  /** Known takes and debits, less only refunds that certainly counted. */
  mostNet = 0;

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  take(atMs: EpochMs, milli: number): void {
    this.#at(atMs).taken += milli;
    this.leastNet += milli;
    this.mostNet += milli;
    this.grants += 1;
  }

  debit(atMs: EpochMs, milli: number): void {
    this.#at(atMs).debited += milli;
    this.leastNet += milli;
    this.mostNet += milli;
  }

  /** A refund that counted once, between the two times. If it is not certain, it may not have counted at all. */
  refund(fromMs: EpochMs, untilMs: EpochMs, milli: number, isCertain = true): void {
    this.#at(fromMs).refundedFrom += milli;
    this.#at(untilMs).refundedUntil += milli;
    this.leastNet -= milli;
    if (isCertain) this.mostNet -= milli;
  }

  /** A sentence about the first window that was given too much, or null. */
  overdrawn(slackMilli = 0): string | null {
    for (const { window, last, takes } of this.#windows()) {
      const excess = window.spent - last.debited - this.allowed(window.fromMs, last.atMs);
      if (takes && excess > slackMilli) return `${excess} millitokens too much from ${window.fromMs} to ${last.atMs}`;
    }
    return null;
  }

  /** The most that a window may give. */
  allowed(fromMs: EpochMs, toMs: EpochMs): number {
    return this.#rate.capacityMilli + Number(credit(this.#rate, fromMs, toMs));
  }

  /** The most tokens that a bucket can have after these takes. */
  mostTokens(nowMs: EpochMs): number {
    const instants = this.#inOrder();
    const end = instants.at(-1);
    let most = this.#rate.capacityMilli;
    for (const { window, last } of this.#windows()) {
      if (last === end) most = Math.min(most, this.allowed(window.fromMs, nowMs) - window.spent);
    }
    return most;
  }

  /** Every pair of instants, with what was spent between them, including both. */
  *#windows() {
    const instants = this.#inOrder();
    let refundedBefore = 0;
    let spentBefore = 0;
    for (const [from, { atMs: fromMs, refundedUntil, taken, debited }] of instants.entries()) {
      let spent = -spentBefore;
      let refunded = -refundedBefore;
      for (const [at, last] of instants.entries()) {
        spent += last.taken + last.debited;
        refunded += last.refundedFrom;
        if (at >= from) yield { window: { fromMs, spent: spent - refunded }, last, takes: last.taken > 0 };
      }
      spentBefore += taken + debited;
      refundedBefore += refundedUntil;
    }
  }

  #inOrder(): readonly Instant[] {
    return [...this.#instants.values()].toSorted((a, b) => a.atMs - b.atMs);
  }

  #at(atMs: EpochMs): Instant {
    let instant = this.#instants.get(atMs);
    if (instant === undefined) {
      instant = { atMs, taken: 0, debited: 0, refundedFrom: 0, refundedUntil: 0 };
      this.#instants.set(atMs, instant);
    }
    return instant;
  }
}
