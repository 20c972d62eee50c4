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
import { fullTokens, isConsumed, isUnlimitedIn, type Limit } from '../../core/limit.js';
import { windowStart } from '../../core/usage/usage.js';
import type { EpochMs, Millitokens } from '../../core/units.js';

/** One limit's balance and counters. */
export interface Account {
  limit: Limit;
  tokensMilli: Millitokens;
  /** Net consumption since the bucket was born. */
  consumedMilli: Int;
  /** How much of `consumedMilli` has gone into usage records. */
  foldedMilli: Int;
}

/** The state of one entity and resource: changed in place, inside the store's transaction. */
export interface Bucket {
  baseMs: EpochMs;
  version: ConfigVersion;
  limits: Account[];
  /** Accounts of limits that were removed: if one comes back, its counter goes on. */
  retired: readonly Account[];
  /** Changed through `hold` and `forget` only: buckets without holders share one empty map. */
  holders: ReadonlyMap<string, Holder>;
  acquires: number;
  expired: number;
  foldedAcquires: number;
  foldedExpired: number;
  /** The hour in which everything not yet folded happened. */
  hourMs: EpochMs;
}

const NO_HOLDERS: ReadonlyMap<string, Holder> = new Map();
const NO_ACCOUNTS: readonly Account[] = [];

export function createBucket(limits: readonly Limit[], version: ConfigVersion, nowMs: EpochMs): Bucket {
  return {
    baseMs: nowMs,
    version,
    limits: limits.map((limit) => newAccount(limit, fullTokens(limit))),
    retired: NO_ACCOUNTS,
    holders: NO_HOLDERS,
    acquires: 0,
    expired: 0,
    foldedAcquires: 0,
    foldedExpired: 0,
    hourMs: windowStart('hourly', nowMs),
  };
}

function newAccount(limit: Limit, tokensMilli: Millitokens): Account {
  return { limit, tokensMilli, consumedMilli: 0, foldedMilli: 0 };
}

/** Brings the bucket to newer rules; older ones leave it alone. True: it changed. */
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
  bucket.limits = wanted.limits.map((limit) => {
    const account = before.find((candidate) => isSameAccount(candidate.limit, limit));
    const stays = account !== undefined && live.has(account) && account.limit.kind === limit.kind;
    const tokensMilli =
      stays && limit.kind !== 'unlimited'
        ? applyWrite(planRebase(account.limit, limit, account.tokensMilli, bucket.baseMs, baseMs), account.tokensMilli)
        : startingTokens(bucket, limit);
    return { ...(account ?? newAccount(limit, tokensMilli)), limit, tokensMilli };
  });
  const retired = before.filter(({ limit }) => !wanted.limits.some((other) => isSameAccount(limit, other)));
  bucket.retired = retired.length === 0 ? NO_ACCOUNTS : retired;
  bucket.version = wanted.version;
  bucket.baseMs = baseMs;
  return true;
}

/** Slots that were taken are no tokens that were used. Of a rate that is lifted, the counter goes on. */
function isSameAccount(a: Limit, b: Limit): boolean {
  return a.name === b.name && isConsumed(a.kind) === isConsumed(b.kind);
}

/** A limit that is added starts full; slots that are held already stay held. */
function startingTokens(bucket: Bucket, limit: Limit): Millitokens {
  let tokensMilli: Millitokens = fullTokens(limit);
  if (limit.kind !== 'concurrent') return tokensMilli;
  for (const holder of bucket.holders.values()) tokensMilli = sub(tokensMilli, amountOf(holder.slots, limit.name) ?? 0);
  return tokensMilli;
}

/** Takes what was decided to fit. */
export function take(bucket: Bucket, verdicts: readonly Verdict[]): void {
  for (const { limit, creditedMilli, effectiveMilli, requestedMilli } of verdicts) {
    for (const account of bucket.limits) {
      if (account.limit !== limit) continue;
      account.tokensMilli = tokensAfterTake(effectiveMilli, creditedMilli, requestedMilli);
      account.consumedMilli = add(account.consumedMilli, requestedMilli);
    }
  }
  bucket.acquires += 1;
}

/**
 * Debits (positive, into debt) and refunds (negative, capped when next looked at). A limit that is gone drops its part;
 * so does one that has changed its kind since: tokens are no slots. `rules`: what the lease took by. What it took of an
 * unlimited limit was in no balance, so that a limit which has replaced it since must not get it back.
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
    if (isConsumed(account.limit.kind) !== isConsumed(kind)) continue;
    account.consumedMilli = add(account.consumedMilli, deltaMilli);
    if (account.limit.kind === 'unlimited' || (deltaMilli < 0 && isUnlimitedIn(rules, name))) continue;
    const write = planMove(account.limit, account.tokensMilli, credit(account.limit, bucket.baseMs, nowMs), {
      takeMilli: null,
      debitMilli: deltaMilli > 0 ? deltaMilli : 0,
      refundMilli: deltaMilli < 0 ? sub(0, deltaMilli) : 0,
    });
    account.tokensMilli = applyWrite(write, account.tokensMilli);
  }
}

/** Keeps a holder, or what it has become. */
export function hold(bucket: Bucket, leaseId: string, holder: Holder): void {
  if (bucket.holders.size === 0) bucket.holders = new Map();
  (bucket.holders as Map<string, Holder>).set(leaseId, holder);
}

function forget(bucket: Bucket, leaseId: string): void {
  (bucket.holders as Map<string, Holder>).delete(leaseId);
  if (bucket.holders.size === 0) bucket.holders = NO_HOLDERS;
}

export function forgetAllHolders(bucket: Bucket): void {
  bucket.holders = NO_HOLDERS;
}

/** Gives back what a holder holds of slots, and forgets it. */
export function release(bucket: Bucket, leaseId: string, nowMs: EpochMs): void {
  const holder = bucket.holders.get(leaseId);
  if (holder === undefined) return;
  forget(bucket, leaseId);
  move(bucket, 'concurrent', negated(holder.slots), nowMs);
}

export function hasExpired(bucket: Bucket, nowMs: EpochMs): boolean {
  for (const holder of bucket.holders.values()) if (holder.expiresAtMs <= nowMs) return true;
  return false;
}

/** Takes back what expired holders hold: their slots, and their rates if they carry them. */
export function reclaimExpired(bucket: Bucket, nowMs: EpochMs): void {
  for (const [leaseId, holder] of bucket.holders) {
    if (holder.expiresAtMs > nowMs) continue;
    release(bucket, leaseId, nowMs);
    if (holder.rates !== null) move(bucket, 'rate', negated(holder.rates), nowMs);
    bucket.expired += 1;
  }
}

export function negated(amounts: readonly Amount[]): readonly Amount[] {
  return amounts.map(({ name, milli }) => ({ name, milli: sub(0, milli) }));
}

/** Whether forgetting the bucket changes no answer: a new one would be the same. */
export function isIdle(bucket: Bucket, nowMs: EpochMs): boolean {
  if (bucket.holders.size > 0) return false;
  return bucket.limits.every(
    ({ limit, tokensMilli }) =>
      limit.kind === 'unlimited' ||
      effectiveTokens(limit, tokensMilli, credit(limit, bucket.baseMs, nowMs)) >= limit.capacityMilli,
  );
}

/** For looking at what would be, without changing what is. */
export function copyOf(bucket: Bucket): Bucket {
  return { ...bucket, limits: bucket.limits.map((account) => ({ ...account })), holders: new Map(bucket.holders) };
}
