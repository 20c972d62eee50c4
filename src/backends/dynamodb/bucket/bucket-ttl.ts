import { credit, type LimitWrite, type Rate, waitForTokens } from '../../../core/bucket/bucket.js';
import { type Int, sub } from '../../../core/int.js';
import type { EpochMs } from '../../../core/units.js';
import type { ShardImage } from '../table/items.js';

const LEAST_LIFE_MS = 3_600_000;
/** For writes that belong to no call, and so to no limiter's options. */
export const DEFAULT_LIFE_FACTOR = 7;

/** How long an empty limit takes to be full again. */
function fillMs({ capacityMilli, refillMilli, refillPeriodMs }: Rate): number {
  return refillMilli === 0 ? 0 : Math.ceil((capacityMilli / refillMilli) * refillPeriodMs);
}

/** How long an idle bucket of these limits is kept at the most: not a moment of any account, so doubles will do. */
function wholeLifeMs(image: ShardImage, factor: number): number {
  return Math.max(LEAST_LIFE_MS, factor * Math.max(0, ...image.limits.map(({ rate }) => fillMs(rate))));
}

/** When every limit is full and every holder has expired, if nobody touches the bucket any more. */
function quietAtMs(image: ShardImage, nowMs: EpochMs): EpochMs {
  let quietMs = nowMs;
  for (const { rate, tokensMilli } of image.limits) {
    if (rate.refillMilli === 0) continue;
    const waitMs = waitForTokens(rate, tokensMilli, image.baseMs, rate.capacityMilli, nowMs) ?? 0;
    quietMs = Math.max(quietMs, nowMs + waitMs);
  }
  for (const { expiresAtMs } of image.holders.values()) quietMs = Math.max(quietMs, expiresAtMs);
  return quietMs;
}

/** The `ttl` of a bucket: quiet first, and then kept for the rest of its life. Forgetting it then changes no answer. */
export function expirySec(image: ShardImage, nowMs: EpochMs, factor: number): number {
  const longestMs = Math.max(0, ...image.limits.map(({ rate }) => fillMs(rate)));
  const untilMs = Math.max(nowMs + LEAST_LIFE_MS, quietAtMs(image, nowMs) + (factor - 1) * longestMs);
  return Math.ceil(untilMs / 1000);
}

/** Whether so little of its life is left that the next take should refresh it. */
export function needsTtlRefresh(image: ShardImage, nowMs: EpochMs, factor: number): boolean {
  if (image.ttlSec === null) return false;
  return image.ttlSec * 1000 - nowMs < wholeLifeMs(image, factor) / 2;
}

/** Whether it could be forgotten while a limit is in debt or a holder has not expired. */
export function expiresTooEarly({ ttlSec, limits, baseMs, holders }: ShardImage): boolean {
  if (ttlSec === null) return false;
  for (const { rate, tokensMilli } of limits) {
    if (rate.refillMilli > 0 && tokensMilli < leastTokens(rate, baseMs, ttlSec)) return true;
  }
  for (const { expiresAtMs } of holders.values()) if (expiresAtMs > ttlSec * 1000) return true;
  return false;
}

/** The least balance at `baseMs` that is full again when the bucket may be forgotten. */
function leastTokens(rate: Rate, baseMs: EpochMs, ttlSec: number): Int {
  return sub(rate.capacityMilli, credit(rate, baseMs, ttlSec * 1000));
}

/**
 * A write to a limit that is refused where the debt would outlast the bucket: others may have taken more than was seen,
 * and the `ttl` was chosen from what was seen.
 */
export function untilForgotten(write: LimitWrite, rate: Rate, baseMs: EpochMs, ttlSec: number | null): LimitWrite {
  if (ttlSec === null || rate.refillMilli === 0 || write.write === 'set') return write;
  const leastMilli = sub(leastTokens(rate, baseMs, ttlSec), write.deltaMilli);
  const { atLeastMilli } = write;
  return atLeastMilli !== null && atLeastMilli >= leastMilli ? write : { ...write, atLeastMilli: leastMilli };
}
