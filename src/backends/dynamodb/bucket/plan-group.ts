import type { LevelAnswer, LevelAsk, LevelRef } from '../../../backend.js';
import { credit, effectiveTokens, tokensAfterTake } from '../../../core/bucket/bucket.js';
import { compareVersions, compareConfig } from '../../../core/config/config.js';
import {
  type Amount,
  amountOf,
  decide,
  exceedsCapacity,
  type Holder,
  type LimitBalance,
  type Verdict,
} from '../../../core/bucket/decide.js';
import { sub } from '../../../core/int.js';
import { isConsumed, isUnlimitedIn } from '../../../core/limit.js';
import type { EpochMs, Millitokens } from '../../../core/units.js';
import type { AskEntry, ChangeEntry, Entry, EntryResult, ExtendEntry } from './entries.js';
import type { Account, ShardImage } from '../table/items.js';
import { Sums } from './limit-sums.js';
import { expiresTooEarly, expirySec, needsTtlRefresh, untilForgotten } from './bucket-ttl.js';
import {
  addHolder,
  applyShardWrite,
  changesNothing,
  countsOnce,
  type HolderChange,
  type ShardWrite,
  removeHolder,
  replaceHolder,
} from './shard-write.js';

/**
 * How far an image may be believed. `exact`: the store has just shown it. `young`: recent enough to deny rates from.
 * `guess`: it only chooses the form of a write, whose condition decides.
 */
export type Trust = 'exact' | 'young' | 'guess';

export type GroupPlan =
  /** Something must be put right before anybody can be answered. */
  | { readonly kind: 'settle'; readonly level: LevelRef }
  | { readonly kind: 'reclaim'; readonly move: ShardWrite }
  | { readonly kind: 'rebase' }
  /** The answers depend on what the store has now, and there is nothing to write that would tell. */
  | { readonly kind: 'read' }
  /** One result per entry, valid once the write has landed; null: the entry must wait for the next write. */
  | { readonly kind: 'write'; readonly move: ShardWrite; readonly results: readonly (EntryResult | null)[] }
  /** The same, with nothing to write. */
  | { readonly kind: 'answer'; readonly results: readonly (EntryResult | null)[] };

export interface PlanContext {
  readonly nowMs: EpochMs;
  readonly trust: Trust;
  readonly lifeFactor: number;
  /** A write of this group got no answer: what would count twice if that one landed is left out. */
  readonly withoutRefunds: boolean;
}

/** Holders in one write: DynamoDB takes 300 operators and 4 KB of condition. */
const MAX_HOLDERS = 80;

/** Beyond this, balances leave the numbers that are fast: the base is moved, and they become small again. */
const LARGE_MILLI = 2 ** 50;

/**
 * Decides a group on an image: acquires first in the order of their arrival, skipping who does not fit, then debits,
 * then refunds. Asks that an image cannot refuse for certain are written as if they fitted: the store will say.
 * The asks are answered as if each had come alone, one after another: an ask that is short while holders have expired
 * waits, with those behind it, until the asks before it are written and the expired holders are taken back.
 */
export function planGroup(image: ShardImage, entries: readonly Entry[], at: PlanContext): GroupPlan {
  const newest = newestLevel(entries);
  const standing = newest === null ? 'keep' : compareConfig(image, newest);
  if (newest !== null && standing === 'settle') return { kind: 'settle', level: newest };
  if (image.limits.some((account) => needsRebase(account, image.baseMs, at.nowMs))) return { kind: 'rebase' };
  const work = new Work(image, at);
  const results: (EntryResult | null)[] = new Array<null>(entries.length).fill(null);
  for (const [place, entry] of entries.entries()) {
    if (entry.kind !== 'ask') continue;
    results[place] = work.ask(entry);
    if (work.needsReclaim) break;
  }
  if (work.needsReclaim && results.every((result) => result === null)) {
    return { kind: 'reclaim', move: planReclaim(image, at.nowMs) };
  }
  for (const [place, entry] of entries.entries()) {
    if (entry.kind === 'change') results[place] = work.change(entry);
    else if (entry.kind === 'extend') results[place] = work.extend(entry);
  }
  const move = work.finish(newest, newest !== null && standing === 'adopt' ? newest.version : null);
  if (!changesNothing(move)) return { kind: 'write', move, results };
  // Nothing would change, but an answer may depend on bounds or on a holder that only the store knows for certain.
  return at.trust === 'exact' || !work.unsure ? { kind: 'answer', results } : { kind: 'read' };
}

export function newestLevel(entries: readonly Entry[]): LevelRef | null {
  let newest: LevelRef | null = null;
  for (const entry of entries) {
    if (entry.kind === 'extend') continue;
    if (newest === null || compareVersions(entry.level.version, newest.version) > 0) newest = entry.level;
  }
  return newest;
}

/**
 * Only where that helps: a debt may be as large by itself. Not at the base's own instant: it moves strictly, and would
 * credit a millisecond that is still to come.
 */
function needsRebase({ rate, tokensMilli }: Account, baseMs: EpochMs, nowMs: EpochMs): boolean {
  if (isSmall(tokensMilli) || nowMs <= baseMs) return false;
  return rate.refillPeriodMs !== 0 && isSmall(effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs)));
}

function isSmall(milli: Millitokens): boolean {
  return milli <= LARGE_MILLI && milli >= -LARGE_MILLI;
}

export function hasExpired(image: ShardImage, nowMs: EpochMs): boolean {
  for (const { expiresAtMs } of image.holders.values()) if (expiresAtMs <= nowMs) return true;
  return false;
}

/** Takes back what expired holders hold: their slots, and their rates where they carry them. */
export function planReclaim(image: ShardImage, nowMs: EpochMs): ShardWrite {
  const sums = new Sums();
  const holders: HolderChange[] = [];
  for (const [leaseId, holder] of image.holders) {
    if (holder.expiresAtMs > nowMs || holders.length === MAX_HOLDERS) continue;
    holders.push(removeHolder(leaseId, holder));
    sums.refund(image, 'concurrent', holder.slots);
    sums.refund(image, 'rate', holder.rates ?? []);
  }
  const limits = sums.moves(image, nowMs);
  return { limits, acquires: 0, expired: holders.length, holders, adopts: null, ttlSec: undefined };
}

/** One group being put together. */
class Work {
  /** An ask is short, and holders have expired: it is not judged before they are taken back. */
  needsReclaim = false;
  /** Somebody's answer rests on what the image lacks, and the image is not exact. */
  unsure = false;
  readonly #image: ShardImage;
  readonly #at: PlanContext;
  readonly #sums = new Sums();
  readonly #holders = new Map<string, HolderChange>();
  /** Who holds slots when the next ask is judged: those of the image, then the asks of this group that were granted. */
  #held: ReadonlyMap<string, Holder>;
  /** What is left for the next ask. */
  readonly #left: { limit: LimitBalance['limit']; rate: Account['rate']; tokensMilli: Millitokens }[];
  #acquires = 0;

  constructor(image: ShardImage, at: PlanContext) {
    this.#image = image;
    this.#at = at;
    this.#held = image.holders;
    this.#left = image.limits.map(({ limit, rate, tokensMilli }) => ({ limit, rate, tokensMilli }));
  }

  ask({ level, leaseId, counts, looksOnly }: AskEntry): EntryResult | null {
    const { baseMs, holders } = this.#image;
    const verdicts = decide({ baseMs, limits: this.#left, holders: this.#held }, level.asks, this.#at.nowMs);
    const configIsOlder = compareConfig(this.#image, level) === 'reread';
    let answer: LevelAnswer = { verdicts, configIsOlder };
    if (verdicts.some(({ waitMs }) => waitMs !== 0)) {
      if (hasExpired(this.#image, this.#at.nowMs) && !verdicts.some(exceedsCapacity)) {
        this.needsReclaim = true;
        return null;
      }
      if (this.#refusesForCertain(verdicts, level)) {
        return { kind: 'denied', answer, remembered: this.#at.trust !== 'exact' };
      }
      this.unsure = true;
      // It is granted only if the write lands, and the write lands only if it fits.
      answer = { verdicts: verdicts.map((verdict) => ({ ...verdict, waitMs: 0 })), configIsOlder };
    }
    if (configIsOlder && takesUnheldSlots(level, verdicts)) return { kind: 'unheld', answer };
    if (looksOnly === true) {
      this.unsure = true;
      return { kind: 'granted', answer };
    }
    if (level.holder !== null && leaseId !== null) {
      if (this.#holders.size >= MAX_HOLDERS || this.#holders.has(leaseId)) return null;
      if (holders.has(leaseId) && this.#at.trust === 'exact') return { kind: 'id-taken' };
      this.#hold(leaseId, heldOf(level.holder, verdicts, configIsOlder));
    }
    for (const { limit, creditedMilli, effectiveMilli, requestedMilli } of verdicts) {
      this.#sums.take(limit.name, requestedMilli);
      const left = this.#left.find((balance) => balance.limit === limit);
      if (left !== undefined) left.tokensMilli = tokensAfterTake(effectiveMilli, creditedMilli, requestedMilli);
    }
    if (counts) this.#acquires += 1;
    return { kind: 'granted', answer };
  }

  #hold(leaseId: string, holder: Holder): void {
    this.#holders.set(leaseId, addHolder(leaseId, holder));
    if (this.#held === this.#image.holders) this.#held = new Map(this.#held);
    (this.#held as Map<string, Holder>).set(leaseId, holder);
  }

  /** Slots that are held by now may be free in the next moment: only the store can refuse them. */
  #refusesForCertain(verdicts: readonly Verdict[], level: LevelAsk): boolean {
    if (this.#at.trust === 'exact') return true;
    const short = verdicts.filter(({ waitMs }) => waitMs !== 0);
    if (
      short.some(({ limit, waitMs, requestedMilli }) => waitMs === null && neverFits(level, limit.name, requestedMilli))
    ) {
      return true;
    }
    return this.#at.trust === 'young' && short.some(({ limit }) => limit.kind === 'rate');
  }

  change({ level, leaseId, uncounts, onlyIfHeld }: ChangeEntry): EntryResult | null {
    const stored = level.holder === 'none' ? undefined : this.#image.holders.get(leaseId);
    const holderLost = level.holder !== 'none' && stored === undefined;
    if (level.holder !== 'none') {
      if (this.#holders.size >= MAX_HOLDERS || this.#holders.has(leaseId)) return null;
      const move = this.#holderMove(level, leaseId);
      if (move !== null) this.#holders.set(leaseId, move);
    }
    if (onlyIfHeld === true && holderLost) return { kind: 'done', holderLost };
    const amounts = amountsDue(level, stored, holderLost);
    // A holder that changes with the refund makes it count once; without one, a second sending could count twice.
    const mayRefund = !this.#at.withoutRefunds || countsOnce(this.#holders.get(leaseId));
    for (const { name, milli } of amounts) {
      const kind = accountOf(this.#image, name)?.limit.kind;
      if (kind === undefined || !isConsumed(kind) || milli === 0) continue;
      if (milli > 0) this.#sums.debit(name, milli);
      else if (!mayRefund) continue;
      // It was in no balance: a limit that has replaced the unlimited one since must not get it back.
      else if (isUnlimitedIn(level.limits, name)) this.#sums.uncount(name, sub(0, milli));
      else this.#sums.refund(this.#image, 'rate', [{ name, milli: sub(0, milli) }]);
    }
    if (level.holder === 'release' && stored !== undefined) {
      this.#sums.refund(this.#image, 'concurrent', stored.slots);
    }
    if (uncounts && mayRefund) this.#acquires -= 1;
    return { kind: 'done', holderLost };
  }

  #holderMove(level: ChangeEntry['level'], leaseId: string): HolderChange | null {
    const stored = this.#image.holders.get(leaseId);
    if (stored === undefined) {
      this.unsure = true;
      return this.#at.trust === 'exact' ? null : { kind: 'absent', leaseId };
    }
    if (level.holder === 'release') return removeHolder(leaseId, stored);
    // That it is still there is a part of the answer, also where nothing of it changes.
    if (stored.rates === null || level.totals === null) return replaceHolder(leaseId, stored, stored);
    // What the bucket lacks is not charged, so that an expiry must not give it back should it return.
    const rates = level.totals.filter(({ name }) => {
      const kind = accountOf(this.#image, name)?.limit.kind;
      return kind !== undefined && isConsumed(kind);
    });
    return replaceHolder(leaseId, stored, { ...stored, rates });
  }

  extend({ leaseId, expiresAtMs }: ExtendEntry): EntryResult | null {
    if (this.#holders.size >= MAX_HOLDERS || this.#holders.has(leaseId)) return null;
    const stored = this.#image.holders.get(leaseId);
    if (stored !== undefined) {
      this.#holders.set(leaseId, replaceHolder(leaseId, stored, { ...stored, expiresAtMs }));
      return { kind: 'extended', found: true };
    }
    this.unsure = true;
    if (this.#at.trust !== 'exact') this.#holders.set(leaseId, { kind: 'absent', leaseId });
    return { kind: 'extended', found: false };
  }

  finish(newest: LevelRef | null, adopts: ShardWrite['adopts']): ShardWrite {
    const move: ShardWrite = {
      limits: this.#sums.moves(this.#image, this.#at.nowMs),
      acquires: this.#acquires,
      expired: 0,
      holders: [...this.#holders.values()],
      adopts,
      ttlSec: undefined,
    };
    return changesNothing(move) ? move : this.#outliving(move, newest);
  }

  /** With a `ttl` that is long enough for what the move leaves, and refused where others have left a larger debt. */
  #outliving(move: ShardWrite, newest: LevelRef | null): ShardWrite {
    const { baseMs, limits, ttlSec, version } = this.#image;
    // A bucket that has none gets one by a write of its own, which moves the base: this move would not know of it.
    if (ttlSec === null) return move;
    if (newest?.lasting === true && compareVersions(newest.version, version) >= 0) return { ...move, ttlSec: null };
    const renewedSec = this.#renewedTtl(move, ttlSec);
    const bounded = move.limits.map((limit) => {
      const rate = limits.find((account) => account.limit.name === limit.name)?.rate;
      const isSpent = limit.write.write === 'add' && limit.write.deltaMilli < 0;
      if (rate === undefined || !isSpent) return limit;
      return { ...limit, write: untilForgotten(limit.write, rate, baseMs, renewedSec ?? ttlSec) };
    });
    return { ...move, limits: bounded, ttlSec: renewedSec };
  }

  /** undefined: what it has is long enough. */
  #renewedTtl(move: ShardWrite, ttlSec: number): number | undefined {
    const { nowMs, lifeFactor } = this.#at;
    const after = applyShardWrite(this.#image, move, '');
    if (!needsTtlRefresh(this.#image, nowMs, lifeFactor) && !expiresTooEarly(after)) return undefined;
    return Math.max(ttlSec, expirySec(after, nowMs, lifeFactor));
  }
}

export function accountOf({ limits }: ShardImage, name: string): Account | undefined {
  for (const account of limits) if (account.limit.name === name) return account;
  return undefined;
}

/** What a change takes (positive) or gives back. */
function amountsDue(
  { deltas, totals }: ChangeEntry['level'],
  stored: Holder | undefined,
  holderLost: boolean,
): readonly Amount[] {
  if (totals === null) return deltas;
  // An expiry that gave the rates back left nothing to correct: the whole amount is due again.
  if (holderLost) return totals;
  // What the holder carries was taken: a change that has been made already, though nobody was told, is not made again.
  const carried = stored?.rates ?? [];
  const isCarried = ({ name }: Amount): boolean => amountOf(carried, name) !== undefined;
  const corrected = totals.filter(isCarried).map(({ name, milli }) => {
    return { name, milli: sub(milli, amountOf(carried, name) ?? 0) };
  });
  return [...corrected, ...deltas.filter((delta) => !isCarried(delta))];
}

/** By the rules that the caller has read, too: those of an old image may have been raised since. */
function neverFits({ limits }: LevelAsk, name: string, requestedMilli: number): boolean {
  const limit = limits.find((candidate) => candidate.name === name);
  return limit === undefined || requestedMilli > limit.capacityMilli;
}

/**
 * An older config may take for a rate what is slots by now, and so bring no holder for them: nobody would ever give them
 * back. The client comes again once it has read its config.
 */
function takesUnheldSlots({ holder }: LevelAsk, verdicts: readonly Verdict[]): boolean {
  return verdicts.some(
    ({ limit, requestedMilli }) =>
      limit.kind === 'concurrent' && requestedMilli > 0 && amountOf(holder?.slots ?? [], limit.name) === undefined,
  );
}

/** An older config may know limits that the bucket lacks: what was not taken must not be given back. */
function heldOf(
  holder: NonNullable<LevelAsk['holder']>,
  verdicts: readonly Verdict[],
  configIsOlder: boolean,
): NonNullable<LevelAsk['holder']> {
  if (!configIsOlder || holder.rates === null) return holder;
  return { ...holder, rates: holder.rates.filter(({ name }) => verdicts.some(({ limit }) => limit.name === name)) };
}
