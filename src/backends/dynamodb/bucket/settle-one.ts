import type { UpdateItemInput } from '@aws-sdk/client-dynamodb';
import type { LevelRef } from '../../../backend.js';
import type { EpochMs } from '../../../core/units.js';
import type { Target, WriteIds } from './expressions/shard-update.js';
import { buildSettlement } from './expressions/write-settlement.js';
import type { ShardImage } from '../table/items.js';
import { expirySec, untilForgotten } from './bucket-ttl.js';
import { applySettlement, planSettle, type Settlement } from './settle.js';

/** A bucket that was not written for this long is used so seldom that a write under `w = :seen` will land. */
const IDLE_MS = 60_000;

interface Settling {
  readonly target: Target;
  readonly image: ShardImage;
  readonly nowMs: EpochMs;
  readonly lifeFactor: number;
  readonly ids: WriteIds;
}

/** Settles one shard to the rules of a level; null: to its own, at a new base. */
export function settleOne(
  { target, image, nowMs, lifeFactor, ids }: Settling,
  level: LevelRef | null,
): UpdateItemInput {
  const settlement = planSettle(image, level ?? rulesOf(image), nowMs);
  const lasts = image.shardCount > 1 || image.ttlSec === null || level?.lasting === true;
  const ttlSec = lasts ? null : laterTtl(image, settlement, nowMs, lifeFactor);
  return buildSettlement(target, image, outliving(settlement, ttlSec), level?.version ?? image.version, ttlSec, ids);
}

/** Whether a bucket without an end should get one: its limits are not its own, it is one shard, and it is seldom used. */
export function needsEnd({ ttlSec, shardCount }: ShardImage, lasting: boolean | undefined, idleMs: number): boolean {
  return ttlSec === null && shardCount === 1 && lasting === false && idleMs >= IDLE_MS;
}

/** Gives an end to a bucket that has none, at a new base: writers that remember it without one are refused, and see it. */
export function giveEnd({ target, image, nowMs, lifeFactor, ids }: Settling): UpdateItemInput {
  const settlement = planSettle(image, rulesOf(image), nowMs);
  const ttlSec = expirySec(applySettlement(image, settlement), nowMs, lifeFactor);
  return buildSettlement(target, image, settlement, image.version, ttlSec, ids);
}

function laterTtl(image: ShardImage, settlement: Settlement, nowMs: EpochMs, lifeFactor: number): number {
  return Math.max(image.ttlSec ?? 0, expirySec(applySettlement(image, settlement), nowMs, lifeFactor));
}

/** Refused where others have left a debt that would outlast the `ttl`. */
function outliving(settlement: Settlement, ttlSec: number | null): Settlement {
  const limits = settlement.limits.map((settled) => {
    if (settled.kind !== 'stays' || settled.limit.kind === 'concurrent') return settled;
    return { ...settled, write: untilForgotten(settled.write, settled.limit, settlement.nextBaseMs, ttlSec) };
  });
  return { ...settlement, limits };
}

function rulesOf({ limits }: ShardImage): Pick<LevelRef, 'limits'> {
  return { limits: limits.map(({ limit }) => limit) };
}
