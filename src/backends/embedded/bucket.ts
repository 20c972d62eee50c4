import {
  applyWrite,
  credit,
  effectiveTokens,
  nextBase,
  planMove,
  planRebase,
  tokensAfterTake,
} from '../../core/bucket/bucket.js';
import { type ConfigVersion, compareConfig } from '../../core/config/config.js';
import { type Amount, amountOf, type Holder, type Verdict } from '../../core/bucket/decide.js';
import { add, type Int, sub } from '../../core/int.js';
import { expiryOf, refundsCounterOnly } from '../../core/bucket/give-back.js';
import { heldSlots, startingTokens } from '../../core/bucket/held-slots.js';
import { isClosed } from '../../core/bucket/portable.js';
import { hasBalance, isConsumed, sharesAccount } from '../../core/limit-kind.js';
import { fullTokens, type Limit } from '../../core/limit.js';
import { isRunning, type Pause } from '../../core/pause.js';
import { windowStart } from '../../core/usage/usage.js';
import type { EpochMs, Millitokens } from '../../core/units.js';

/** The balance and counters of one limit. */
export interface Account {
  limit: Limit;
  tokensMilli: Millitokens;
  /** Net consumption since the bucket was created. */
  consumedMilli: Int;
  /** The part of `consumedMilli` that is in usage records. */
  foldedMilli: Int;
}

/** Represents the tables that keep a bucket as an object of this process. */
export interface Home {
  /** False: the next call must check whether the namespace is active. */
  isOpen: boolean;
}

/** The state of one entity and resource: mutated inside the store's transaction. */
export interface Bucket {
  /** Set while this very object is stored in memory; null for a bucket that is new, evicted, a copy or read from a file. */
  home: Home | null;
  baseMs: EpochMs;
  version: ConfigVersion;
  limits: Account[];
  /** Accounts of removed limits: if one is added again, its counter continues. */
  retired: readonly Account[];
  /** Changed only by `hold` and `drop`: buckets without holders share one empty map. */
  holders: ReadonlyMap<string, Holder>;
  acquires: number;
  expired: number;
  foldedAcquires: number;
  foldedExpired: number;
  /** The hour of everything that is not folded yet. */
  hourMs: EpochMs;
  pause: Pause | null;
}

const NO_HOLDERS: ReadonlyMap<string, Holder> = new Map();
const NO_ACCOUNTS: readonly Account[] = [];

export function createBucket(limits: readonly Limit[], version: ConfigVersion, nowMs: EpochMs): Bucket {
  return {
    home: null,
    baseMs: nowMs,
    version,
    limits: limits.map((limit) => newAccount(limit.withoutOptions(), fullTokens(limit))),
    retired: NO_ACCOUNTS,
    holders: NO_HOLDERS,
    acquires: 0,
    expired: 0,
    foldedAcquires: 0,
    foldedExpired: 0,
    hourMs: windowStart('hourly', nowMs),
    pause: null,
  };
}

function newAccount(limit: Limit, tokensMilli: Millitokens): Account {
  return { limit, tokensMilli, consumedMilli: 0, foldedMilli: 0 };
}

/** Brings the bucket to newer rules; older rules change nothing. True: the bucket changed. */
export function settle(
  bucket: Bucket,
  wanted: { readonly limits: readonly Limit[]; readonly version: ConfigVersion },
  nowMs: EpochMs,
): boolean {
  const verdict = compareConfig(bucket, wanted);
  if (verdict === 'adopt') bucket.version = wanted.version;
  if (verdict !== 'settle') return verdict === 'adopt';
  const baseMs = nextBase(bucket.baseMs, nowMs);
  const before = [...bucket.limits, ...bucket.retired];
  const live = new Set(bucket.limits);
  bucket.limits = wanted.limits.map((configured) => {
    const limit = configured.withoutOptions();
    const account = before.find((candidate) => isSameAccount(candidate.limit, limit));
    const stays = account !== undefined && live.has(account) && account.limit.kind === limit.kind;
    const tokensMilli =
      stays && hasBalance(limit.kind)
        ? applyWrite(planRebase(account.limit, limit, account.tokensMilli, bucket.baseMs, baseMs), account.tokensMilli)
        : startingTokens(limit, heldSlots(bucket.holders, limit.name));
    return { ...(account ?? newAccount(limit, tokensMilli)), limit, tokensMilli };
  });
  const retired = before.filter(({ limit }) => !wanted.limits.some((other) => isSameAccount(limit, other)));
  bucket.retired = retired.length === 0 ? NO_ACCOUNTS : retired;
  bucket.version = wanted.version;
  bucket.baseMs = baseMs;
  return true;
}

function isSameAccount(a: Limit, b: Limit): boolean {
  return a.name === b.name && sharesAccount(a.kind, b.kind);
}

/** Takes what was decided to fit. Of a shadow that is short nothing is taken; its counter counts the ask. */
export function take(bucket: Bucket, verdicts: readonly Verdict[]): void {
  for (const { limit, creditedMilli, effectiveMilli, requestedMilli, waitMs } of verdicts) {
    for (const account of bucket.limits) {
      if (account.limit !== limit) continue;
      if (waitMs !== 0) {
        if (isConsumed(limit.kind)) account.consumedMilli = add(account.consumedMilli, requestedMilli);
        continue;
      }
      account.tokensMilli = tokensAfterTake(effectiveMilli, creditedMilli, requestedMilli);
      account.consumedMilli = add(account.consumedMilli, requestedMilli);
    }
  }
  bucket.acquires += 1;
}

/**
 * Debits (positive, down to a debt) and refunds (negative, capped by the next read). Skips limits that were removed or
 * changed their kind since: tokens are not slots. `rules`: the limits that the lease took by.
 */
export function move(
  bucket: Bucket,
  kind: 'rate' | 'concurrent',
  deltas: readonly Amount[],
  nowMs: EpochMs,
  rules: readonly Limit[] = [],
): void {
  for (const account of bucket.limits) {
    const { name } = account.limit;
    const deltaMilli = amountOf(deltas, name);
    if (deltaMilli === undefined || deltaMilli === 0) continue;
    if (!sharesAccount(account.limit.kind, kind)) continue;
    account.consumedMilli = add(account.consumedMilli, deltaMilli);
    if (!hasBalance(account.limit.kind) || (deltaMilli < 0 && refundsCounterOnly(rules, name))) continue;
    const write = planMove(account.limit, account.tokensMilli, credit(account.limit, bucket.baseMs, nowMs), {
      takeMilli: null,
      debitMilli: deltaMilli > 0 ? deltaMilli : 0,
      refundMilli: deltaMilli < 0 ? sub(0, deltaMilli) : 0,
    });
    account.tokensMilli = applyWrite(write, account.tokensMilli);
  }
}

/** Adds or replaces a holder. */
export function hold(bucket: Bucket, leaseId: string, holder: Holder): void {
  if (bucket.holders.size === 0) bucket.holders = new Map();
  (bucket.holders as Map<string, Holder>).set(leaseId, holder);
}

function drop(bucket: Bucket, leaseId: string): void {
  (bucket.holders as Map<string, Holder>).delete(leaseId);
  if (bucket.holders.size === 0) bucket.holders = NO_HOLDERS;
}

/** Keeps the holders of leases that have ended: they hold nothing, and answer repeats. */
export function forgetOpenHolders(bucket: Bucket): void {
  const closed = [...bucket.holders].filter(([, holder]) => isClosed(holder));
  bucket.holders = closed.length === 0 ? NO_HOLDERS : new Map(closed);
}

/** Gives back a holder's slots and removes it. */
export function release(bucket: Bucket, leaseId: string, nowMs: EpochMs): void {
  const holder = bucket.holders.get(leaseId);
  if (holder === undefined) return;
  drop(bucket, leaseId);
  move(bucket, 'concurrent', negated(holder.slots), nowMs);
}

/** Gives back what expired holders hold: their slots, and their rates if they carry them. */
export function reclaimExpired(bucket: Bucket, nowMs: EpochMs): void {
  for (const [leaseId, holder] of bucket.holders) {
    if (holder.expiresAtMs > nowMs) continue;
    endLease(bucket, leaseId, holder, nowMs);
    if (expiryOf(holder).counts) bucket.expired += 1;
  }
}

/** Gives back what an expiry gives back. Of a lease that has ended nothing is left. */
export function endLease(bucket: Bucket, leaseId: string, holder: Holder, nowMs: EpochMs): void {
  release(bucket, leaseId, nowMs);
  move(bucket, 'rate', negated(expiryOf(holder).rates), nowMs);
}

export function negated(amounts: readonly Amount[]): readonly Amount[] {
  return amounts.map(({ name, milli }) => ({ name, milli: sub(0, milli) }));
}

/** Whether deleting the bucket changes no answer: a new bucket would be equal. */
export function isIdle(bucket: Bucket, nowMs: EpochMs): boolean {
  if (bucket.holders.size > 0 || isRunning(bucket.pause, nowMs)) return false;
  return bucket.limits.every(
    ({ limit, tokensMilli }) =>
      !hasBalance(limit.kind) ||
      effectiveTokens(limit, tokensMilli, credit(limit, bucket.baseMs, nowMs)) >= limit.capacityMilli,
  );
}

/** A copy to compute on without changing the stored bucket. */
export function copyBucket(bucket: Bucket): Bucket {
  const limits = bucket.limits.map((account) => ({ ...account }));
  return { ...bucket, home: null, limits, holders: new Map(bucket.holders) };
}
