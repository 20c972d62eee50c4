import type { LevelRef } from '../../../backend.js';
import { credit, gainsTokens, type LimitWrite, type Rate, waitForTokens } from '../../../core/bucket/bucket.js';
import { compareVersions } from '../../../core/config/config.js';
import { type Int, sub } from '../../../core/int.js';
import type { EpochMs } from '../../../core/units.js';
import { accountOf, type ShardImage } from '../table/items.js';
import { applyShardWrite, type ShardWrite } from './shard-write.js';

const LEAST_LIFE_MS = 3_600_000;
/** A wait is at most this long, however large the debt: 285,000 years. */
const NEVER_SEC = Number.MAX_SAFE_INTEGER / 1_000;
/** For writes that belong to no call, and so have no limiter options. */
export const DEFAULT_LIFE_FACTOR = 7;

/** How long an empty limit takes to fill. */
function fillMs(rate: Rate): number {
  const { capacityMilli, refillMilli, refillPeriodMs } = rate;
  return gainsTokens(rate) ? Math.ceil((capacityMilli / refillMilli) * refillPeriodMs) : 0;
}

/** How long an idle bucket is kept at most. No balance depends on it, so floating-point numbers are exact enough. */
function wholeLifeMs(image: ShardImage, factor: number): number {
  return Math.max(LEAST_LIFE_MS, factor * longestFillMs(image));
}

function longestFillMs({ limits }: ShardImage): number {
  let longestMs = 0;
  for (const { rate } of limits) longestMs = Math.max(longestMs, fillMs(rate));
  return longestMs;
}

/** When every limit will be full and every holder expired, if no write comes first. */
function quietAtMs(image: ShardImage, nowMs: EpochMs): EpochMs {
  let quietMs = nowMs;
  for (const { rate, tokensMilli } of image.limits) {
    if (!gainsTokens(rate)) continue;
    const waitMs = waitForTokens(rate, tokensMilli, image.baseMs, rate.capacityMilli, nowMs) ?? 0;
    quietMs = Math.max(quietMs, nowMs + waitMs);
  }
  for (const { expiresAtMs } of image.holders.values()) quietMs = Math.max(quietMs, expiresAtMs);
  return quietMs;
}

/**
 * The `ttl` of a bucket: the instant from which it is full and without holders, plus the rest of its life. Deleting it
 * then changes no answer.
 */
export function expirySec(image: ShardImage, nowMs: EpochMs, factor: number): number {
  const untilMs = Math.max(nowMs + LEAST_LIFE_MS, quietAtMs(image, nowMs) + (factor - 1) * longestFillMs(image));
  return Math.ceil(untilMs / 1000);
}

/** Whether less than half of the life is left, so that the next take should renew the ttl. */
export function needsTtlRefresh(image: ShardImage, nowMs: EpochMs, factor: number): boolean {
  if (image.ttlSec === null) return false;
  return image.ttlSec * 1000 - nowMs < wholeLifeMs(image, factor) / 2;
}

/** Whether DynamoDB could delete the bucket while a limit is below full or a holder has not expired. */
export function expiresTooEarly({ ttlSec, limits, baseMs, holders }: ShardImage): boolean {
  if (ttlSec === null) return false;
  for (const { rate, tokensMilli } of limits) {
    if (gainsTokens(rate) && tokensMilli < leastTokens(rate, baseMs, ttlSec)) return true;
  }
  for (const { expiresAtMs } of holders.values()) if (expiresAtMs > ttlSec * 1000) return true;
  return false;
}

/** The least balance at `baseMs` that is full again at the ttl. */
function leastTokens(rate: Rate, baseMs: EpochMs, ttlSec: number): Int {
  return sub(rate.capacityMilli, credit(rate, baseMs, ttlSec * 1000));
}

/**
 * Adds a condition that refuses the write if the bucket would not be full again at its ttl: the `ttl` was chosen from
 * the image, and other writers may have taken more since.
 */
export function withinTtl(write: LimitWrite, rate: Rate, baseMs: EpochMs, ttlSec: number | null): LimitWrite {
  if (ttlSec === null || !gainsTokens(rate) || write.write === 'set') return write;
  const leastMilli = sub(leastTokens(rate, baseMs, ttlSec), write.deltaMilli);
  const { atLeastMilli } = write;
  return atLeastMilli !== null && atLeastMilli >= leastMilli ? write : { ...write, atLeastMilli: leastMilli };
}

/** A bucket that was not written for this long is written so seldom that a write under `w = :seen` will land. */
const IDLE_MS = 60_000;

/**
 * Whether a bucket without a ttl should get one: its limits are inherited, it has one shard, and it is seldom written.
 */
export function needsTtl({ ttlSec, shardCount }: ShardImage, lasting: boolean | undefined, idleMs: number): boolean {
  return ttlSec === null && shardCount === 1 && lasting === false && idleMs >= IDLE_MS;
}

interface TtlContext {
  readonly nowMs: EpochMs;
  readonly lifeFactor: number;
}

/**
 * Renews the `ttl` if needed. Adds conditions that refuse the write if other writers have taken so much since the image
 * was read that a limit would not be full again at the `ttl`.
 */
export function withTtl(image: ShardImage, write: ShardWrite, newest: LevelRef | null, at: TtlContext): ShardWrite {
  const { baseMs, ttlSec, version } = image;
  // Needs no condition: the write that adds a ttl also moves the base, and this write requires the base of the image.
  // So this write cannot land on a bucket that got a ttl since.
  if (ttlSec === null) return write;
  if (newest?.lasting === true && compareVersions(newest.version, version) >= 0) return { ...write, ttlSec: null };
  const renewedSec = renewedTtl(image, write, ttlSec, at);
  // No later write could meet the condition of a ttl that was cut off here, so the bucket has none until it is paid.
  if (renewedSec !== undefined && renewedSec >= NEVER_SEC) return { ...write, ttlSec: null };
  const limits = write.limits.map((limit) => {
    const rate = accountOf(image, limit.name)?.rate;
    const isSpent = limit.write.write === 'add' && limit.write.deltaMilli < 0;
    if (rate === undefined || !isSpent) return limit;
    return { ...limit, write: withinTtl(limit.write, rate, baseMs, renewedSec ?? ttlSec) };
  });
  return { ...write, limits, ttlSec: renewedSec };
}

/** undefined: the stored ttl is long enough. */
function renewedTtl(
  image: ShardImage,
  write: ShardWrite,
  ttlSec: number,
  { nowMs, lifeFactor }: TtlContext,
): number | undefined {
  const after = applyShardWrite(image, write, '');
  if (!needsTtlRefresh(image, nowMs, lifeFactor) && !expiresTooEarly(after)) return undefined;
  return Math.max(ttlSec, expirySec(after, nowMs, lifeFactor));
}
