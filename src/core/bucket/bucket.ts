import { add, exactFloor, type Int, min, mul, mulDivCeil, mulDivFloor, sub } from '../int.js';
import type { EpochMs, Millitokens } from '../units.js';

/** The numbers of one limit as a bucket applies them: a whole limit, or one shard's share of it. */
export interface Rate {
  readonly capacityMilli: number;
  readonly refillMilli: number;
  /** 0 means concurrent: no refill, no cap. */
  readonly refillPeriodMs: number;
}

/**
 * The tokens that fall between two instants: floor(to * ra / rp) - floor(from * ra / rp).
 * Sums exactly over any split of time, so one base serves all limits of a bucket and no remainder is stored.
 * Nothing falls backwards in time.
 */
export function credit(rate: Rate, fromMs: EpochMs, toMs: EpochMs): Int {
  const { refillMilli, refillPeriodMs } = rate;
  if (toMs <= fromMs || refillPeriodMs === 0) return 0;
  // Whole periods and the rest, because now * ra passes 2^53 early.
  const fromPeriods = exactFloor(fromMs, refillPeriodMs);
  const toPeriods = exactFloor(toMs, refillPeriodMs);
  const whole = mul(toPeriods - fromPeriods, refillMilli);
  const fromRest = mulDivFloor(fromMs - fromPeriods * refillPeriodMs, refillMilli, refillPeriodMs);
  const toRest = mulDivFloor(toMs - toPeriods * refillPeriodMs, refillMilli, refillPeriodMs);
  return add(whole, sub(toRest, fromRest));
}

/** What the bucket really holds: the stored tokens and the credit since the base, up to the capacity. Slots have no cap. */
export function effectiveTokens(rate: Rate, tokensMilli: Millitokens, creditedMilli: Int): Millitokens {
  if (rate.refillPeriodMs === 0) return tokensMilli;
  return min(add(tokensMilli, creditedMilli), rate.capacityMilli);
}

/**
 * The wait until a rate holds `needMilli`: the least T with floor(T * ra / rp) >= floor(base * ra / rp) + need - tokens,
 * less now. 0 if it does already, null if it never will.
 */
export function waitForTokens(
  rate: Rate,
  tokensMilli: Millitokens,
  baseMs: EpochMs,
  needMilli: number,
  nowMs: EpochMs,
): number | null {
  if (needMilli > rate.capacityMilli) return null;
  if (effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs)) >= needMilli) return 0;
  if (rate.refillMilli === 0) return null;
  // Counted from the start of the base's period, which keeps the numbers small.
  const periods = exactFloor(baseMs, rate.refillPeriodMs);
  const startMs = periods * rate.refillPeriodMs;
  const before = mulDivFloor(baseMs - startMs, rate.refillMilli, rate.refillPeriodMs);
  const missing = add(before, sub(needMilli, tokensMilli));
  const readyMs = add(startMs, mulDivCeil(missing, rate.refillPeriodMs, rate.refillMilli));
  return Number(min(sub(readyMs, nowMs), Number.MAX_SAFE_INTEGER));
}

/** What one write does to one limit: takes need room, debits go into debt, refunds are capped when next looked at. */
export interface Move {
  /** null: nothing is asked. 0 is an ask too: it needs a balance that is not negative. */
  readonly takeMilli: Int | null;
  readonly debitMilli: Int;
  readonly refundMilli: Int;
}

/**
 * A write to one limit together with the condition under which it is exact, whatever happened since the image was seen.
 * `base` and parameters must also be as in the image; that is one condition for the whole bucket.
 */
export type LimitWrite =
  | {
      readonly write: 'add';
      readonly deltaMilli: Int;
      readonly atLeastMilli: Int | null;
      readonly atMostMilli: Int | null;
    }
  | { readonly write: 'set'; readonly tokensMilli: Int; readonly atLeastMilli: Int };

/**
 * Chooses between the two forms of a write, guessing from a remembered balance:
 * - room (tokens + credit <= capacity): ADD, if the stored tokens lie within [take - credit, capacity - credit];
 * - full (tokens + credit > capacity): SET capacity - credit less what is moved, if the stored tokens are at least capacity - credit.
 * The base does not move, so refill is never written; only the loss at the cap is, by the full form.
 */
export function planMove(rate: Rate, seenTokensMilli: Millitokens, creditedMilli: Int, move: Move): LimitWrite {
  const { takeMilli, debitMilli, refundMilli } = move;
  const spent = add(takeMilli ?? 0, debitMilli);
  const deltaMilli = sub(refundMilli, spent);
  const atLeastMilli = takeMilli === null ? null : sub(takeMilli, creditedMilli);
  // Slots have no cap, and what spends nothing cannot lose refill at it.
  if (rate.refillPeriodMs === 0 || spent === 0) return { write: 'add', deltaMilli, atLeastMilli, atMostMilli: null };
  const brim = sub(rate.capacityMilli, creditedMilli);
  // A take beyond the capacity is planned as room, whose bounds then hold nowhere: a full bucket must not grant it.
  if (seenTokensMilli > brim && (takeMilli ?? 0) <= rate.capacityMilli) {
    return { write: 'set', tokensMilli: add(brim, deltaMilli), atLeastMilli: brim };
  }
  return { write: 'add', deltaMilli, atLeastMilli, atMostMilli: brim };
}

/**
 * The stored tokens after a take that fits, whichever form it has: `planMove` for whoever has the bucket in hand.
 * Room: tokens - take. Full: capacity - credit - take. Both are effective - credit - take.
 */
export function tokensAfterTake(effectiveMilli: Millitokens, creditedMilli: Int, takeMilli: Int): Millitokens {
  return sub(sub(effectiveMilli, creditedMilli), takeMilli);
}

/**
 * Moves one limit's base, crediting at the old rate and capping at the smaller of both capacities:
 * a raise adds no tokens, a cut clamps. Slots have no cap: they move by the difference, so that what is held stays held.
 */
export function planRebase(
  before: Rate,
  after: Rate,
  seenTokensMilli: Millitokens,
  baseMs: EpochMs,
  nextBaseMs: EpochMs,
): LimitWrite {
  if (before.refillPeriodMs === 0) {
    const deltaMilli = after.capacityMilli - before.capacityMilli;
    return { write: 'add', deltaMilli, atLeastMilli: null, atMostMilli: null };
  }
  const credited = credit(before, baseMs, nextBaseMs);
  const capMilli = Math.min(before.capacityMilli, after.capacityMilli);
  const brim = sub(capMilli, credited);
  if (seenTokensMilli > brim) return { write: 'set', tokensMilli: capMilli, atLeastMilli: brim };
  return { write: 'add', deltaMilli: credited, atLeastMilli: null, atMostMilli: brim };
}

/** Where the base goes when it must move: forward, strictly, because it is the lock on the parameters. */
export function nextBase(baseMs: EpochMs, nowMs: EpochMs): EpochMs {
  return Math.max(nowMs, baseMs + 1);
}

/** Whether a write is exact on these stored tokens. */
export function writeHolds(write: LimitWrite, tokensMilli: Millitokens): boolean {
  if (write.atLeastMilli !== null && tokensMilli < write.atLeastMilli) return false;
  return write.write === 'set' || write.atMostMilli === null || tokensMilli <= write.atMostMilli;
}

/** The stored tokens after a write whose condition held. */
export function applyWrite(write: LimitWrite, tokensMilli: Millitokens): Millitokens {
  return write.write === 'set' ? write.tokensMilli : add(tokensMilli, write.deltaMilli);
}
