import { hasExpired } from '../../../core/bucket/give-back.js';
import type { LevelAsk, LevelRef } from '../../../backend.js';
import { credit, effectiveTokens, waitForTokens } from '../../../core/bucket/bucket.js';
import { compareConfig } from '../../../core/config/config.js';
import {
  amountOf,
  ASK_AGAIN_MS,
  type AskedAmount,
  decide,
  nearIn,
  reserveIn,
  type Verdict,
  refuses,
} from '../../../core/bucket/decide.js';
import { add, type Int, min, sub } from '../../../core/int.js';
import { hasBalance, holdsSlots, refills } from '../../../core/limit-kind.js';
import type { Limit } from '../../../core/limit.js';
import { shareOfCapacity } from '../../../core/limit-options.js';
import { type EpochMs, MILLI } from '../../../core/units.js';
import { planReclaim } from './group/plan-group.js';
import { accountOf, type ShardImage } from '../table/items.js';
import { applyShardWrite } from './shard-write.js';
import { changesSlots, newestRules, planSettleAll } from './settle/settle-all.js';
import { applySettlement, planSettle } from './settle/settle.js';

/** The image as if expired holders were reclaimed. Nothing is written. */
export function asReclaimed(image: ShardImage, nowMs: EpochMs): ShardImage {
  let reclaimed = image;
  // One write reclaims at most `MAX_HOLDERS` holders.
  while (hasExpired(reclaimed, nowMs))
    reclaimed = applyShardWrite(reclaimed, planReclaim(reclaimed, nowMs), image.writeId);
  return reclaimed;
}

/** The images as if settled (all shards at once where slots change) and with expired holders reclaimed. */
export function viewShards(shards: readonly ShardImage[], level: LevelRef, nowMs: EpochMs): readonly ShardImage[] {
  return settleViews(shards, level, nowMs).map((image) => asReclaimed(image, nowMs));
}

function settleViews(shards: readonly ShardImage[], level: LevelRef, nowMs: EpochMs): readonly ShardImage[] {
  const isDue = (image: ShardImage): boolean => compareConfig(image, level) === 'settle';
  if (shards.length > 1 && shards.some((image) => isDue(image) && changesSlots(image, level))) {
    const { settlements } = planSettleAll(shards, newestRules(shards, level) ?? level, nowMs);
    return shards.map((image, at) => applySettlement(image, settlements[at] ?? planSettle(image, level, nowMs)));
  }
  return shards.map((image) => (isDue(image) ? applySettlement(image, planSettle(image, level, nowMs)) : image));
}

/** The asks for limits that the bucket has. */
export function knownAsks(views: readonly ShardImage[], { asks }: Pick<LevelAsk, 'asks'>): readonly AskedAmount[] {
  return asks.filter(({ name }) => views.some((view) => accountOf(view, name) !== undefined));
}

/**
 * The part of an ask's remaining amounts that one shard can give, besides the shard's part of the reserves. Asks for 0
 * go with every part: a shard that is in debt on such a limit gives nothing, just as it refuses an ask that it could
 * serve alone.
 */
export function partOf(view: ShardImage, asks: readonly AskedAmount[], owed: readonly AskedAmount[], atMs: EpochMs) {
  if (owesZeroAsk(view, asks, atMs)) return [];
  const taken = owed
    .map((ask) => {
      // A shadow that is short is counted once, with the first part.
      const isWhole = ask.shadow === true || isUnlimited(view, ask.name);
      return { ...ask, milli: isWhole ? ask.milli : min(ask.milli, availableIn(view, ask, atMs)) };
    })
    .filter(({ milli }) => milli > 0);
  const zeros = asks.filter(({ name, milli }) => milli === 0 && accountOf(view, name) !== undefined);
  return taken.every(({ shadow }) => shadow === true) ? [] : [...taken, ...zeros];
}

function owesZeroAsk(view: ShardImage, asks: readonly AskedAmount[], atMs: EpochMs): boolean {
  return asks.some((ask) => ask.milli === 0 && ask.shadow !== true && aboveReserve(view, ask, atMs) < 0);
}

function isUnlimited(view: ShardImage, name: string): boolean {
  const account = accountOf(view, name);
  return account !== undefined && !hasBalance(account.limit.kind);
}

/** A limit of an ask, and what the ask must leave of it. */
type Wanted = Pick<AskedAmount, 'name' | 'reserve'>;

/** 0 for a shard that is in debt or below its part of the reserve: that takes nothing from the other shards. */
function availableIn(view: ShardImage, wanted: Wanted, atMs: EpochMs): Int {
  const account = accountOf(view, wanted.name);
  const available = aboveReserve(view, wanted, atMs);
  if (account === undefined || available <= 0) return 0;
  // Slots are whole.
  return holdsSlots(account.limit.kind) ? sub(available, Number(available) % MILLI) : available;
}

function aboveReserve(view: ShardImage, { name, reserve }: Wanted, atMs: EpochMs): Int {
  const account = accountOf(view, name);
  const effective = effectiveIn(view, name, atMs);
  return account === undefined || reserve === undefined
    ? effective
    : sub(effective, reserveIn(view, account.limit, reserve));
}

function effectiveIn(view: ShardImage, name: string, atMs: EpochMs): Int {
  const account = accountOf(view, name);
  if (account === undefined) return 0;
  return effectiveTokens(account.rate, account.tokensMilli, credit(account.rate, view.baseMs, atMs));
}

function availableAt(views: readonly ShardImage[], wanted: Wanted, atMs: EpochMs): Int {
  return views.reduce<Int>((sum, view) => add(sum, availableIn(view, wanted, atMs)), 0);
}

/** The verdicts of a denial over all shards: what they have together, and how long the bucket needs for the rest. */
export function refuseAcross(views: readonly ShardImage[], level: LevelAsk, nowMs: EpochMs): readonly Verdict[] {
  const asks = knownAsks(views, level);
  const verdicts = asks.flatMap((ask): readonly Verdict[] => {
    const { name, milli, reserve, shadow, warnAt } = ask;
    const limit = level.limits.find((candidate) => candidate.name === name);
    if (limit === undefined) return [];
    const lifted = views.find((view) => isUnlimited(view, name));
    // By the rules of the bucket, which may be newer than those of the caller.
    if (lifted !== undefined) return decide(lifted, [{ name, milli }], nowMs);
    const effectiveMilli =
      milli === 0
        ? views.reduce<Int>((sum, view) => min(sum, effectiveIn(view, name, nowMs)), 0)
        : availableAt(views, { name }, nowMs);
    const waitMs = milli === 0 ? zeroWait(views, asks, ask, nowMs) : waitAcross(views, ask, nowMs);
    const verdict = { limit, creditedMilli: 0, effectiveMilli, requestedMilli: Number(milli), waitMs };
    return [
      {
        ...verdict,
        ...(reserve === undefined ? {} : { reserve, reserveMilli: shareOfCapacity(limit, reserve) }),
        ...(shadow === undefined ? {} : { shadow }),
        ...(warnAt === undefined ? {} : { nearMilli: nearAcross(views, name, warnAt) }),
      },
    ];
  });
  // Another process took tokens from one shard after another was read. The bucket may have enough again soon.
  return verdicts.some(refuses) ? verdicts : verdicts.map((verdict) => ({ ...verdict, waitMs: 1 }));
}

function nearAcross(views: readonly ShardImage[], name: string, warnAt: number): number {
  return views.reduce((sum, view) => {
    const account = accountOf(view, name);
    return account === undefined ? sum : sum + nearIn(view, account, warnAt);
  }, 0);
}

/** The balance at which the shards that gave these verdicts are near together. Nothing if the limit has no `warnAt`. */
export function sumOfNear(parts: readonly Verdict[]): Pick<Verdict, 'nearMilli'> {
  const near = parts.flatMap(({ nearMilli }) => nearMilli ?? []);
  return near.length === 0 ? {} : { nearMilli: near.reduce((sum, milli) => sum + milli) };
}

/** The wait until enough shards are out of debt to serve the other amounts of the ask. */
function zeroWait(
  views: readonly ShardImage[],
  asks: readonly AskedAmount[],
  zero: Wanted,
  nowMs: EpochMs,
): number | null {
  if (!views.some((view) => aboveReserve(view, zero, nowMs) < 0)) return 0;
  const others = asks.filter(({ milli }) => milli !== 0);
  return leastWait(views, asks, nowMs, (atMs) => {
    const usable = views.filter((view) => !owesZeroAsk(view, asks, atMs));
    return others.every((ask) => availableAt(usable, ask, atMs) >= min(ask.milli, availableAt(views, ask, atMs)));
  });
}

/** The least wait after which all shards together have the amount. Shards that are full stop adding to it. */
export function waitAcross(views: readonly ShardImage[], ask: AskedAmount, nowMs: EpochMs): number | null {
  const { name, milli, reserve = 0 } = ask;
  if (availableAt(views, ask, nowMs) >= milli) return 0;
  const limit = views.map((view) => accountOf(view, name)?.limit).find((one) => one !== undefined);
  if (limit === undefined || add(milli, shareOfCapacity(limit, reserve)) > limit.capacityMilli) return null;
  if (holdsSlots(limit.kind)) return waitForSlots(views, limit, ask, nowMs);
  return leastWait(views, [ask], nowMs, (atMs) => availableAt(views, ask, atMs) >= milli);
}

/**
 * The wait until enough holders of all shards will have expired. If that is not known, a short wait: slots may be
 * released at any time.
 */
function waitForSlots(views: readonly ShardImage[], limit: Limit, ask: AskedAmount, nowMs: EpochMs): number {
  // A lease may hold slots on several shards under one id, so the keys of this map must not be lease ids.
  const held = views.flatMap(({ holders }) => [...holders.values()]);
  const whole = {
    baseMs: nowMs,
    limits: [{ limit, tokensMilli: availableAt(views, ask, nowMs) }],
    holders: new Map(held.map((holder, at) => [String(at), holder])),
  };
  return decide(whole, [{ name: limit.name, milli: ask.milli }], nowMs)[0]?.waitMs ?? ASK_AGAIN_MS;
}

/**
 * Binary search for the least wait. Requires that `isEnough` never turns false again. null: not enough even when every
 * limit is full.
 */
function leastWait(
  views: readonly ShardImage[],
  asks: readonly AskedAmount[],
  nowMs: EpochMs,
  isEnough: (atMs: EpochMs) => boolean,
): number | null {
  let tooEarlyMs = -1;
  let enoughMs = Math.max(1, ...views.map((view) => fullAfterMs(view, asks, nowMs)));
  if (!isEnough(nowMs + enoughMs)) return null;
  while (enoughMs - tooEarlyMs > 1) {
    const middleMs = Math.floor((tooEarlyMs + enoughMs) / 2);
    if (isEnough(nowMs + middleMs)) enoughMs = middleMs;
    else tooEarlyMs = middleMs;
  }
  return enoughMs;
}

function fullAfterMs({ limits, baseMs }: ShardImage, asks: readonly AskedAmount[], nowMs: EpochMs): number {
  const waits = limits.map(({ limit, rate, tokensMilli }) => {
    if (!refills(limit.kind) || amountOf(asks, limit.name) === undefined) return 0;
    return waitForTokens(rate, tokensMilli, baseMs, rate.capacityMilli, nowMs) ?? 0;
  });
  return Math.max(0, ...waits);
}
