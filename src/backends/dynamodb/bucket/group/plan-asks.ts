import type { LevelAnswer, LevelAsk } from '../../../../backend.js';
import { tokensAfterTake } from '../../../../core/bucket/bucket.js';
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
import { cutToKeep } from '../../../../core/bucket/at-most.js';
import { takenHolder, takesUnheldSlots } from '../../../../core/bucket/holder-rules.js';
import { MAX_HOLDERS_OF_PORTABLE } from '../../../../core/bucket/portable.js';
import { compareConfig } from '../../../../core/config/config.js';
import { sub } from '../../../../core/int.js';
import { holdsSlots, refills } from '../../../../core/limit-kind.js';
import { isRunning } from '../../../../core/pause.js';
import { type EpochMs, MILLI, type Millitokens } from '../../../../core/units.js';
import type { Account, ShardImage } from '../../table/items.js';
import { addHolder } from '../shard-write.js';
import type { AskEntry, EntryResult } from './entries.js';
import type { GroupDraft, Trust } from './group-draft.js';

/** Answers the asks of a group one after the other, each on what those before it leave. */
export class AskPlanner {
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

  ask({ level, leaseId, counts, passesShadows, dryRun }: AskEntry): EntryResult | null {
    const { holders, shardCount } = this.#draft.image;
    const judged = this.#judge(level.asks).map((verdict) => this.#leaveReserve(verdict));
    const verdicts = shardCount === 1 || passesShadows === true ? judged : judged.map(enforced);
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
    const isOpen = (verdict: Verdict): boolean => refuses(verdict) || mayHaveFreeSlots(verdict, this.#draft.at.trust);
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
    if (level.holder?.portable !== undefined && this.#held.size >= MAX_HOLDERS_OF_PORTABLE) {
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
      this.#hold(leaseId, takenHolder(level.holder, answer.verdicts, configIsOlder));
    }
    this.#draft.hasTaken = true;
    // If an undo in the same group cancels the take, no condition checks that the ask fits.
    this.#draft.unsure = true;
    for (const verdict of answer.verdicts) this.#take(verdict);
    if (counts) this.#draft.acquires += 1;
    return { kind: 'granted', answer };
  }

  #take({ limit, creditedMilli, effectiveMilli, requestedMilli, reserveMilli = 0, waitMs }: Verdict): void {
    for (const left of this.#balances) {
      if (left.limit !== limit) continue;
      if (waitMs !== 0) {
        this.#draft.sums.count(limit.name, requestedMilli, requestedMilli + reserveMilli, left.rate, creditedMilli);
        continue;
      }
      this.#draft.sums.take(limit.name, requestedMilli, reserveMilli);
      left.tokensMilli = tokensAfterTake(effectiveMilli, creditedMilli, requestedMilli);
    }
  }

  /** What every ask of the group leaves, a later one must leave too: one that may be cut takes less, where that is possible. */
  #leaveReserve(verdict: Verdict): Verdict {
    if (verdict.cut !== true) return verdict;
    const reservedMilli = this.#draft.sums.reserveOf(verdict.limit.name);
    return reservedMilli > (verdict.reserveMilli ?? 0) ? cutToKeep(verdict, reservedMilli) : verdict;
  }

  /**
   * An old image that has less than a token does not say how much there is. The write tries to take the whole amount, or all
   * that the shard can hold: if it is refused, the returned item says it.
   */
  #hopedFor({ limit, requestedMilli, cut, reserveMilli = 0 }: Verdict, { asks }: LevelAsk): number {
    if (cut !== true) return requestedMilli;
    const askedMilli = amountOf(asks, limit.name) ?? requestedMilli;
    const capacityMilli = this.#balances.find((balance) => balance.limit === limit)?.rate.capacityMilli ?? 0;
    return Math.max(MILLI, Math.min(Number(askedMilli), Math.floor((capacityMilli - reserveMilli) / MILLI) * MILLI));
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

export function hasExpired(image: ShardImage, nowMs: EpochMs): boolean {
  for (const { expiresAtMs } of image.holders.values()) if (expiresAtMs <= nowMs) return true;
  return false;
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
