import { credit, type Rate } from '../../../src/core/bucket/bucket.js';
import type { EpochMs } from '../../../src/core/units.js';

/** What one bucket gave and got back at one instant, in millitokens. Who came first within it is not known. */
interface Instant {
  readonly atMs: EpochMs;
  taken: number;
  debited: number;
  /** Refunds that counted now at the earliest. */
  refundedFrom: number;
  /** Refunds that counted now at the latest. */
  refundedUntil: number;
}

/**
 * What callers were told of one bucket, in millitokens, against what the bucket may give.
 *
 * A take leaves a balance that is not negative, and no balance is ever above the capacity. So in every window that ends
 * with a take:   takes - refunds + debits before its last instant  <=  capacity + what falls in the window.
 * Of an operation whose outcome is unknown, the ledger assumes what allows the bucket most: takes and debits that
 * no client was told of are not in it, a refund is in every window in which it may have counted.
 */
export class TokenLedger {
  readonly #rate: Rate;
  readonly #instants = new Map<EpochMs, Instant>();
  /** Takes that callers were told of. */
  grants = 0;
  /** Takes and debits that callers were told of, less every refund that may have counted. */
  leastNet = 0;
  /** The same, less only those refunds that certainly counted. */
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

  /** Counted once, at some time between the two; or not at all, unless that is certain. */
  refund(fromMs: EpochMs, untilMs: EpochMs, milli: number, isCertain = true): void {
    this.#at(fromMs).refundedFrom += milli;
    this.#at(untilMs).refundedUntil += milli;
    this.leastNet -= milli;
    if (isCertain) this.mostNet -= milli;
  }

  /** The first window, by its end, that was given too much, in words; null if none was. */
  overdrawn(slackMilli = 0): string | null {
    for (const { window, last, takes } of this.#windows()) {
      const excess = window.spent - last.debited - this.allowed(window.fromMs, last.atMs);
      if (takes && excess > slackMilli) return `${excess} millitokens too much from ${window.fromMs} to ${last.atMs}`;
    }
    return null;
  }

  /** What a window may give at the most. */
  allowed(fromMs: EpochMs, toMs: EpochMs): number {
    return this.#rate.capacityMilli + Number(credit(this.#rate, fromMs, toMs));
  }

  /** A bucket that gave all this cannot hold more by now. */
  mostTokens(nowMs: EpochMs): number {
    const instants = this.#inOrder();
    const end = instants.at(-1);
    let most = this.#rate.capacityMilli;
    for (const { window, last } of this.#windows()) {
      if (last === end) most = Math.min(most, this.allowed(window.fromMs, nowMs) - window.spent);
    }
    return most;
  }

  /** Every pair of instants, with what was spent from the one up to and with the other. */
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
