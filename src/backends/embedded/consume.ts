import type {
  AdjustRequest,
  ConsumeOutcome,
  ConsumeRequest,
  ExtendRequest,
  LevelAnswer,
  LevelAsk,
  LevelChange,
  LevelRef,
  LevelResult,
} from '../../backend.js';
import { compareVersions } from '../../core/config.js';
import { amountOf, conclude, decide } from '../../core/decide.js';
import type { EpochMs } from '../../core/units.js';
import { type Bucket, createBucket, hasExpired, move, reclaimExpired, release, settle, take } from './bucket.js';
import type { Space } from './storage.js';
import { foldBeforeHourEnds } from './usage.js';

/** All levels are looked at before any is taken from, so a refusal at one leaves the others as they were. */
export function consume(space: Space, request: ConsumeRequest, nowMs: EpochMs): ConsumeOutcome {
  const { levels, leaseId } = request;
  const buckets = levels.map((level) => openLevel(space, level, nowMs));
  const answers = levels.map((level, at) => askLevel(space, level, buckets[at] as Bucket, nowMs));
  const conclusion = conclude(answers);
  if (!conclusion.granted) {
    const { reason, retryAfterMs } = conclusion;
    return { kind: 'denied', reason, retryAfterMs, levels: answers };
  }
  for (let at = 0; at < levels.length; at++) {
    const level = levels[at] as LevelAsk;
    const bucket = buckets[at] as Bucket;
    foldBeforeHourEnds(space, level, bucket, nowMs);
    take(bucket, (answers[at] as LevelAnswer).verdicts);
    if (level.holder !== null && leaseId !== null) bucket.holders.set(leaseId, level.holder);
    space.writeBucket(level.entityId, level.resource, bucket, nowMs);
  }
  return { kind: 'granted', levels: answers };
}

/** Whoever is refused while holders have expired takes them back at once. */
function askLevel(space: Space, level: LevelAsk, bucket: Bucket, nowMs: EpochMs): LevelAnswer {
  let verdicts = decide(bucket, level.asks, nowMs);
  if (bucket.holders.size > 0 && verdicts.some(({ waitMs }) => waitMs !== 0) && hasExpired(bucket, nowMs)) {
    foldBeforeHourEnds(space, level, bucket, nowMs);
    reclaimExpired(bucket, nowMs);
    space.writeBucket(level.entityId, level.resource, bucket, nowMs);
    verdicts = decide(bucket, level.asks, nowMs);
  }
  return { verdicts, configIsOlder: isOlder(level, bucket) };
}

function isOlder(level: LevelRef, bucket: Bucket): boolean {
  return compareVersions(level.version, bucket.version) < 0;
}

/** As if the config were settled and expired holders taken back, but on a copy: looking changes nothing. */
export function peek(space: Space, levels: readonly LevelAsk[], nowMs: EpochMs): readonly LevelAnswer[] {
  return levels.map((level) => {
    const stored = space.readBucket(level.entityId, level.resource);
    const bucket = stored === undefined ? createBucket(level.limits, level.version, nowMs) : copyOf(stored);
    settle(bucket, level, nowMs);
    reclaimExpired(bucket, nowMs);
    const asks = bucket.limits.map(({ limit }) => ({ name: limit.name, milli: amountOf(level.asks, limit.name) ?? 0 }));
    return { verdicts: decide(bucket, asks, nowMs), configIsOlder: isOlder(level, bucket) };
  });
}

function copyOf(bucket: Bucket): Bucket {
  return { ...bucket, limits: bucket.limits.map((account) => ({ ...account })), holders: new Map(bucket.holders) };
}

/** The bucket as it stands by the newest rules known: those handed in, or its own. */
function openLevel(space: Space, level: LevelRef, nowMs: EpochMs): Bucket {
  const bucket = space.readBucket(level.entityId, level.resource);
  if (bucket === undefined) return createBucket(level.limits, level.version, nowMs);
  // Written even if the ask is refused: from now on the bucket refills at the new rate.
  if (settle(bucket, level, nowMs)) space.writeBucket(level.entityId, level.resource, bucket, nowMs);
  return bucket;
}

export function adjust(space: Space, request: AdjustRequest, nowMs: EpochMs): readonly LevelResult[] {
  return request.levels.map((level) => adjustLevel(space, request.leaseId, level, nowMs));
}

function adjustLevel(space: Space, leaseId: string, level: LevelChange, nowMs: EpochMs): LevelResult {
  const bucket = openLevel(space, level, nowMs);
  const holder = bucket.holders.get(leaseId);
  const holderLost = level.holder !== 'none' && holder === undefined;
  foldBeforeHourEnds(space, level, bucket, nowMs);
  // An expiry that gave the rates back left nothing to correct: the whole amount is due again.
  move(bucket, holderLost && level.totals !== null ? level.totals : level.deltas, nowMs);
  if (level.holder === 'release') release(bucket, leaseId, nowMs);
  else if (holder?.rates) bucket.holders.set(leaseId, { ...holder, rates: level.totals });
  space.writeBucket(level.entityId, level.resource, bucket, nowMs);
  return { kind: 'done', holderLost };
}

/** All holders or none, so that a lease is never half extended. */
export function extend(space: Space, request: ExtendRequest, nowMs: EpochMs): boolean {
  const { leaseId, expiresAtMs } = request;
  const buckets = request.levels.map(({ entityId, resource }) => space.readBucket(entityId, resource));
  if (!buckets.every((bucket) => bucket?.holders.has(leaseId) === true)) return false;
  for (const [at, { entityId, resource }] of request.levels.entries()) {
    const bucket = buckets[at];
    const holder = bucket?.holders.get(leaseId);
    if (bucket === undefined || holder === undefined) continue;
    bucket.holders.set(leaseId, { ...holder, expiresAtMs });
    space.writeBucket(entityId, resource, bucket, nowMs);
  }
  return true;
}
