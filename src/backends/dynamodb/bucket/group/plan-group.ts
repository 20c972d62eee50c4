import type { LevelAnswer, LevelAsk, LevelRef } from '../../../../backend.js';
import { credit, effectiveTokens, tokensAfterTake } from '../../../../core/bucket/bucket.js';
import { expiryOf, hasExpired } from '../../../../core/bucket/give-back.js';
import { isCrowded } from '../../../../core/bucket/traces.js';
import { compareConfig, compareVersions } from '../../../../core/config/config.js';
import { holdsSlots, refills } from '../../../../core/limit-kind.js';
import { type EpochMs, MILLI, type Millitokens } from '../../../../core/units.js';
import { type Account, accountOf, type ShardImage } from '../../table/items.js';
import { addHolder, changesNothing, type HolderChange, removeHolder, type ShardWrite } from '../shard-write.js';
import { GroupDraft, LimitSums, MAX_HOLDERS, type PlanContext, type Trust } from './group-draft.js';
import type { AskEntry, Entry, EntryResult } from './entries.js';
import { dropTraces, planChange, planExtend, planOperation } from './plan-changes.js';
import { cutToKeep } from '../../../../core/bucket/at-most.js';
import {
  amountOf,
  type AskedAmount,
  decide,
  exceedsCapacity,
  type Holder,
  type LimitBalance,
  mayGainByReclaim,
  refuses,
  type Verdict,
} from '../../../../core/bucket/decide.js';
import { takenHolder, takesUnheldSlots } from '../../../../core/bucket/holder-rules.js';
import { sub } from '../../../../core/int.js';
import { isRunning } from '../../../../core/pause.js';

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

/** Beyond this, balances approach the bigint path, which is slow. A new base makes them small again. */
const LARGE_MILLI = 2 ** 50;

/**
 * Plans a group on an image: asks first, skipping those that do not fit; then debits, then refunds. Asks with less
 * reserve come first, those with the same reserve in the order of their arrival, and those that may be cut last. An ask
 * that the image cannot deny for certain is written as if it fitted, and the condition decides. The asks are answered
 * as if each came alone, one after another. An ask that is short while holders have expired waits, with those behind
 * it, until the asks before it are written and the expired holders are reclaimed.
 */
export function planGroup(image: ShardImage, entries: readonly Entry[], at: PlanContext): GroupPlan {
  const newest = newestLevel(entries);
  const configOrder = newest === null ? 'keep' : compareConfig(image, newest);
  if (newest !== null && configOrder === 'settle') return { kind: 'settle', level: newest };
  if (image.limits.some((account) => needsRebase(account, image.baseMs, at.nowMs))) return { kind: 'rebase' };
  const draft = new GroupDraft(image, at);
  const planner = new AskPlanner(draft);
  const results: (EntryResult | null)[] = new Array<null>(entries.length).fill(null);
  for (const index of orderOfAsks(image, entries)) {
    results[index] = planner.ask(entries[index] as AskEntry);
    if (planner.needsReclaim) break;
  }
  if (planner.needsReclaim && results.every((result) => result === null)) {
    return { kind: 'reclaim', write: planReclaim(image, at.nowMs) };
  }
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === 'change') results[index] = planChange(draft, entry);
    else if (entry.kind === 'operation') results[index] = planOperation(draft, entry);
    else if (entry.kind === 'extend') results[index] = planExtend(draft, entry);
  }
  if (draft.endedLeases.size > 0) dropTraces(draft);
  const write = draft.finish(newest, newest !== null && configOrder === 'adopt' ? newest.version : null);
  if (!changesNothing(write)) return { kind: 'write', write, results };
  // Nothing would change, but an answer may depend on balances or on a holder that only the store knows for certain.
  return at.trust === 'exact' || !draft.unsure ? { kind: 'answer', results } : { kind: 'read' };
}

/**
 * The positions of the asks. The last of the whole asks that is served then has the largest reserve, which the write
 * requires. Asks that may be cut follow: they take from what the others leave.
 */
function orderOfAsks(image: ShardImage, entries: readonly Entry[]): readonly number[] {
  const asks: number[] = [];
  let isOrdered = true;
  for (const [index, entry] of entries.entries()) {
    if (entry.kind !== 'ask') continue;
    asks.push(index);
    isOrdered &&= !entry.level.asks.some(({ reserve, atMost }) => reserve !== undefined || atMost === true);
  }
  if (isOrdered) return asks;
  const reserves = entries.map((entry) => (entry.kind === 'ask' ? largestReserve(image, entry.level) : 0));
  const cuts = entries.map((entry) => Number(entry.kind === 'ask' && mayBeCut(entry.level)));
  return asks.toSorted((a, b) => (cuts[a] ?? 0) - (cuts[b] ?? 0) || (reserves[a] ?? 0) - (reserves[b] ?? 0));
}

function mayBeCut({ asks }: LevelAsk): boolean {
  return asks.some(({ atMost }) => atMost === true);
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

/** Reclaims expired holders: their slots, and their rates where they carry them. */
export function planReclaim(image: ShardImage, nowMs: EpochMs): ShardWrite {
  const sums = new LimitSums();
  const holders: HolderChange[] = [];
  let expired = 0;
  for (const [leaseId, holder] of image.holders) {
    if (holder.expiresAtMs > nowMs || holders.length === MAX_HOLDERS) continue;
    const { slots, rates, counts } = expiryOf(holder);
    if (counts) expired += 1;
    holders.push(removeHolder(leaseId, holder));
    sums.refund(image, 'concurrent', slots);
    sums.refund(image, 'rate', rates);
  }
  const limits = sums.changes(image, nowMs);
  return { limits, acquires: 0, expired, holders, adopts: null, ttlSec: undefined };
}

/** Answers the asks of a group one after the other, each on what those before it leave. */
class AskPlanner {
  /** An ask is short, and holders have expired: it is judged after they are reclaimed. */
  needsReclaim = false;
  readonly #draft: GroupDraft;
  /** The holders when the next ask is judged: those of the image and of the asks granted so far in this group. */
  #held: ReadonlyMap<string, Holder>;
  /** The balances for the next ask. */
  readonly #balances: { limit: LimitBalance['limit']; rate: Account['rate']; tokensMilli: Millitokens }[];

  constructor(draft: GroupDraft) {
    this.#draft = draft;
    this.#held = draft.image.holders;
    this.#balances = draft.image.limits.map(({ limit, rate, tokensMilli }) => ({ limit, rate, tokensMilli }));
  }

  ask({ level, leaseId, counts, passesShadows, shadowsAside, dryRun }: AskEntry): EntryResult | null {
    const { holders, shardCount } = this.#draft.image;
    const judged = this.#leaveReserves(this.#judge(level.asks));
    const isAside = shadowsAside === true;
    const seen = isAside ? setShadowsAside(judged) : judged;
    const verdicts = shardCount === 1 || passesShadows === true || isAside ? seen : seen.map(enforced);
    const configIsOlder = compareConfig(this.#draft.image, level) === 'reread';
    let answer: LevelAnswer = { verdicts, configIsOlder };
    const { pause } = this.#draft.image;
    if (isRunning(pause, this.#draft.at.nowMs)) {
      if (this.#draft.at.trust !== 'guess') {
        return { kind: 'denied', answer: { ...answer, pause }, remembered: this.#draft.at.trust !== 'exact' };
      }
      // The bucket may have been resumed since. The condition of the write decides.
      this.#draft.unsure = true;
    }
    if (verdicts.some(({ waitMs }) => waitMs !== 0)) {
      if (hasExpired(this.#draft.image, this.#draft.at.nowMs) && mayGainByReclaim(verdicts)) {
        this.needsReclaim = true;
        return null;
      }
    }
    if (verdicts.some(refuses) && refusesForCertain(verdicts, level, this.#draft.at.trust)) {
      return { kind: 'denied', answer, remembered: this.#draft.at.trust !== 'exact' };
    }
    const isOpen = (verdict: Verdict): boolean =>
      refuses(verdict) || (!isAside && mayHaveFreeSlots(verdict, this.#draft.at.trust));
    if (verdicts.some(isOpen)) {
      this.#draft.unsure = true;
      // The ask is granted only if the write lands, and the write lands only if the ask fits.
      const fitting = verdicts.map((verdict) =>
        isOpen(verdict) ? { ...verdict, requestedMilli: this.#hopedFor(verdict, level), waitMs: 0 } : verdict,
      );
      answer = { verdicts: fitting, configIsOlder };
    }
    // The write requires what every ask of the group leaves. An ask that leaves less waits for the next write.
    if (this.#leavesTooLittle(verdicts)) return null;
    if (configIsOlder && takesUnheldSlots(level, verdicts)) return { kind: 'unheld', answer };
    if (level.holder !== null && isCrowded(this.#held, level.holder)) {
      this.needsReclaim = hasExpired(this.#draft.image, this.#draft.at.nowMs);
      this.#draft.unsure = true;
      return this.needsReclaim ? null : { kind: 'crowded', answer };
    }
    if (dryRun === true) {
      this.#draft.unsure = true;
      return { kind: 'granted', answer };
    }
    if (level.holder !== null && leaseId !== null) {
      if (!this.#draft.mayChangeHolder(leaseId)) return null;
      if (holders.has(leaseId) && this.#draft.at.trust === 'exact') return { kind: 'id-taken' };
      this.#hold(leaseId, takenHolder(level.holder, answer.verdicts));
    }
    this.#draft.hasTaken = true;
    // If an undo in the same group cancels the take, no condition checks that the ask fits.
    this.#draft.unsure = true;
    for (const verdict of answer.verdicts) this.#take(verdict, isAside);
    if (counts) this.#draft.acquires += 1;
    return { kind: 'granted', answer };
  }

  #take(verdict: Verdict, isAside: boolean): void {
    const { limit, creditedMilli, effectiveMilli, requestedMilli, reserveMilli = 0, waitMs } = verdict;
    const { sums } = this.#draft;
    for (const left of this.#balances) {
      if (left.limit !== limit) continue;
      if (waitMs !== 0) {
        if (isAside) sums.countAside(limit.name, requestedMilli);
        else sums.count(limit.name, requestedMilli, requestedMilli + reserveMilli, left.rate, creditedMilli);
        continue;
      }
      sums.take(limit.name, requestedMilli, reserveMilli);
      left.tokensMilli = tokensAfterTake(effectiveMilli, creditedMilli, requestedMilli);
    }
  }

  /** What every ask of the group leaves, a later one must leave too: one that may be cut takes less, where that is possible. */
  #leaveReserves(verdicts: readonly Verdict[]): readonly Verdict[] {
    if (!verdicts.some(({ cut }) => cut === true)) return verdicts;
    return verdicts.map((verdict) => cutToKeep(verdict, this.#draft.sums.reserveOf(verdict.limit.name)));
  }

  /**
   * An old image that has less than a token does not say how much there is. The write tries to take the whole amount, or all
   * that the shard can hold: if it is refused, the returned item says it.
   */
  #hopedFor({ limit, requestedMilli, cut, reserveMilli = 0 }: Verdict, { asks }: LevelAsk): number {
    if (cut !== true) return requestedMilli;
    const askedMilli = Number(amountOf(asks, limit.name) ?? requestedMilli);
    const capacityMilli = this.#balances.find((balance) => balance.limit === limit)?.rate.capacityMilli ?? 0;
    return Math.min(askedMilli, Math.max(MILLI, Math.floor((capacityMilli - reserveMilli) / MILLI) * MILLI));
  }

  #leavesTooLittle(verdicts: readonly Verdict[]): boolean {
    return verdicts.some(({ limit, effectiveMilli, requestedMilli, reserveMilli = 0, waitMs }) => {
      const reservedMilli = this.#draft.sums.reserveOf(limit.name);
      return waitMs === 0 && reservedMilli > reserveMilli && sub(effectiveMilli, requestedMilli) < reservedMilli;
    });
  }

  /** The first ask of a group meets the balances of the image, for which it may have been judged already. */
  #judge(asks: readonly AskedAmount[]): readonly Verdict[] {
    const { nowMs, judgement } = this.#draft.at;
    const isJudged =
      !this.#draft.hasTaken &&
      judgement?.image === this.#draft.image &&
      judgement.asks === asks &&
      judgement.nowMs === nowMs;
    if (isJudged) return judgement.verdicts;
    const { baseMs, key, shardCount } = this.#draft.image;
    return decide({ baseMs, key, shardCount, limits: this.#balances, holders: this.#held }, asks, nowMs);
  }

  #hold(leaseId: string, holder: Holder): void {
    this.#draft.changeHolder(addHolder(leaseId, holder));
    if (this.#held === this.#draft.image.holders) this.#held = new Map(this.#held);
    (this.#held as Map<string, Holder>).set(leaseId, holder);
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

/** The verdicts if nothing is taken of the shadows: each has a wait, as one that is short has. */
export function setShadowsAside(verdicts: readonly Verdict[]): readonly Verdict[] {
  return verdicts.map((verdict) =>
    verdict.shadow === true && verdict.waitMs === 0 ? { ...verdict, waitMs: 1 } : verdict,
  );
}

function enforced(verdict: Verdict): Verdict {
  if (verdict.shadow === undefined) return verdict;
  const { shadow: _, ...rest } = verdict;
  return rest;
}

/** Whether a shadow may have slots of expired holders that an old image does not show. Only the store can show it. */
function mayHaveFreeSlots(verdict: Verdict, trust: Trust): boolean {
  if (trust !== 'guess' || verdict.waitMs === 0 || verdict.shadow !== true) return false;
  return holdsSlots(verdict.limit.kind) && !exceedsCapacity(verdict);
}

/** Judged also by the rules that the caller has read: those of an old image may have been raised since. */
function neverFits({ limits }: LevelAsk, verdict: Verdict): boolean {
  const limit = limits.find(({ name }) => name === verdict.limit.name);
  return limit === undefined || exceedsCapacity({ ...verdict, limit });
}
