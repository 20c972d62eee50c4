import { add, exactFloor, type Int, min, mul, mulDivCeil, mulDivFloor, sub } from '../int.js';
import { type LimitKind, refills } from '../limit-kind.js';
import type { EpochMs, Millitokens } from '../units.js';

/** The parameters of one limit as a bucket applies them: the whole limit, or one shard's share of it. */
export interface Rate {
  readonly kind: LimitKind;
  readonly capacityMilli: number;
  /** 0 unless the kind refills, and for a rate that denies on purpose. */
  readonly refillMilli: number;
  /** 0 unless the kind refills. */
  readonly refillPeriodMs: number;
}

/** Whether time brings tokens. A rate of capacity 0 may have no refill. */
export function gainsTokens(rate: Rate): boolean {
  return refills(rate.kind) && rate.refillMilli > 0;
}

/**
 * The tokens that refill between two instants: floor(to * ra / rp) - floor(from * ra / rp). The refill is the same however
 * often it is computed, so all limits of a bucket share one base and no remainder is stored. 0 if `toMs` is before `fromMs`.
 */
export function credit(rate: Rate, fromMs: EpochMs, toMs: EpochMs): Int {
  if (toMs <= fromMs || !refills(rate.kind)) return 0;
  const { refillMilli, refillPeriodMs } = rate;
  // Relative to the start of a period, because now * ra exceeds 2^53 for common rates.
  const startMs = exactFloor(fromMs, refillPeriodMs) * refillPeriodMs;
  const product = (toMs - startMs) * refillMilli;
  if (Number.isSafeInteger(product)) {
    return exactFloor(product, refillPeriodMs) - exactFloor((fromMs - startMs) * refillMilli, refillPeriodMs);
  }
  return creditByPeriods(rate, fromMs, toMs);
}

/** Whole periods and the remainder separately: for a base so old, or a rate so high, that the product is not exact. */
function creditByPeriods({ refillMilli, refillPeriodMs }: Rate, fromMs: EpochMs, toMs: EpochMs): Int {
  const fromPeriods = exactFloor(fromMs, refillPeriodMs);
  const toPeriods = exactFloor(toMs, refillPeriodMs);
  const whole = mul(toPeriods - fromPeriods, refillMilli);
  const fromRest = mulDivFloor(fromMs - fromPeriods * refillPeriodMs, refillMilli, refillPeriodMs);
  const toRest = mulDivFloor(toMs - toPeriods * refillPeriodMs, refillMilli, refillPeriodMs);
  return add(whole, sub(toRest, fromRest));
}

/** The balance: the stored tokens plus the credit since the base, up to the capacity. Slots are not capped. */
export function effectiveTokens(rate: Rate, tokensMilli: Millitokens, creditedMilli: Int): Millitokens {
  if (!refills(rate.kind)) return tokensMilli;
  return min(add(tokensMilli, creditedMilli), rate.capacityMilli);
}

/**
 * The wait until a rate has `needMilli`: T - now, for the smallest T with
 * floor(T * ra / rp) >= floor(base * ra / rp) + need - tokens. 0: it has them now. null: it will never have them.
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
  if (!gainsTokens(rate)) return null;
  // Relative to the start of the base's period, which keeps the numbers small.
  const periods = exactFloor(baseMs, rate.refillPeriodMs);
  const startMs = periods * rate.refillPeriodMs;
  const before = mulDivFloor(baseMs - startMs, rate.refillMilli, rate.refillPeriodMs);
  const missing = add(before, sub(needMilli, tokensMilli));
  const readyMs = add(startMs, mulDivCeil(missing, rate.refillPeriodMs, rate.refillMilli));
  return Number(min(sub(readyMs, nowMs), Number.MAX_SAFE_INTEGER));
}

/** What one write does to one limit. Takes need enough balance, debits may cause debt, refunds are capped at the next read. */
export interface Move {
  /** null: no take. 0 is a take too: it needs a balance that is not negative. */
  readonly takeMilli: Int | null;
  /** What must stay after the takes: the largest reserve among them. Left out: 0. */
  readonly reserveMilli?: Int;
  readonly debitMilli: Int;
  readonly refundMilli: Int;
}

/**
 * A write to one limit with the condition under which it is exact, even if the image is stale. The base and the parameters
 * must also equal those of the image; that is one condition for the whole bucket.
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
 * Chooses between the two forms of a write by the balance of an image:
 * - room (tokens + credit <= capacity): ADD, if the stored tokens are within [take + reserve - credit, capacity - credit];
 * - full (tokens + credit > capacity): SET capacity - credit - the amount, if the stored tokens are at least capacity -
 *   credit.
 * The base does not move, so the refill is never written. The full form writes only what was lost at the capacity.
 */
export function planMove(rate: Rate, seenTokensMilli: Millitokens, creditedMilli: Int, move: Move): LimitWrite {
  const { takeMilli, reserveMilli = 0, debitMilli, refundMilli } = move;
  const needMilli = takeMilli === null ? 0 : add(takeMilli, reserveMilli);
  const spent = add(takeMilli ?? 0, debitMilli);
  const deltaMilli = sub(refundMilli, spent);
  const atLeastMilli = takeMilli === null ? null : sub(needMilli, creditedMilli);
  // Slots are not capped, and a write that spends nothing does not need to account for the cap.
  if (!refills(rate.kind) || (spent === 0 && needMilli <= rate.capacityMilli))
    return { write: 'add', deltaMilli, atLeastMilli, atMostMilli: null };
  const brim = sub(rate.capacityMilli, creditedMilli);
  // A take above the capacity is planned as room, whose bounds then never hold: a full bucket must not grant it.
  if (seenTokensMilli > brim && needMilli <= rate.capacityMilli) {
    return { write: 'set', tokensMilli: add(brim, deltaMilli), atLeastMilli: brim };
  }
  return { write: 'add', deltaMilli, atLeastMilli, atMostMilli: brim };
}

/**
 * The stored tokens after a take that fits, in either form. Replaces `planMove` where the exact bucket is known.
 * Room: tokens - take. Full: capacity - credit - take. Both are effective - credit - take.
 */
export function tokensAfterTake(effectiveMilli: Millitokens, creditedMilli: Int, takeMilli: Int): Millitokens {
  return sub(sub(effectiveMilli, creditedMilli), takeMilli);
}

/**
 * The stored tokens after a take from a rate; null if it does not fit. The same as `tokensAfterTake` of the effective
 * tokens, in fewer steps: effective - credit is min(tokens, capacity - credit), and effective >= take is left >= -credit.
 */
export function takeIfRoom(
  rate: Rate,
  tokensMilli: Millitokens,
  baseMs: EpochMs,
  nowMs: EpochMs,
  takeMilli: Int,
): Millitokens | null {
  const creditedMilli = credit(rate, baseMs, nowMs);
  const leftMilli = sub(min(tokensMilli, sub(rate.capacityMilli, creditedMilli)), takeMilli);
  return leftMilli >= -creditedMilli ? leftMilli : null;
}

/**
 * Moves the base of one limit: credits at the old rate and caps at the smaller of both capacities. Raising a limit adds no
 * tokens; lowering it reduces the balance. Slots are not capped: they change by the difference, so that held slots stay held.
 */
export function planRebase(
  before: Rate,
  after: Rate,
  seenTokensMilli: Millitokens,
  baseMs: EpochMs,
  nextBaseMs: EpochMs,
): LimitWrite {
  if (!refills(before.kind)) {
    const deltaMilli = after.capacityMilli - before.capacityMilli;
    return { write: 'add', deltaMilli, atLeastMilli: null, atMostMilli: null };
  }
  const credited = credit(before, baseMs, nextBaseMs);
  const capMilli = Math.min(before.capacityMilli, after.capacityMilli);
  const brim = sub(capMilli, credited);
  if (seenTokensMilli > brim) return { write: 'set', tokensMilli: capMilli, atLeastMilli: brim };
  return { write: 'add', deltaMilli: credited, atLeastMilli: null, atMostMilli: brim };
}

/** The new base. It always increases, because writes compare it to detect a change of the parameters. */
export function nextBase(baseMs: EpochMs, nowMs: EpochMs): EpochMs {
  return Math.max(nowMs, baseMs + 1);
}

/** Whether the condition of a write holds for these stored tokens. */
export function writeHolds(write: LimitWrite, tokensMilli: Millitokens): boolean {
  if (write.atLeastMilli !== null && tokensMilli < write.atLeastMilli) return false;
  return write.write === 'set' || write.atMostMilli === null || tokensMilli <= write.atMostMilli;
}

/** The stored tokens after a write whose condition held. */
export function applyWrite(write: LimitWrite, tokensMilli: Millitokens): Millitokens {
  return write.write === 'set' ? write.tokensMilli : add(tokensMilli, write.deltaMilli);
}
