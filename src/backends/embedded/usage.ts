import { parsePlainResource } from '../../core/identifiers.js';
import { type Int, sub } from '../../core/int.js';
import { NO_USAGE, type UsageCounts, windowStart } from '../../core/usage.js';
import type { EpochMs } from '../../core/units.js';
import type { Bucket } from './bucket.js';
import type { Space } from './storage.js';

const HOUR_MS = 3_600_000;

interface Owner {
  readonly entityId: string;
  readonly resource: string;
}

/**
 * Usage is the difference of the bucket's counters, folded into records once an hour per bucket instead of once per
 * acquire: no window is shorter than an hour, and every window is a whole number of hours.
 */
export function foldBeforeHourEnds(space: Space, owner: Owner, bucket: Bucket, nowMs: EpochMs): void {
  if (nowMs >= bucket.hourMs && nowMs < bucket.hourMs + HOUR_MS) return;
  fold(space, owner, bucket);
  bucket.hourMs = windowStart('hourly', nowMs);
}

/** Puts everything that is not in a record yet into the windows of the hour in which it happened. */
export function fold(space: Space, { entityId, resource }: Owner, bucket: Bucket): void {
  const counts = unfolded(bucket);
  if (counts === NO_USAGE) return;
  space.addUsage(entityId, parsePlainResource(resource), bucket.hourMs, counts);
  for (const account of [...bucket.limits, ...bucket.retired]) account.foldedMilli = account.consumedMilli;
  bucket.foldedAcquires = bucket.acquires;
  bucket.foldedExpired = bucket.expired;
}

function unfolded(bucket: Bucket): UsageCounts {
  const consumedMilli = new Map<string, Int>();
  for (const { limit, consumedMilli: total, foldedMilli } of [...bucket.limits, ...bucket.retired]) {
    if (limit.kind === 'rate' && total !== foldedMilli) consumedMilli.set(limit.name, sub(total, foldedMilli));
  }
  const acquires = bucket.acquires - bucket.foldedAcquires;
  const expired = bucket.expired - bucket.foldedExpired;
  if (consumedMilli.size === 0 && acquires === 0 && expired === 0) return NO_USAGE;
  return { consumedMilli, acquires, expired };
}
