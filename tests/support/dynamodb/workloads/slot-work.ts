import { isHeadgateError } from '../../../../src/core/errors.js';
import { type EpochMs, MILLI } from '../../../../src/core/units.js';
import type { Lease } from '../../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import type { Random } from '../../../../src/testing/conformance/kit/random.js';
import { LIMIT, RESOURCE } from './bucket-work.js';
import type { TokenLedger } from '../../models/token-ledger.js';

export const SLOTS = 'slots';

/** The end of a lease: its tokens are kept, given back in part or in full, or the lease is abandoned. */
type End = 'release' | 'commit' | 'settle' | 'rollback' | 'forget';
const ENDS: readonly End[] = ['release', 'commit', 'commit', 'settle', 'settle', 'rollback', 'rollback', 'forget'];

interface Held {
  readonly lease: Lease;
  readonly limiter: RateLimiter;
  readonly amount: number;
  readonly end: End;
  readonly endsAtMs: EpochMs;
  /** The earliest possible expiry. */
  expiresAtMs: EpochMs;
  /** The first attempt to end the lease. Its slot may be free afterwards. */
  triedAtMs: EpochMs | null;
  tries: number;
}

/**
 * Takes slots and tokens of one bucket, ends leases in every way or lets them expire, and records which leases are
 * held.
 */
export class SlotWork {
  readonly counts = { asks: 0, granted: 0, ended: 0, expired: 0, lost: 0, failed: 0 };
  readonly untyped: unknown[] = [];
  /** The largest number of leases that were certainly held at once. */
  most = 0;
  readonly #entityId: string;
  readonly #random: Random;
  readonly #ledger: TokenLedger;
  #held: Held[] = [];

  constructor(entityId: string, random: Random, ledger: TokenLedger) {
    this.#entityId = entityId;
    this.#random = random;
    this.#ledger = ledger;
  }

  /** Leases that were granted, are not being ended, and have not expired. */
  certain(nowMs: EpochMs): readonly string[] {
    const held = this.#held.filter(({ triedAtMs, expiresAtMs }) => triedAtMs === null && expiresAtMs > nowMs);
    return held.map(({ lease }) => lease.id);
  }

  /** One tick of one client, with concurrent calls. */
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
    const endsAtMs = nowMs + this.#random.whole(500, 3_000);
    const [end, amount] = [this.#random.pick(ENDS), this.#random.whole(1, 4)];
    const consume = { [SLOTS]: 1, [LIMIT]: amount };
    const decision = await limiter.tryAcquire({ entityId: this.#entityId, resource: RESOURCE, consume, leaseTtlMs });
    if (!decision.granted) return;
    this.counts.granted += 1;
    this.#ledger.take(nowMs, amount * MILLI);
    const { lease } = decision;
    const expiresAtMs = nowMs + leaseTtlMs;
    this.#held.push({ lease, limiter, amount, end, endsAtMs, expiresAtMs, triedAtMs: null, tries: 0 });
  }

  async #tend(held: Held, nowMs: EpochMs): Promise<void> {
    if (held.expiresAtMs <= nowMs) this.#expire(held);
    else if (held.triedAtMs !== null || (held.end !== 'forget' && held.endsAtMs <= nowMs)) await this.#end(held, nowMs);
    else if (held.end !== 'forget' && this.#random.whole(1, 6) === 1) await this.#extend(held, nowMs);
  }

  /** The tokens may be given back when a call finds the expired holder, unless expiries keep them. */
  #expire(held: Held): void {
    this.counts.expired += 1;
    const fromMs = Math.min(held.triedAtMs ?? held.expiresAtMs, held.expiresAtMs);
    this.#ledger.refund(fromMs, Number.MAX_SAFE_INTEGER, held.amount * MILLI, false);
    this.#drop(held);
  }

  /** Ends the lease. Called again at each tick until there is an answer. */
  async #end(held: Held, nowMs: EpochMs): Promise<void> {
    held.triedAtMs ??= nowMs;
    held.tries += 1;
    const { lease, end, amount, triedAtMs, tries } = held;
    if (end === 'release') await lease.release();
    else if (end === 'rollback') await lease.rollback();
    else await lease.commit(end === 'settle' ? { [LIMIT]: amount - 1 } : undefined);
    const returned = end === 'rollback' ? amount : end === 'settle' ? 1 : 0;
    this.#ledger.refund(triedAtMs, nowMs, returned * MILLI, tries === 1);
    this.counts.ended += 1;
    this.#drop(held);
  }

  async #extend(held: Held, nowMs: EpochMs): Promise<void> {
    const ttlMs = this.#random.whole(5_000, 9_000);
    const nextMs = nowMs + ttlMs;
    // Without an answer, the lease has either expiry. Only the earlier one is certain.
    held.expiresAtMs = Math.min(held.expiresAtMs, nextMs);
    try {
      await held.lease.extend(ttlMs);
      held.expiresAtMs = nextMs;
    } catch (error) {
      if (isHeadgateError(error, 'lease.closed')) this.counts.lost += 1;
      throw error;
    }
  }

  #drop(held: Held): void {
    this.#held = this.#held.filter((other) => other !== held);
  }

  /** Ends all leases of all clients. */
  async end(nowMs: EpochMs): Promise<void> {
    for (const held of this.#held) await this.#try(async () => this.#end(held, nowMs));
    for (const held of this.#held) this.#expire(held);
  }
}
