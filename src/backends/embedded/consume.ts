import { hasExpired } from '../../core/bucket/give-back.js';
import type {
  AdjustRequest,
  ChargeOutcome,
  ChargeLevels,
  ConsumeOutcome,
  ConsumeRequest,
  ExtendRequest,
  LevelAnswer,
  LevelAsk,
  LevelChange,
  LevelOperation,
  LevelRef,
  LevelResult,
  OperateRequest,
  OperationResult,
} from '../../backend.js';
import { compareConfig, CONFIG_REREAD_MS } from '../../core/config/config.js';
import { askOf, CONTENDED_RETRY_MS, decide, mayGainByReclaim, type Verdict } from '../../core/bucket/decide.js';
import { concludeAt } from '../../core/bucket/conclude.js';
import { leastOf, withAmount } from '../../core/bucket/at-most.js';
import { amountsDue, keptHolder, takenHolder, takesUnheldSlots } from '../../core/bucket/holder-rules.js';
import { type ClosedState, isClosed, operate as operateOn, partOf } from '../../core/bucket/portable.js';
import { receiptEnd } from '../../core/bucket/receipt.js';
import { isCrowded, tracesToDrop } from '../../core/bucket/traces.js';
import { isRunning } from '../../core/pause.js';
import type { EpochMs } from '../../core/units.js';
import {
  type Bucket,
  copyBucket,
  createBucket,
  hold,
  move,
  negated,
  reclaimExpired,
  release,
  settle,
  take,
} from './bucket.js';
import type { Space } from './storage.js';
import { foldBeforeHourEnds } from './usage.js';

/** Decides all levels before taking from any, so a denial at one level leaves the others unchanged. */
export function consume(space: Space, request: ConsumeRequest, nowMs: EpochMs): ConsumeOutcome {
  const { leaseId } = request;
  let { levels } = request;
  const buckets = new Array<Bucket>(levels.length);
  let answers = new Array<LevelAnswer>(levels.length);
  for (let at = 0; at < levels.length; at++) {
    const level = levels[at] as LevelAsk;
    const bucket = openLevel(space, level, nowMs);
    buckets[at] = bucket;
    answers[at] = askLevel(space, level, bucket, nowMs);
  }
  const conclusion = concludeAt(answers, nowMs);
  if (!conclusion.granted) {
    const { reason, retryAfterMs } = conclusion;
    return { kind: 'denied', reason, retryAfterMs, levels: answers };
  }
  const least = request.atMost === undefined ? null : leastOf(answers);
  if (request.atMost !== undefined && least !== null && levels.length > 1) {
    const { atMost } = request;
    levels = levels.map((level) => withAmount(level, atMost, least));
    // Every level has this much: the same balances are judged again, for the amount that all of them take.
    answers = levels.map((level, at) => {
      const bucket = buckets[at] as Bucket;
      return answerOf(level, bucket, decide(bucket, level.asks, nowMs), nowMs);
    });
  }
  if (anyTakesUnheldSlots(levels, answers)) {
    return { kind: 'denied', reason: 'contended', retryAfterMs: CONFIG_REREAD_MS, levels: answers };
  }
  // Two leases of one millisecond may have the same random id. One holder entry for both would give back only once.
  if (leaseId !== null && levels.some(({ holder }, at) => holder !== null && buckets[at]?.holders.has(leaseId))) {
    return { kind: 'id-taken' };
  }
  if (levels.some((level, at) => hasNoRoom(space, level, buckets[at] as Bucket, nowMs))) {
    return { kind: 'denied', reason: 'contended', retryAfterMs: CONTENDED_RETRY_MS, levels: answers, crowded: true };
  }
  for (let at = 0; at < levels.length; at++) {
    const level = levels[at] as LevelAsk;
    const bucket = buckets[at] as Bucket;
    foldBeforeHourEnds(space, level, bucket, nowMs);
    const answer = answers[at] as LevelAnswer;
    take(bucket, answer.verdicts);
    if (level.holder !== null && leaseId !== null) hold(bucket, leaseId, takenHolder(level.holder, answer.verdicts));
    space.writeBucket(level.entityId, level.resource, bucket, nowMs);
  }
  return { kind: 'granted', levels: answers };
}

function anyTakesUnheldSlots(levels: readonly LevelAsk[], answers: readonly LevelAnswer[]): boolean {
  for (let at = 0; at < levels.length; at++) {
    const { verdicts, configIsOlder } = answers[at] as LevelAnswer;
    if (configIsOlder && takesUnheldSlots(levels[at] as LevelAsk, verdicts)) return true;
  }
  return false;
}

/** Whether the bucket has no room for the holder. Expired holders are reclaimed first. */
function hasNoRoom(space: Space, level: LevelAsk, bucket: Bucket, nowMs: EpochMs): boolean {
  if (level.holder === null || !isCrowded(bucket.holders, level.holder)) return false;
  if (!hasExpired(bucket, nowMs)) return true;
  foldBeforeHourEnds(space, level, bucket, nowMs);
  reclaimExpired(bucket, nowMs);
  space.writeBucket(level.entityId, level.resource, bucket, nowMs);
  return isCrowded(bucket.holders, level.holder);
}

/** A denied ask reclaims expired holders at once, unless that cannot help. */
function askLevel(space: Space, level: LevelAsk, bucket: Bucket, nowMs: EpochMs): LevelAnswer {
  let verdicts = decide(bucket, level.asks, nowMs);
  if (bucket.holders.size > 0 && hasExpired(bucket, nowMs) && mayGainByReclaim(verdicts)) {
    foldBeforeHourEnds(space, level, bucket, nowMs);
    reclaimExpired(bucket, nowMs);
    space.writeBucket(level.entityId, level.resource, bucket, nowMs);
    verdicts = decide(bucket, level.asks, nowMs);
  }
  return answerOf(level, bucket, verdicts, nowMs);
}

function answerOf(level: LevelRef, bucket: Bucket, verdicts: readonly Verdict[], nowMs: EpochMs): LevelAnswer {
  const configIsOlder = isOlder(level, bucket);
  const { pause } = bucket;
  return isRunning(pause, nowMs) ? { verdicts, configIsOlder, pause } : { verdicts, configIsOlder };
}

function isOlder(level: LevelRef, bucket: Bucket): boolean {
  return compareConfig(bucket, level) === 'reread';
}

/** Decides as if the config were settled and expired holders reclaimed, on a copy: peek changes nothing. */
export function peek(space: Space, levels: readonly LevelAsk[], nowMs: EpochMs): readonly LevelAnswer[] {
  return levels.map((level) => {
    const stored = space.readBucket(level.entityId, level.resource);
    const bucket = stored === undefined ? createBucket(level.limits, level.version, nowMs) : copyBucket(stored);
    settle(bucket, level, nowMs);
    reclaimExpired(bucket, nowMs);
    const asks = bucket.limits.map(({ limit: { name } }) => askOf(level.asks, name) ?? { name, milli: 0 });
    return answerOf(level, bucket, decide(bucket, asks, nowMs), nowMs);
  });
}

/** The bucket by the newest known rules: those of the caller, or its own. */
function openLevel(space: Space, level: LevelRef, nowMs: EpochMs): Bucket {
  const bucket = space.readBucket(level.entityId, level.resource);
  if (bucket === undefined) return createBucket(level.limits, level.version, nowMs);
  // Written even if the ask is denied: the bucket now refills at the new rate.
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
  move(bucket, 'rate', amountsDue(level, holder), nowMs, level.limits);
  if (level.holder === 'release') release(bucket, leaseId, nowMs);
  else if (holder !== undefined) hold(bucket, leaseId, keptHolder(holder, level, bucket.limits));
  space.writeBucket(level.entityId, level.resource, bucket, nowMs);
  return { kind: 'done', holderLost };
}

/** All levels and the receipt are one transaction of the storage. */
export function charge(space: Space, { levels, receipt }: ChargeLevels, nowMs: EpochMs): ChargeOutcome {
  if (receipt !== null) {
    const content = space.readReceipt(receipt, nowMs);
    if (content !== undefined) return { kind: content === receipt.content ? 'repeated' : 'id-used' };
    space.writeReceipt(receipt, receiptEnd(nowMs), nowMs);
  }
  for (const level of levels) {
    const bucket = openLevel(space, level, nowMs);
    foldBeforeHourEnds(space, level, bucket, nowMs);
    move(bucket, 'rate', level.deltas, nowMs, level.limits);
    space.writeBucket(level.entityId, level.resource, bucket, nowMs);
  }
  return { kind: 'charged' };
}

export function operate(space: Space, request: OperateRequest, nowMs: EpochMs): readonly OperationResult[] {
  return request.levels.map((level) => operateLevel(space, request.leaseId, level, nowMs));
}

function operateLevel(space: Space, leaseId: string, level: LevelOperation, nowMs: EpochMs): OperationResult {
  const bucket = openLevel(space, level, nowMs);
  const stored = bucket.holders.get(leaseId);
  const effect = operateOn(stored, level, bucket.limits, nowMs);
  if (effect.kind === 'closed') return effect;
  const isChanged = effect.kind === 'lost' ? effect.due.length > 0 : effect.holder !== stored;
  if (isChanged) {
    foldBeforeHourEnds(space, level, bucket, nowMs);
    move(bucket, 'rate', effect.due, nowMs, level.limits);
    if (effect.kind === 'done') {
      move(bucket, 'concurrent', negated(effect.slotsBack), nowMs);
      hold(bucket, leaseId, effect.holder);
      if (isClosed(effect.holder)) for (const id of tracesToDrop(bucket.holders)) release(bucket, id, nowMs);
    }
    space.writeBucket(level.entityId, level.resource, bucket, nowMs);
  }
  return effect.kind === 'lost' ? { kind: 'lost' } : { kind: 'done', part: partOf(effect.holder) };
}

/** Extends all holders or none, so that a lease is never partly extended. */
export function extend(space: Space, request: ExtendRequest, nowMs: EpochMs): boolean | ClosedState {
  const { leaseId, expiresAtMs } = request;
  const buckets = request.levels.map(({ entityId, resource }) => space.readBucket(entityId, resource));
  if (!buckets.every((bucket) => bucket?.holders.has(leaseId) === true)) return false;
  const [ended] = buckets.flatMap((bucket) => bucket?.holders.get(leaseId) ?? []).filter(isClosed);
  if (ended?.portable !== undefined) return ended.portable.state as ClosedState;
  for (const [at, { entityId, resource }] of request.levels.entries()) {
    const bucket = buckets[at];
    const holder = bucket?.holders.get(leaseId);
    if (bucket === undefined || holder === undefined) continue;
    hold(bucket, leaseId, { ...holder, expiresAtMs });
    space.writeBucket(entityId, resource, bucket, nowMs);
  }
  return true;
}
