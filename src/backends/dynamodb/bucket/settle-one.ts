import type { UpdateItemInput } from '@aws-sdk/client-dynamodb';
import type { LevelRef } from '../../../backend.js';
import { refills } from '../../../core/limit-kind.js';
import type { EpochMs } from '../../../core/units.js';
import type { Target, WriteIds } from './expressions/shard-update.js';
import { buildSettlement } from './expressions/write-settlement.js';
import type { ShardImage } from '../table/items.js';
import { expirySec, withinTtl } from './bucket-ttl.js';
import { applySettlement, planSettle, type Settlement } from './settle.js';

/** A bucket that was not written for this long is written so seldom that a write under `w = :seen` will land. */
const IDLE_MS = 60_000;

interface SettleOneOptions {
  readonly target: Target;
  readonly image: ShardImage;
  readonly nowMs: EpochMs;
  readonly lifeFactor: number;
  readonly ids: WriteIds;
}

/** Settles one shard to the rules of a level. null: to its own rules, at a new base. */
export function settleOne(
  { target, image, nowMs, lifeFactor, ids }: SettleOneOptions,
  level: LevelRef | null,
): UpdateItemInput {
  const settlement = planSettle(image, level ?? rulesOf(image), nowMs);
  const lasts = image.shardCount > 1 || image.ttlSec === null || level?.lasting === true;
  const ttlSec = lasts ? null : laterTtl(image, settlement, nowMs, lifeFactor);
  return buildSettlement(
    target,
    image,
    settlementWithinTtl(settlement, ttlSec),
    level?.version ?? image.version,
    ttlSec,
    ids,
  );
}

/**
 * Whether a bucket without a ttl should get one: its limits are inherited, it has one shard, and it is seldom written.
 */
export function needsTtl({ ttlSec, shardCount }: ShardImage, lasting: boolean | undefined, idleMs: number): boolean {
  return ttlSec === null && shardCount === 1 && lasting === false && idleMs >= IDLE_MS;
}

/**
 * Adds a ttl to a bucket that has none, at a new base, so that writes planned on an image without the ttl are refused.
 */
export function addTtl({ target, image, nowMs, lifeFactor, ids }: SettleOneOptions): UpdateItemInput {
  const settlement = planSettle(image, rulesOf(image), nowMs);
  const ttlSec = expirySec(applySettlement(image, settlement), nowMs, lifeFactor);
  return buildSettlement(target, image, settlement, image.version, ttlSec, ids);
}

function laterTtl(image: ShardImage, settlement: Settlement, nowMs: EpochMs, lifeFactor: number): number {
  return Math.max(image.ttlSec ?? 0, expirySec(applySettlement(image, settlement), nowMs, lifeFactor));
}

/** Adds conditions that refuse the settlement where other writers have left a debt that would outlast the `ttl`. */
function settlementWithinTtl(settlement: Settlement, ttlSec: number | null): Settlement {
  const limits = settlement.limits.map((settled) => {
    if (settled.kind !== 'stays' || !refills(settled.limit.kind)) return settled;
    return { ...settled, write: withinTtl(settled.write, settled.limit, settlement.nextBaseMs, ttlSec) };
  });
  return { ...settlement, limits };
}

function rulesOf({ limits }: ShardImage): Pick<LevelRef, 'limits'> {
  return { limits: limits.map(({ limit }) => limit) };
}
