import type { Rate } from '../../src/core/bucket/bucket.js';
import type { EpochMs } from '../../src/core/units.js';
import { at } from './store.js';

/** An amount of one limit. */
export interface Part {
  readonly limit: number;
  readonly milli: number;
  /** What an ask must leave. */
  readonly reserveMilli: number;
  /** The same as thousandths of the capacity; 0 unless given. */
  readonly reservePermille?: number;
  /** Where the limit is short it is not taken, and refuses nothing. */
  readonly shadow?: true;
  /** Only of slots that are given back: the lease whose end does so. */
  readonly lease?: string;
}

/** The content of one write of a client, in this order: asks, those with less reserve first; debits; refunds. */
export interface Group {
  /** Each ask is taken completely or not at all; an ask that does not fit is skipped. */
  readonly asks: readonly (readonly Part[])[];
  readonly debits: readonly Part[];
  readonly refunds: readonly Part[];
  /** The leases of the asks, where slots have holders. */
  readonly leases?: readonly string[];
}

/**
 * The reference: a plain account that settles at every operation, with numbers of any size. It shares no arithmetic with
 * the code under test.
 */
export class Model {
  #atMs: EpochMs;
  readonly #rates: Rate[];
  readonly #tokens: bigint[];

  constructor(rates: readonly Rate[], createdAtMs: EpochMs) {
    this.#atMs = createdAtMs;
    this.#rates = [...rates];
    this.#tokens = rates.map(({ capacityMilli }) => BigInt(capacityMilli));
  }

  get rates(): readonly Rate[] {
    return this.#rates;
  }

  get tokensMilli(): readonly bigint[] {
    return this.#tokens;
  }

  settleTo(nowMs: EpochMs): void {
    if (nowMs <= this.#atMs) return;
    for (const [limit, rate] of this.#rates.entries()) {
      this.#tokens[limit] = capped(rate, at(this.#tokens, limit) + fallen(rate, this.#atMs, nowMs));
    }
    this.#atMs = nowMs;
  }

  /** Which asks fit, one after the other. */
  fits(asks: Group['asks']): readonly boolean[] {
    const left = [...this.#tokens];
    return asks.map((ask) => {
      if (!ask.every((part) => part.shadow === true || leaves(left, part))) return false;
      for (const part of takenOf(left, ask)) left[part.limit] = at(left, part.limit) - BigInt(part.milli);
      return true;
    });
  }

  /** Books the granted asks, whether they fitted or not. Returns what each ask has taken. */
  book(group: Group, granted: readonly boolean[]): readonly (readonly Part[])[] {
    const takenByAsk = group.asks.map((ask, index) => {
      const taken = granted[index] === true ? takenOf(this.#tokens, ask) : [];
      for (const { limit, milli } of taken) this.#add(limit, -BigInt(milli));
      return taken;
    });
    for (const { limit, milli } of group.debits) this.#add(limit, -BigInt(milli));
    for (const { limit, milli } of group.refunds) this.#add(limit, BigInt(milli));
    return takenByAsk;
  }

  /** Settles by the old rule first. Held slots stay held. */
  change(limit: number, rate: Rate): void {
    const raise = BigInt(rate.capacityMilli) - BigInt(at(this.#rates, limit).capacityMilli);
    this.#rates[limit] = rate;
    this.#add(limit, rate.refillPeriodMs === 0 ? raise : 0n);
  }

  #add(limit: number, milli: bigint): void {
    this.#tokens[limit] = capped(at(this.#rates, limit), at(this.#tokens, limit) + milli);
  }
}

function leaves(tokens: readonly bigint[], { limit, milli, reserveMilli }: Part): boolean {
  return at(tokens, limit) >= BigInt(milli) + BigInt(reserveMilli);
}

/** The parts of a granted ask that are taken: all but the shadows that are short. */
function takenOf(tokens: readonly bigint[], ask: readonly Part[]): readonly Part[] {
  return ask.filter((part) => part.shadow !== true || leaves(tokens, part));
}

function capped({ capacityMilli, refillPeriodMs }: Rate, tokens: bigint): bigint {
  const capacity = BigInt(capacityMilli);
  return refillPeriodMs !== 0 && tokens > capacity ? capacity : tokens;
}

function fallen({ refillMilli, refillPeriodMs }: Rate, fromMs: EpochMs, toMs: EpochMs): bigint {
  if (refillPeriodMs === 0 || toMs <= fromMs) return 0n;
  const [amount, period] = [BigInt(refillMilli), BigInt(refillPeriodMs)];
  return (BigInt(toMs) * amount) / period - (BigInt(fromMs) * amount) / period;
}

/** The balance of stored numbers, by the definition. */
export function worthOf(rate: Rate, tokensMilli: number | bigint, baseMs: EpochMs, nowMs: EpochMs): bigint {
  return capped(rate, BigInt(tokensMilli) + fallen(rate, baseMs, nowMs));
}
