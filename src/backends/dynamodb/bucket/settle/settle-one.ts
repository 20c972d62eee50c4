import type { LevelRef } from '../../../../backend.js';
import { refills } from '../../../../core/limit-kind.js';
import type { EpochMs } from '../../../../core/units.js';
import type { ShardImage } from '../../table/items.js';
import { expirySec, withinTtl } from '../shard-write.js';
import { applySettlement, planSettle, type Settlement } from './settle.js';
import type { Update } from '../writes/record-write.js';
import { buildSettlement } from '../writes/write-settlement.js';

interface SettleOneOptions {
  readonly ns: string;
  readonly image: ShardImage;
  readonly nowMs: EpochMs;
  readonly lifeFactor: number;
  readonly writeId: string;
}

/** Settles one shard to the rules of a level. null: to its own rules, at a new base. */
export function settleOne({ ns, image, nowMs, lifeFactor, writeId }: SettleOneOptions, level: LevelRef | null): Update {
  const settlement = planSettle(image, level ?? rulesOf(image), nowMs);
  const lasts = image.shardCount > 1 || image.ttlSec === null || level?.lasting === true;
  const ttlSec = lasts ? null : laterTtl(image, settlement, nowMs, lifeFactor);
  const version = level?.version ?? image.version;
  return buildSettlement(ns, image, settlementWithinTtl(settlement, ttlSec), version, ttlSec, {
    own: writeId,
    unanswered: [],
  });
}

/**
 * Adds a ttl to a bucket that has none, at a new base, so that writes planned on an image without the ttl are refused.
 */
export function addTtl({ ns, image, nowMs, lifeFactor, writeId }: SettleOneOptions): Update {
  const settlement = planSettle(image, rulesOf(image), nowMs);
  const ttlSec = expirySec(applySettlement(image, settlement), nowMs, lifeFactor);
  return buildSettlement(ns, image, settlement, image.version, ttlSec, { own: writeId, unanswered: [] });
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
