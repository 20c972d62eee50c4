import type { EpochMs } from '../../src/core/units.js';
import { isHeadgateError } from '../../src/core/errors.js';
import type { Lease } from '../../src/limiter/lease.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import type { Random } from '../../src/testing/conformance/random.js';
import { RESOURCE } from './bucket-work.js';

export const SLOTS = 'slots';

interface Held {
  readonly lease: Lease;
  readonly limiter: RateLimiter;
  expiresAtMs: EpochMs;
  /** What its owner does with it: gives it back at some time, or forgets it. */
  readonly until: EpochMs | 'forgotten';
  /** Giving it back was tried and got no answer: it may be free. */
  unsure: boolean;
}

/** Takes slots of one bucket, keeps some longer, gives them back or forgets them; and knows who holds what. */
export class SlotWork {
  readonly counts = { asks: 0, granted: 0, released: 0, forgotten: 0, lost: 0, failed: 0 };
  readonly untyped: unknown[] = [];
  /** The most that were held at once, as far as callers were told. */
  most = 0;
  readonly #entityId: string;
  readonly #random: Random;
  #held: Held[] = [];

  constructor(entityId: string, random: Random) {
    this.#entityId = entityId;
    this.#random = random;
  }

  /** Leases whose owners were told that they have them, and that have not expired. */
  certain(nowMs: EpochMs): readonly string[] {
    return this.#held.filter((held) => !held.unsure && held.expiresAtMs > nowMs).map(({ lease }) => lease.id);
  }

  /** One tick of one client: all at once. */
  async tick(limiter: RateLimiter, nowMs: EpochMs, asks: number): Promise<void> {
    const own = this.#held.filter((held) => held.limiter === limiter);
    await Promise.all([
      ...Array.from({ length: asks }, async () => this.#try(async () => this.#take(limiter, nowMs))),
      ...own.map(async (held) => this.#try(async () => this.#tend(held, nowMs))),
    ]);
    this.most = Math.max(this.most, this.certain(nowMs).length);
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.counts.failed += 1;
      if (!isHeadgateError(error)) this.untyped.push(error);
    }
  }

  async #take(limiter: RateLimiter, nowMs: EpochMs): Promise<void> {
    this.counts.asks += 1;
    const leaseTtlMs = this.#random.whole(5_000, 9_000);
    const until = this.#random.whole(1, 10) === 1 ? 'forgotten' : nowMs + this.#random.whole(500, 3_000);
    const request = { entityId: this.#entityId, resource: RESOURCE, consume: { [SLOTS]: 1 }, leaseTtlMs };
    const decision = await limiter.tryAcquire(request);
    if (!decision.granted) return;
    this.counts.granted += 1;
    const { lease } = decision;
    this.#held.push({ lease, limiter, expiresAtMs: nowMs + leaseTtlMs, until, unsure: false });
  }

  async #tend(held: Held, nowMs: EpochMs): Promise<void> {
    if (held.expiresAtMs <= nowMs) {
      this.#forget(held);
      if (held.until === 'forgotten') this.counts.forgotten += 1;
      return;
    }
    if (held.until === 'forgotten') return;
    if (held.until <= nowMs || held.unsure) await this.#giveBack(held);
    else if (this.#random.whole(1, 6) === 1) await this.#extend(held, nowMs);
  }

  /** Until it is answered: whoever got no answer asks again. */
  async #giveBack(held: Held): Promise<void> {
    held.unsure = true;
    await (this.#random.whole(1, 2) === 1 ? held.lease.release() : held.lease.commit());
    this.counts.released += 1;
    this.#forget(held);
  }

  async #extend(held: Held, nowMs: EpochMs): Promise<void> {
    const ttlMs = this.#random.whole(5_000, 9_000);
    // Without an answer it may have either expiry: the earlier one is certain.
    const expiries = [held.expiresAtMs, nowMs + ttlMs];
    held.expiresAtMs = Math.min(...expiries);
    try {
      await held.lease.extend(ttlMs);
      held.expiresAtMs = nowMs + ttlMs;
    } catch (error) {
      if (isHeadgateError(error, 'lease.closed')) {
        this.counts.lost += 1;
        this.#forget(held);
      }
      throw error;
    }
  }

  #forget(held: Held): void {
    this.#held = this.#held.filter((other) => other !== held);
  }

  /** Everybody gives back what they have. */
  async end(): Promise<void> {
    for (const held of this.#held) await this.#try(async () => this.#giveBack(held));
  }
}
