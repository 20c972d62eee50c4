import type { LevelRef } from '../../../backend.js';
import { fullTokens } from '../../../core/limit.js';
import type { EpochMs } from '../../../core/units.js';
import type { ShardImage } from '../table/items.js';
import type { ShardKey } from '../table/keys.js';
import { expirySec } from './bucket-ttl.js';
import type { ShardWrite } from './shard-write.js';

/** A bucket as it would be born: full, of one shard. */
export function newBucketImage(key: ShardKey, level: LevelRef, nowMs: EpochMs): ShardImage {
  return {
    key,
    baseMs: nowMs,
    shardCount: 1,
    version: level.version,
    // A time that has passed: whoever writes this image gives it one that has not, unless it is to last.
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

/** Takes nothing: the item is written as it is born. */
export function planCreation(born: ShardImage, nowMs: EpochMs, lifeFactor: number): ShardWrite {
  const ttlSec = born.ttlSec === null ? undefined : expirySec(born, nowMs, lifeFactor);
  return { limits: [], acquires: 0, expired: 0, holders: [], adopts: null, ttlSec };
}
