import { credit, effectiveTokens, gainsTokens, type Rate, waitForTokens } from './bucket.js';
import { shareOf } from './shard.js';
import { add, floorDiv, type Int, min } from '../int.js';
import { hasBalance, refills } from '../limit-kind.js';
import type { Limit } from '../limit.js';
import { shareOfCapacity } from '../limit-options.js';
import type { PausedBy } from '../pause.js';
import { type EpochMs, MILLI, type Millitokens } from '../units.js';

/** An amount of one limit. Used in lists, not in objects keyed by name, because `constructor` is a legal limit name. */
export interface Amount {
  readonly name: string;
  readonly milli: Millitokens;
}

/** How a portable lease ended. */
export type ClosedState = 'committed' | 'rolled-back';

/** What the holder of a portable lease keeps, so that any process can continue or repeat what another process began. */
export interface PortablePart {
  readonly state: 'open' | ClosedState;
  /** What the lease has taken from the rates and unlimited limits of this bucket. */
  readonly taken: readonly Amount[];
  /** The ids of the last adjusts, the latest last: a repeated adjust counts once. */
  readonly adjusts: readonly string[];
  /**
   * How often the account of the lease has changed: at the first level it counts the changes, at a parent it says which
   * the parent has. Left out: 0.
   */
  readonly step?: number;
  /** The slots of the lease were given back before its end. */
  readonly released?: true;
  /** Amounts of limits that the first level cannot keep in `taken`. Left out: none. */
  readonly forParents?: readonly ParentAmount[];
}

/**
 * What the parents of the first level charge for a limit that the first level lacks, or of which a parent was granted
 * another amount. `isTotal`: false for a difference to what each parent was granted.
 */
export interface ParentAmount extends Amount {
  readonly isTotal: boolean;
}

/** What an ask takes from one limit, with the options of the limit that apply to it. No bucket stores them. */
export interface AskedAmount extends Amount {
  /** The share of the capacity that must stay after the take. Left out: none. */
  readonly reserve?: number;
  /** The limit is a shadow: where it is short it is not taken, and refuses nothing. */
  readonly shadow?: true;
  /** The share of the capacity from which on the status is `near`. Left out: never. */
  readonly warnAt?: number;
  /** Takes at most `milli`: where there is less, all whole tokens that there are, at least one. */
  readonly atMost?: true;
}

/** The entry of a lease in a bucket, until it is given back or expires. */
export interface Holder {
  readonly expiresAtMs: EpochMs;
  readonly acquiredAtMs: EpochMs;
  /** The slots that it holds. */
  readonly slots: readonly Amount[];
  /** What it took from rates; null unless an expiry gives it back. */
  readonly rates: readonly Amount[] | null;
  readonly caller: string | null;
  /** Left out unless the lease is portable. */
  readonly portable?: PortablePart;
}

export interface LimitBalance {
  readonly limit: Limit;
  /** The share of the limit that this shard applies; left out if it applies the whole limit. */
  readonly rate?: Rate;
  readonly tokensMilli: Millitokens;
}

/** Which shard of its bucket a state is. Left out: the whole bucket. */
interface ShardOf {
  readonly key?: { readonly shard: number };
  readonly shardCount?: number;
}

/** The part of a bucket that a decision needs. */
export interface BucketState extends ShardOf {
  readonly baseMs: EpochMs;
  readonly limits: readonly LimitBalance[];
  readonly holders: ReadonlyMap<string, Holder>;
}

/** The result of one ask for one limit. */
export interface Verdict {
  readonly limit: Limit;
  /** The refill since the bucket's base, not capped. */
  readonly creditedMilli: Int;
  readonly effectiveMilli: Millitokens;
  readonly requestedMilli: number;
  /** What must stay after the take, in this bucket or this shard of it. Left out: 0. */
  readonly reserveMilli?: number;
  /** The share of the capacity that `reserveMilli` is. */
  readonly reserve?: number;
  /** The limit is a shadow: it refuses nothing, and is taken only if the ask fits. */
  readonly shadow?: true;
  /** The status is `near` if at most this is left in this bucket, or in this shard of it. Left out: it never is. */
  readonly nearMilli?: number;
  /** The ask may be cut: `requestedMilli` is what it takes, or one token if there is less than that. */
  readonly cut?: true;
  /** 0: the ask fits. null: this bucket, or this shard of it, will never have enough. */
  readonly waitMs: number | null;
}

/** The announced wait where none can be computed: slots that no known lease holds, and asks that no single shard can serve. */
export const ASK_AGAIN_MS = 1_000;

/** The announced wait for a caller that lost to other writers. */
export const CONTENDED_RETRY_MS = 100;

/** The wait that the caller gets; null: waiting does not help. The whole limit may serve what one shard never can. */
export function announcedWait(verdict: Verdict): number | null {
  const { limit, waitMs } = verdict;
  if (waitMs !== null || exceedsCapacity(verdict)) return waitMs;
  const neverRefills = refills(limit.kind) && !gainsTokens(limit);
  return neverRefills ? null : ASK_AGAIN_MS;
}

/** Whether the ask and its reserve are larger than the whole limit, so that no wait and no reclaim helps. */
export function exceedsCapacity({ limit, requestedMilli, reserve = 0 }: Verdict): boolean {
  return requestedMilli + shareOfCapacity(limit, reserve) > limit.capacityMilli;
}

/** Whether the limit denies the ask. */
export function refuses({ waitMs, shadow }: Verdict): boolean {
  return waitMs !== 0 && shadow !== true;
}

/** What a grant takes: nothing from a shadow that is short. */
export function takenMilli({ waitMs, requestedMilli }: Verdict): number {
  return waitMs === 0 ? requestedMilli : 0;
}

/** Whether the answer could change if expired holders were reclaimed. */
export function mayGainByReclaim(verdicts: readonly Verdict[]): boolean {
  if (!verdicts.some((verdict) => verdict.waitMs !== 0 && !exceedsCapacity(verdict))) return false;
  return !verdicts.some((verdict) => refuses(verdict) && exceedsCapacity(verdict));
}

/**
 * What an ask must leave of a limit in this bucket, or in this shard of it. It is computed for the whole limit and then
 * divided like the capacity, so that the reserves of the shards add up to the reserve of the limit.
 */
export function reserveIn({ key, shardCount = 1 }: ShardOf, limit: Limit, reserve: number): number {
  const { kind, refillMilli, refillPeriodMs } = limit;
  const capacityMilli = shareOfCapacity(limit, reserve);
  return shareOf({ kind, capacityMilli, refillMilli, refillPeriodMs }, key?.shard ?? 0, shardCount).capacityMilli;
}

/**
 * The balance at which the used part of a limit reaches `warnAt`, in this bucket or in this shard of it. Divided like a
 * reserve, so that the balances of the shards add up to that of the limit.
 */
export function nearIn(
  bucket: ShardOf,
  { limit, rate = limit }: Omit<LimitBalance, 'tokensMilli'>,
  warnAt: number,
): number {
  return rate.capacityMilli - reserveIn(bucket, limit, warnAt);
}

/** The state of one limit of one level, in whole tokens. */
export interface LimitStatus {
  readonly entityId: string;
  readonly resource: string;
  readonly limit: Limit;
  /** The balance after the decision; negative in debt. */
  readonly available: number;
  /** What was asked. Of a limit that `atMost` names: what was taken, or 1 if the ask was denied for it. */
  readonly requested: number;
  /** What had to stay for asks of higher priority. Left out: nothing. */
  readonly reserved?: number;
  /** The limit is a shadow: it refuses nothing. If it is exceeded, nothing was taken from it. */
  readonly shadow?: true;
  /** The share of the limit that is used after the decision is at least its `warnAt`. Left out: it is less. */
  readonly near?: true;
  /** Whether the ask does not fit. */
  readonly exceeded: boolean;
  /** 0 if not exceeded; null if waiting does not help. */
  readonly retryAfterMs: number | null;
  /** Only of `status` and `peek`: the pause that refuses the ask now, whatever the balance. Left out: none runs. */
  readonly paused?: PausedBy;
}

export function amountOf(amounts: readonly Amount[], name: string): Millitokens | undefined {
  for (const amount of amounts) if (amount.name === name) return amount.milli;
  return undefined;
}

/** One verdict for each limit of the bucket that the ask names. Names that the bucket does not have are ignored. */
export function decide(bucket: BucketState, asks: readonly AskedAmount[], nowMs: EpochMs): readonly Verdict[] {
  // Every acquire runs this code, so it uses plain loops and arrays of their final size.
  const { limits } = bucket;
  const verdicts = new Array<Verdict>(limits.length);
  let asked = 0;
  for (const balance of limits) {
    const ask = askOf(asks, balance.limit.name);
    if (ask !== undefined) verdicts[asked++] = judgeAsk(bucket, balance, ask, nowMs);
  }
  if (asked < limits.length) verdicts.length = asked;
  return verdicts;
}

/** Whether `decide` would find no limit that refuses. Builds no verdicts. */
export function fitsAll(bucket: BucketState, asks: readonly AskedAmount[], nowMs: EpochMs): boolean {
  for (const balance of bucket.limits) {
    const ask = askOf(asks, balance.limit.name);
    if (ask !== undefined && ask.shadow !== true && !hasEnough(bucket, balance, ask, nowMs)) return false;
  }
  return true;
}

export function askOf(asks: readonly AskedAmount[], name: string): AskedAmount | undefined {
  for (const ask of asks) if (ask.name === name) return ask;
  return undefined;
}

function hasEnough(bucket: BucketState, balance: LimitBalance, ask: AskedAmount, nowMs: EpochMs) {
  const { limit, rate = limit, tokensMilli } = balance;
  if (!hasBalance(limit.kind)) return true;
  const { reserve } = ask;
  const milli = ask.atMost === true ? min(ask.milli, MILLI) : ask.milli;
  const needMilli = reserve === undefined ? milli : add(milli, reserveIn(bucket, limit, reserve));
  return effectiveTokens(rate, tokensMilli, credit(rate, bucket.baseMs, nowMs)) >= needMilli;
}

function judgeAsk(bucket: BucketState, balance: LimitBalance, ask: AskedAmount, nowMs: EpochMs): Verdict {
  const requestedMilli = Number(ask.milli);
  const { reserve, shadow, warnAt, atMost } = ask;
  if (reserve === undefined && shadow === undefined && warnAt === undefined && atMost === undefined) {
    return judge(bucket, balance, { requestedMilli, reserveMilli: 0 }, nowMs);
  }
  const reserveMilli = reserve === undefined ? 0 : reserveIn(bucket, balance.limit, reserve);
  const need = { requestedMilli, reserveMilli };
  const verdict = atMost === undefined ? judge(bucket, balance, need, nowMs) : judgeCut(bucket, balance, need, nowMs);
  return {
    ...verdict,
    ...(reserve === undefined ? {} : { reserveMilli, reserve }),
    ...(shadow === undefined ? {} : { shadow }),
    ...(warnAt === undefined ? {} : { nearMilli: nearIn(bucket, balance, warnAt) }),
  };
}

/** The verdict for what is left of the ask if it is cut to whole tokens that are there, and to one token if there are none. */
function judgeCut(bucket: BucketState, balance: LimitBalance, need: Need, nowMs: EpochMs): Verdict {
  const whole = judge(bucket, balance, need, nowMs);
  // A limit without a balance does not cut.
  if (!hasBalance(balance.limit.kind)) return whole;
  if (whole.waitMs === 0 || need.requestedMilli <= MILLI) return { ...whole, cut: true };
  const room = wholeTokens(add(whole.effectiveMilli, -need.reserveMilli)) * MILLI;
  const requestedMilli = Math.max(MILLI, Math.min(need.requestedMilli, room));
  return { ...judge(bucket, balance, { ...need, requestedMilli }, nowMs), cut: true };
}

interface Need {
  readonly requestedMilli: number;
  readonly reserveMilli: number;
}

function judge(bucket: BucketState, balance: LimitBalance, need: Need, nowMs: EpochMs): Verdict {
  const { limit, tokensMilli, rate = limit } = balance;
  const { requestedMilli } = need;
  const needMilli = requestedMilli + need.reserveMilli;
  switch (limit.kind) {
    case 'rate': {
      const creditedMilli = credit(rate, bucket.baseMs, nowMs);
      const effectiveMilli = effectiveTokens(rate, tokensMilli, creditedMilli);
      const isEnough = effectiveMilli >= needMilli;
      const waitMs = isEnough ? 0 : waitForTokens(rate, tokensMilli, bucket.baseMs, needMilli, nowMs);
      return { limit, creditedMilli, effectiveMilli, requestedMilli, waitMs };
    }
    case 'concurrent': {
      const waitMs = tokensMilli >= needMilli ? 0 : waitForSlots(bucket, balance, needMilli, nowMs);
      return { limit, creditedMilli: 0, effectiveMilli: tokensMilli, requestedMilli, waitMs };
    }
    case 'unlimited':
      // There is always as much as is asked, so that a take leaves the balance at 0.
      return { limit, creditedMilli: 0, effectiveMilli: requestedMilli, requestedMilli, waitMs: 0 };
  }
}

/** The longest possible wait: until enough holders will have expired, at least 1 ms. Leases may end earlier. */
function waitForSlots(bucket: BucketState, balance: LimitBalance, needMilli: number, nowMs: EpochMs): number | null {
  if (needMilli > balance.limit.capacityMilli) return null;
  let free = balance.tokensMilli;
  const byExpiry = [...bucket.holders.values()].toSorted((a, b) => a.expiresAtMs - b.expiresAtMs);
  for (const holder of byExpiry) {
    free = add(free, amountOf(holder.slots, balance.limit.name) ?? 0);
    if (free >= needMilli) return Math.max(1, holder.expiresAtMs - nowMs);
  }
  return null;
}

/** The public form of a verdict: whole tokens, rounded down, less the ask if it was granted. */
export function limitStatus(entityId: string, resource: string, verdict: Verdict, granted: boolean): LimitStatus {
  const { limit, effectiveMilli, requestedMilli, reserve, shadow, nearMilli, waitMs } = verdict;
  const leftMilli = granted ? add(effectiveMilli, -takenMilli(verdict)) : effectiveMilli;
  const status = {
    entityId,
    resource,
    limit,
    available: wholeTokens(leftMilli),
    requested: requestedMilli / MILLI,
    exceeded: waitMs !== 0,
    retryAfterMs: announcedWait(verdict),
  };
  const isNear = nearMilli !== undefined && leftMilli <= nearMilli;
  // Most verdicts have no options. To spread none of them takes as long as the rest of the status.
  if (reserve === undefined && shadow === undefined && !isNear) return status;
  return {
    ...status,
    ...(reserve === undefined ? {} : { reserved: shareOfCapacity(limit, reserve) / MILLI }),
    ...(shadow === undefined ? {} : { shadow }),
    ...(isNear ? { near: true } : {}),
  };
}

/** Whole tokens, rounded down: -1 millitoken is a debt of one token. */
export function wholeTokens(milli: Int): number {
  return Number(floorDiv(milli, MILLI));
}
