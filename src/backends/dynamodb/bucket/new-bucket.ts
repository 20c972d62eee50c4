import type { LevelRef } from '../../../backend.js';
import { fullTokens } from '../../../core/limit.js';
import type { EpochMs } from '../../../core/units.js';
import type { ShardImage } from '../table/items.js';
import type { ShardKey } from '../table/keys.js';
import { expirySec, type ShardWrite } from './shard-write.js';

/** The image of a new bucket: full, with one shard. */
export function newBucketImage(key: ShardKey, level: LevelRef, nowMs: EpochMs): ShardImage {
  return {
    key,
    baseMs: nowMs,
    shardCount: 1,
    version: level.version,
    // 0 is a time that has passed: the plan that writes this image always renews it, unless the bucket has no ttl.
    ttlSec: level.lasting === true ? null : 0,
    writeId: '',
    writeUnits: 0,
    acquires: 0,
    expired: 0,
    limits: level.limits.map((limit) => ({ limit, rate: limit, tokensMilli: fullTokens(limit), consumedMilli: 0 })),
    retired: new Map(),
    holders: new Map(),
    onSweepList: false,
    bytes: 0,
  };
}

/** A write that takes nothing: the new bucket is stored full. */
export function planCreation(image: ShardImage, nowMs: EpochMs, lifeFactor: number): ShardWrite {
  const ttlSec = image.ttlSec === null ? undefined : expirySec(image, nowMs, lifeFactor);
  return { limits: [], acquires: 0, expired: 0, holders: [], adopts: null, ttlSec };
}
