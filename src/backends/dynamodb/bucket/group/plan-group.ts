import type { LevelAnswer, LevelAsk, LevelRef } from '../../../../backend.js';
import { credit, effectiveTokens, tokensAfterTake } from '../../../../core/bucket/bucket.js';
import { compareVersions, compareConfig } from '../../../../core/config/config.js';
import {
  type Amount,
  type AskedAmount,
  decide,
  exceedsCapacity,
  type Holder,
  type LimitBalance,
  mayGainByReclaim,
  refuses,
  type Verdict,
} from '../../../../core/bucket/decide.js';
import { amountsDue, keptHolder, takenHolder, takesUnheldSlots } from '../../../../core/bucket/holder-rules.js';
import { type ClosedState, isClosed, MAX_HOLDERS_OF_PORTABLE, operate } from '../../../../core/bucket/portable.js';
import { sub } from '../../../../core/int.js';
import { isUnlimitedIn } from '../../../../core/limit.js';
import { holdsSlots, isConsumed, refills } from '../../../../core/limit-kind.js';
import { isRunning } from '../../../../core/pause.js';
import type { EpochMs, Millitokens } from '../../../../core/units.js';
import type { AskEntry, ChangeEntry, Entry, EntryResult, ExtendEntry, OperationEntry } from './entries.js';
import { type Account, accountOf, type ShardImage, type StoredHolder } from '../../table/items.js';
import { withTtl } from '../bucket-ttl.js';
import {
  addHolder,
  changesNothing,
  countsOnce,
  type HolderChange,
  LimitSums,
  type ShardWrite,
  removeHolder,
  replaceHolder,
} from '../shard-write.js';

/**
 * How far an image can be trusted. `exact`: the store has just returned it. `young`: recent enough to deny rates.
 * `guess`: it only chooses the form of a write, whose condition decides.
 */
export type Trust = 'exact' | 'young' | 'guess';

export type GroupPlan =
  /** The shard must be settled, reclaimed or rebased before the group can be planned. */
  | { readonly kind: 'settle'; readonly level: LevelRef }
  | { readonly kind: 'reclaim'; readonly write: ShardWrite }
  | { readonly kind: 'rebase' }
  /** The answers depend on the stored item, and there is nothing to write that would return it. */
  | { readonly kind: 'read' }
  /** One result per entry, valid once the write has landed. null: the entry must wait for the next write. */
  | { readonly kind: 'write'; readonly write: ShardWrite; readonly results: readonly (EntryResult | null)[] }
  /** One result per entry, with nothing to write. */
  | { readonly kind: 'answer'; readonly results: readonly (EntryResult | null)[] };

export interface PlanContext {
  readonly nowMs: EpochMs;
  readonly trust: Trust;
  readonly lifeFactor: number;
  /** A write of this group got no answer: refunds that would count twice if it landed are left out. */
  readonly withoutRefunds: boolean;
  /** What an image says about an ask, if that was judged before. */
  readonly judgement?: Judgement | null;
}

export interface Judgement {
  readonly image: ShardImage;
  readonly asks: readonly AskedAmount[];
  readonly nowMs: EpochMs;
  readonly verdicts: readonly Verdict[];
}

/** The holders in one write. DynamoDB accepts 300 operators and 4 KB in a condition. */
const MAX_HOLDERS = 80;

/** Beyond this, balances approach the bigint path, which is slow. A new base makes them small again. */
const LARGE_MILLI = 2 ** 50;

/**
 * Plans a group on an image: asks first, skipping those that do not fit; then debits, then refunds. Asks with less
 * reserve come first, and those with the same reserve in the order of their arrival. An ask that the image cannot deny for certain is written as if it fitted, and the condition decides.
 * The asks are answered as if each came alone, one after another. An ask that is short while holders have expired
 * waits, with those behind it, until the asks before it are written and the expired holders are reclaimed.
 */
export function planGroup(image: ShardImage, entries: readonly Entry[], at: PlanContext): GroupPlan {
  const newest = newestLevel(entries);
  const configOrder = newest === null ? 'keep' : compareConfig(image, newest);
  if (newest !== null && configOrder === 'settle') return { kind: 'settle', level: newest };
  if (image.limits.some((account) => needsRebase(account, image.baseMs, at.nowMs))) return { kind: 'rebase' };
  const planner = new GroupPlanner(image, at);
  const results: (EntryResult | null)[] = new Array<null>(entries.length).fill(null);
  for (const index of orderOfAsks(image, entries)) {
    results[index] = planner.ask(entries[index] as AskEntry);
    if (planner.needsReclaim) break;
  }
  if (planner.needsReclaim && results.every((result) => result === null)) {
    return { kind: 'reclaim', write: planReclaim(image, at.nowMs) };
  }
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === 'change') results[index] = planner.change(entry);
    else if (entry.kind === 'operation') results[index] = planner.operate(entry);
    else if (entry.kind === 'extend') results[index] = planner.extend(entry);
  }
  const write = planner.finish(newest, newest !== null && configOrder === 'adopt' ? newest.version : null);
  if (!changesNothing(write)) return { kind: 'write', write, results };
  // Nothing would change, but an answer may depend on balances or on a holder that only the store knows for certain.
  return at.trust === 'exact' || !planner.unsure ? { kind: 'answer', results } : { kind: 'read' };
}

/** The positions of the asks. The last ask that is served then has the largest reserve, which the write requires. */
function orderOfAsks(image: ShardImage, entries: readonly Entry[]): readonly number[] {
  const asks: number[] = [];
  let isReserved = false;
  for (const [index, entry] of entries.entries()) {
    if (entry.kind !== 'ask') continue;
    asks.push(index);
    isReserved ||= entry.level.asks.some(({ reserve }) => reserve !== undefined);
  }
  if (!isReserved) return asks;
  const reserves = entries.map((entry) => (entry.kind === 'ask' ? largestReserve(image, entry.level) : 0));
  return asks.toSorted((a, b) => (reserves[a] ?? 0) - (reserves[b] ?? 0));
}

/** The largest share of a limit of the bucket that the ask must leave. */
function largestReserve(image: ShardImage, { asks }: LevelAsk): number {
  const known = asks.filter(({ name }) => accountOf(image, name) !== undefined);
  return Math.max(0, ...known.map(({ reserve }) => reserve ?? 0));
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
 * Only if it helps: a debt may be that large by itself. Not at the instant of the base: the base moves strictly
 * forward, and would credit a millisecond that has not passed.
 */
function needsRebase({ rate, tokensMilli }: Account, baseMs: EpochMs, nowMs: EpochMs): boolean {
  if (isSmall(tokensMilli) || nowMs <= baseMs) return false;
  return refills(rate.kind) && isSmall(effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs)));
}

function isSmall(milli: Millitokens): boolean {
  return milli <= LARGE_MILLI && milli >= -LARGE_MILLI;
}

export function hasExpired(image: ShardImage, nowMs: EpochMs): boolean {
  for (const { expiresAtMs } of image.holders.values()) if (expiresAtMs <= nowMs) return true;
  return false;
}

/** Reclaims expired holders: their slots, and their rates where they carry them. */
export function planReclaim(image: ShardImage, nowMs: EpochMs): ShardWrite {
  const sums = new LimitSums();
  const holders: HolderChange[] = [];
  let expired = 0;
  for (const [leaseId, holder] of image.holders) {
    if (holder.expiresAtMs > nowMs || holders.length === MAX_HOLDERS) continue;
    if (!isClosed(holder)) expired += 1;
    holders.push(removeHolder(leaseId, holder));
    sums.refund(image, 'concurrent', holder.slots);
    sums.refund(image, 'rate', holder.rates ?? []);
  }
  const limits = sums.changes(image, nowMs);
  return { limits, acquires: 0, expired, holders, adopts: null, ttlSec: undefined };
}

/** The state of one group while it is planned. */
class GroupPlanner {
  /** An ask is short, and holders have expired: it is judged after they are reclaimed. */
  needsReclaim = false;
  /** An answer depends on something that the image lacks, and the image is not exact. */
  unsure = false;
  readonly #image: ShardImage;
  readonly #at: PlanContext;
  readonly #sums = new LimitSums();
  readonly #holders = new Map<string, HolderChange>();
  /** The holders when the next ask is judged: those of the image and of the asks granted so far in this group. */
  #held: ReadonlyMap<string, Holder>;
  /** The balances for the next ask. */
  readonly #balances: { limit: LimitBalance['limit']; rate: Account['rate']; tokensMilli: Millitokens }[];
  #acquires = 0;
  #hasTaken = false;

  constructor(image: ShardImage, at: PlanContext) {
    this.#image = image;
    this.#at = at;
    this.#held = image.holders;
    this.#balances = image.limits.map(({ limit, rate, tokensMilli }) => ({ limit, rate, tokensMilli }));
  }

  ask({ level, leaseId, counts, passesShadows, dryRun }: AskEntry): EntryResult | null {
    const { holders, shardCount } = this.#image;
    const judged = this.#judge(level.asks);
    const verdicts = shardCount === 1 || passesShadows === true ? judged : judged.map(enforced);
    const configIsOlder = compareConfig(this.#image, level) === 'reread';
    let answer: LevelAnswer = { verdicts, configIsOlder };
    const { pause } = this.#image;
    if (isRunning(pause, this.#at.nowMs)) {
      if (this.#at.trust !== 'guess') {
        return { kind: 'denied', answer: { ...answer, pause }, remembered: this.#at.trust !== 'exact' };
      }
      // The bucket may have been resumed since. The condition of the write decides.
      this.unsure = true;
    }
    if (verdicts.some(({ waitMs }) => waitMs !== 0)) {
      if (hasExpired(this.#image, this.#at.nowMs) && mayGainByReclaim(verdicts)) {
        this.needsReclaim = true;
        return null;
      }
    }
    if (verdicts.some(refuses) && refusesForCertain(verdicts, level, this.#at.trust)) {
      return { kind: 'denied', answer, remembered: this.#at.trust !== 'exact' };
    }
    const isOpen = (verdict: Verdict): boolean => refuses(verdict) || mayHaveFreeSlots(verdict, this.#at.trust);
    if (verdicts.some(isOpen)) {
      this.unsure = true;
      // The ask is granted only if the write lands, and the write lands only if the ask fits.
      const fitting = verdicts.map((verdict) => (isOpen(verdict) ? { ...verdict, waitMs: 0 } : verdict));
      answer = { verdicts: fitting, configIsOlder };
    }
    // The write requires what every ask of the group leaves. An ask that leaves less waits for the next write.
    if (this.#leavesTooLittle(verdicts)) return null;
    if (configIsOlder && takesUnheldSlots(level, verdicts)) return { kind: 'unheld', answer };
    if (level.holder?.portable !== undefined && this.#held.size >= MAX_HOLDERS_OF_PORTABLE) {
      this.needsReclaim = hasExpired(this.#image, this.#at.nowMs);
      this.unsure = true;
      return this.needsReclaim ? null : { kind: 'crowded', answer };
    }
    if (dryRun === true) {
      this.unsure = true;
      return { kind: 'granted', answer };
    }
    if (level.holder !== null && leaseId !== null) {
      if (this.#holders.size >= MAX_HOLDERS || this.#holders.has(leaseId)) return null;
      if (holders.has(leaseId) && this.#at.trust === 'exact') return { kind: 'id-taken' };
      this.#hold(leaseId, takenHolder(level.holder, answer.verdicts, configIsOlder));
    }
    this.#hasTaken = true;
    // If an undo in the same group cancels the take, no condition checks that the ask fits.
    this.unsure = true;
    for (const verdict of answer.verdicts) this.#take(verdict);
    if (counts) this.#acquires += 1;
    return { kind: 'granted', answer };
  }

  #take({ limit, creditedMilli, effectiveMilli, requestedMilli, reserveMilli = 0, waitMs }: Verdict): void {
    for (const left of this.#balances) {
      if (left.limit !== limit) continue;
      if (waitMs !== 0) {
        this.#sums.count(limit.name, requestedMilli, requestedMilli + reserveMilli, left.rate, creditedMilli);
        continue;
      }
      this.#sums.take(limit.name, requestedMilli, reserveMilli);
      left.tokensMilli = tokensAfterTake(effectiveMilli, creditedMilli, requestedMilli);
    }
  }

  #leavesTooLittle(verdicts: readonly Verdict[]): boolean {
    return verdicts.some(({ limit, effectiveMilli, requestedMilli, reserveMilli = 0, waitMs }) => {
      const reservedMilli = this.#sums.reserveOf(limit.name);
      return waitMs === 0 && reservedMilli > reserveMilli && sub(effectiveMilli, requestedMilli) < reservedMilli;
    });
  }

  /** The first ask of a group meets the balances of the image, for which it may have been judged already. */
  #judge(asks: readonly AskedAmount[]): readonly Verdict[] {
    const { nowMs, judgement } = this.#at;
    const isJudged =
      !this.#hasTaken && judgement?.image === this.#image && judgement.asks === asks && judgement.nowMs === nowMs;
    if (isJudged) return judgement.verdicts;
    const { baseMs, key, shardCount } = this.#image;
    return decide({ baseMs, key, shardCount, limits: this.#balances, holders: this.#held }, asks, nowMs);
  }

  #hold(leaseId: string, holder: Holder): void {
    this.#holders.set(leaseId, addHolder(leaseId, holder));
    if (this.#held === this.#image.holders) this.#held = new Map(this.#held);
    (this.#held as Map<string, Holder>).set(leaseId, holder);
  }

  change({ level, leaseId, uncounts, untaken = [], onlyIfHeld }: ChangeEntry): EntryResult | null {
    const stored = level.holder === 'none' ? undefined : this.#image.holders.get(leaseId);
    const holderLost = level.holder !== 'none' && stored === undefined;
    // It holds nothing any more, and stays to answer repeats.
    if (onlyIfHeld === true && stored !== undefined && isClosed(stored)) return { kind: 'done', holderLost: true };
    if (level.holder !== 'none') {
      if (this.#holders.size >= MAX_HOLDERS || this.#holders.has(leaseId)) return null;
      const change = this.#holderChange(level, leaseId);
      if (change !== null) this.#holders.set(leaseId, change);
    }
    if (onlyIfHeld === true && holderLost) return { kind: 'done', holderLost };
    const amounts = amountsDue(level, stored);
    // If its holder changes in the same write, a refund counts once. Without that, a second write could count it twice.
    const mayRefund = !this.#at.withoutRefunds || countsOnce(this.#holders.get(leaseId));
    const isLeftOut = this.#move(level, amounts, mayRefund);
    if (level.holder === 'release' && stored !== undefined) {
      this.#sums.refund(this.#image, 'concurrent', stored.slots);
    }
    if (uncounts && mayRefund) {
      this.#acquires -= 1;
      for (const { name, milli } of untaken) {
        if (accountOf(this.#image, name) !== undefined) this.#sums.uncount(name, milli);
      }
    }
    return isLeftOut ? { kind: 'refund-left-out' } : { kind: 'done', holderLost };
  }

  /** True: a refund was left out. */
  #move({ limits }: Pick<LevelRef, 'limits'>, amounts: readonly Amount[], mayRefund: boolean): boolean {
    let isLeftOut = false;
    for (const { name, milli } of amounts) {
      const kind = accountOf(this.#image, name)?.limit.kind;
      if (kind === undefined || !isConsumed(kind) || milli === 0) continue;
      if (milli > 0) this.#sums.debit(name, milli);
      else if (!mayRefund) isLeftOut = true;
      // It was in no balance: a limit that has replaced the unlimited one since must not get it back.
      else if (isUnlimitedIn(limits, name)) this.#sums.uncount(name, sub(0, milli));
      else this.#sums.refund(this.#image, 'rate', [{ name, milli: sub(0, milli) }]);
    }
    return isLeftOut;
  }

  /** What it gives back counts once, because the same write changes the holder. */
  operate({ level, leaseId }: OperationEntry): EntryResult | null {
    if (this.#holders.size >= MAX_HOLDERS || this.#holders.has(leaseId)) return null;
    const stored = this.#image.holders.get(leaseId);
    const effect = operate(stored, level, this.#image.limits);
    if (stored === undefined || effect.kind === 'lost') {
      this.#requireAbsent(leaseId);
      if (effect.kind === 'lost') this.#move(level, effect.due, false);
      return { kind: 'operated', taken: null };
    }
    if (effect.kind === 'closed') return this.#ended(leaseId, stored, effect.state);
    if (effect.holder === stored) this.#requireSame(leaseId, stored);
    else this.#holders.set(leaseId, replaceHolder(leaseId, stored, effect.holder));
    this.#move(level, effect.due, true);
    this.#sums.refund(this.#image, 'concurrent', effect.slotsBack);
    return { kind: 'operated', taken: effect.holder.portable?.taken ?? [] };
  }

  #ended(leaseId: string, stored: StoredHolder, state: ClosedState): EntryResult {
    this.#requireSame(leaseId, stored);
    return { kind: 'ended', state };
  }

  /** The answer depends on the holder, of which nothing changes. */
  #requireSame(leaseId: string, stored: StoredHolder): void {
    if (this.#at.trust !== 'exact') this.#holders.set(leaseId, replaceHolder(leaseId, stored, stored));
  }

  #requireAbsent(leaseId: string): void {
    this.unsure = true;
    if (this.#at.trust !== 'exact') this.#holders.set(leaseId, { kind: 'absent', leaseId });
  }

  #holderChange(level: ChangeEntry['level'], leaseId: string): HolderChange | null {
    const stored = this.#image.holders.get(leaseId);
    if (stored === undefined) {
      this.unsure = true;
      return this.#at.trust === 'exact' ? null : { kind: 'absent', leaseId };
    }
    if (level.holder === 'release') return removeHolder(leaseId, stored);
    // The answer says whether the holder exists, so the condition must check it even if nothing of it changes.
    return replaceHolder(leaseId, stored, keptHolder(stored, level, this.#image.limits));
  }

  extend({ leaseId, expiresAtMs }: ExtendEntry): EntryResult | null {
    if (this.#holders.size >= MAX_HOLDERS || this.#holders.has(leaseId)) return null;
    const stored = this.#image.holders.get(leaseId);
    const state = stored?.portable?.state ?? 'open';
    if (stored !== undefined && state !== 'open') return this.#ended(leaseId, stored, state);
    if (stored !== undefined) {
      this.#holders.set(leaseId, replaceHolder(leaseId, stored, { ...stored, expiresAtMs }));
      return { kind: 'extended', found: true };
    }
    this.#requireAbsent(leaseId);
    return { kind: 'extended', found: false };
  }

  finish(newest: LevelRef | null, adopts: ShardWrite['adopts']): ShardWrite {
    const write: ShardWrite = {
      limits: this.#sums.changes(this.#image, this.#at.nowMs),
      acquires: this.#acquires,
      expired: 0,
      holders: [...this.#holders.values()],
      adopts,
      ttlSec: undefined,
      takesAtMs: this.#hasTaken ? this.#at.nowMs : undefined,
    };
    return changesNothing(write) ? write : withTtl(this.#image, write, newest, this.#at);
  }
}

/** Slots that are held now may be released in the next moment, so only the store can deny them. */
function refusesForCertain(verdicts: readonly Verdict[], level: LevelAsk, trust: Trust): boolean {
  if (trust === 'exact') return true;
  const short = verdicts.filter(refuses);
  if (short.some((verdict) => verdict.waitMs === null && neverFits(level, verdict))) {
    return true;
  }
  return trust === 'young' && short.some(({ limit }) => refills(limit.kind));
}

function enforced(verdict: Verdict): Verdict {
  if (verdict.shadow === undefined) return verdict;
  const { shadow: _, ...rest } = verdict;
  return rest;
}

/** Whether a shadow may have slots of expired holders that an old image does not show. Only the store can tell. */
function mayHaveFreeSlots(verdict: Verdict, trust: Trust): boolean {
  if (trust !== 'guess' || verdict.waitMs === 0 || verdict.shadow !== true) return false;
  return holdsSlots(verdict.limit.kind) && !exceedsCapacity(verdict);
}

/** Judged also by the rules that the caller has read: those of an old image may have been raised since. */
function neverFits({ limits }: LevelAsk, verdict: Verdict): boolean {
  const limit = limits.find(({ name }) => name === verdict.limit.name);
  return limit === undefined || exceedsCapacity({ ...verdict, limit });
}
