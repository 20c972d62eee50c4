import { hasExpired } from '../../core/bucket/give-back.js';
import type { Page, PageRequest, UsageQuery, UsageRecord } from '../../backend.js';
import { parsePlainResource } from '../../core/identifiers.js';
import { type Int, sub } from '../../core/int.js';
import { addUsage, NO_USAGE, type UsageCounts, usageLifeMs, windowStart } from '../../core/usage/usage.js';
import { isConsumed } from '../../core/limit-kind.js';
import type { EpochMs } from '../../core/units.js';
import { type Bucket, isIdle, reclaimExpired } from './bucket.js';
import { EVERYTHING, mergePage } from './paging.js';
import type { OwnedBucket, Space } from './storage.js';

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
  if (isInHour(bucket, nowMs)) return;
  fold(space, owner, bucket);
  bucket.hourMs = windowStart('hourly', nowMs);
}

/** Whether what happens now counts in the same hour as everything that is not folded yet. */
export function isInHour({ hourMs }: Bucket, nowMs: EpochMs): boolean {
  return nowMs >= hourMs && nowMs < hourMs + HOUR_MS;
}

/** Adds everything that is not in a record yet to the windows of the hour in which it happened. */
function fold(space: Space, { entityId, resource }: Owner, bucket: Bucket): void {
  const counts = unfolded(bucket);
  if (counts === NO_USAGE) return;
  space.addUsage(entityId, parsePlainResource(resource), bucket.hourMs, counts);
  for (const account of [...bucket.limits, ...bucket.retired]) account.foldedMilli = account.consumedMilli;
  bucket.foldedAcquires = bucket.acquires;
  bucket.foldedExpired = bucket.expired;
}

/**
 * Reclaims expired holders, so that they do not keep a bucket for ever. If the bucket is then idle, folds its usage
 * into records.
 */
export function isForgettable(space: Space, owner: Owner, bucket: Bucket, nowMs: EpochMs): boolean {
  if (hasExpired(bucket, nowMs)) {
    foldBeforeHourEnds(space, owner, bucket, nowMs);
    reclaimExpired(bucket, nowMs);
  }
  if (!isIdle(bucket, nowMs)) return false;
  fold(space, owner, bucket);
  return true;
}

/** The records, plus what buckets have not folded yet: reading usage writes nothing. */
export function queryUsage(space: Space, asked: UsageQuery, page: PageRequest, nowMs: EpochMs): Page<UsageRecord> {
  // An expired record is hidden even before it is removed.
  const query = { ...asked, fromMs: Math.max(asked.fromMs, nowMs - usageLifeMs(asked.window)) };
  const pending = bucketsOf(space, query)
    .map((owned) => pendingRecord(owned, query))
    .filter((record) => record !== null)
    .filter(({ startMs }) => startMs >= query.fromMs && startMs < query.toMs)
    .filter((record) => page.after === null || usageKey(record) > page.after);
  return mergePage(space.usage(query, page), pending, page, usageKey, (stored, other) => ({
    ...stored,
    ...addUsage(stored, other),
  }));
}

function bucketsOf(space: Space, { entityId, resource }: UsageQuery): readonly OwnedBucket[] {
  if (entityId === null) return space.bucketsOfResource(resource, EVERYTHING).items;
  return space
    .bucketsOfEntity(entityId, EVERYTHING)
    .items.filter((owned) => parsePlainResource(owned.resource) === resource);
}

function pendingRecord({ entityId, bucket }: OwnedBucket, { resource, window }: UsageQuery): UsageRecord | null {
  const counts = unfolded(bucket);
  if (counts === NO_USAGE) return null;
  return { ...counts, entityId, resource, window, startMs: windowStart(window, bucket.hourMs) };
}

/** The order of usage records as text: time, then entity. */
export function usageKey({ startMs, entityId }: { readonly startMs: EpochMs; readonly entityId: string }): string {
  return `${String(startMs).padStart(16, '0')}#${entityId}`;
}

function unfolded(bucket: Bucket): UsageCounts {
  const consumedMilli = new Map<string, Int>();
  for (const { limit, consumedMilli: total, foldedMilli } of [...bucket.limits, ...bucket.retired]) {
    if (isConsumed(limit.kind) && total !== foldedMilli) consumedMilli.set(limit.name, sub(total, foldedMilli));
  }
  const acquires = bucket.acquires - bucket.foldedAcquires;
  const expired = bucket.expired - bucket.foldedExpired;
  if (consumedMilli.size === 0 && acquires === 0 && expired === 0) return NO_USAGE;
  return { consumedMilli, acquires, expired };
}
