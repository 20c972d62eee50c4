import { credit, effectiveTokens, type Rate } from '../../core/bucket.js';
import type { EpochMs } from '../../core/units.js';
import type { ShardImage } from './items.js';

const LEAST_LIFE_MS = 3_600_000;

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
    const effective = effectiveTokens(rate, tokensMilli, credit(rate, image.baseMs, nowMs));
    const missing = rate.capacityMilli - Number(effective);
    if (rate.refillMilli > 0 && missing > 0) {
      quietMs = Math.max(quietMs, nowMs + Math.ceil((missing / rate.refillMilli) * rate.refillPeriodMs));
    }
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
export function livesShort(image: ShardImage, nowMs: EpochMs, factor: number): boolean {
  if (image.ttlSec === null) return false;
  return image.ttlSec * 1000 - nowMs < wholeLifeMs(image, factor) / 2;
}

/** Whether it could be forgotten while somebody is still in debt or holds something. */
export function diesEarly(image: ShardImage, nowMs: EpochMs): boolean {
  if (image.ttlSec === null) return false;
  return image.ttlSec * 1000 < quietAtMs(image, nowMs);
}
