import { hasExpired } from '../../../core/bucket/give-back.js';
import { compareVersions } from '../../../core/config/config.js';
import { sub } from '../../../core/int.js';
import { holdsSlots } from '../../../core/limit-kind.js';
import type { Limit } from '../../../core/limit.js';
import type { EpochMs } from '../../../core/units.js';
import type { SlotCorrection } from '../bucket/writes/write-sweep.js';
import { planReclaim } from '../bucket/group/plan-group.js';
import { accountOf, type ShardImage, writtenAtMs } from '../table/items.js';
import type { ShardWrite } from '../bucket/shard-write.js';
import {
  hasRightSlots,
  isWhole,
  levelSlots,
  newestRules,
  planSettleAll,
  type WholeSettlement,
} from '../bucket/settle/settle-all.js';
import { planSettle, type Settlement } from '../bucket/settle/settle.js';
import { isCold, type Merge, planMerge } from '../bucket/split.js';

/** The next repair of a bucket. */
export type RepairStep =
  | { readonly kind: 'reclaim'; readonly image: ShardImage; readonly move: ShardWrite }
  | { readonly kind: 'heal'; readonly correction: SlotCorrection }
  /**
   * Repairs slots over several shards, which all get the newest rules of any of them. `limits`: how many limits have
   * slots.
   */
  | { readonly kind: 'heal-all'; readonly whole: WholeSettlement; readonly limits: number }
  /** The staying shard of a merge must not have older rules than the leaving one. */
  | {
      readonly kind: 'settle';
      readonly image: ShardImage;
      readonly settlement: Settlement;
      readonly version: ShardImage['version'];
    }
  | { readonly kind: 'merge'; readonly stays: ShardImage; readonly leaves: ShardImage; readonly merge: Merge }
  | { readonly kind: 'unmark'; readonly image: ShardImage; readonly settlement: Settlement };

export interface Circumstances {
  readonly nowMs: EpochMs;
  /** The write ids of this visit, with the time of the last use before each: the visit's writes are not use. */
  readonly ownWrites: ReadonlyMap<string, EpochMs>;
}

/** When a write other than this visit's last changed the shard. */
export function lastUsedMs(image: ShardImage, { ownWrites }: Pick<Circumstances, 'ownWrites'>): EpochMs {
  return ownWrites.get(image.writeId) ?? writtenAtMs(image);
}

/**
 * A bucket that was written more recently stays on the list: it will probably have holders again, and a visit costs
 * less than two changes of the index. Less than the pause between two sweeps.
 */
const LISTED_FOR_MS = 240_000;

/** The next step for a bucket, given all its shards; null: nothing to repair. */
export function planStep(shards: readonly ShardImage[], at: Circumstances): RepairStep | null {
  return planReclaims(shards, at) ?? planHeal(shards, at) ?? planPair(shards, at) ?? planUnmark(shards, at);
}

function planReclaims(shards: readonly ShardImage[], { nowMs }: Circumstances): RepairStep | null {
  const image = shards.find((candidate) => hasExpired(candidate, nowMs));
  return image === undefined ? null : { kind: 'reclaim', image, move: planReclaim(image, nowMs) };
}

/**
 * Free slots may be on any shard, so only their sum can be wrong. The shards are not read at one instant: a split
 * between two reads can move slots to a shard that was not read. Then the shards are not whole, and no step is planned.
 */
function planHeal(shards: readonly ShardImage[], { nowMs }: Circumstances): RepairStep | null {
  const rules = newestRules(shards, null);
  if (rules === null || !isWhole(shards) || hasRightSlots(shards, rules)) return null;
  const [only, ...others] = shards;
  if (only !== undefined && others.length === 0) return { kind: 'heal', correction: correctionOf(only) };
  return { kind: 'heal-all', whole: planSettleAll(shards, rules, nowMs), limits: slotsOf(rules.limits).length };
}

function correctionOf(image: ShardImage): SlotCorrection {
  const limits = slotsOf(image.limits.map(({ limit }) => limit)).map((limit) => {
    const [tokensMilli = 0] = levelSlots([image], limit);
    return { name: limit.name, deltaMilli: sub(tokensMilli, accountOf(image, limit.name)?.tokensMilli ?? 0) };
  });
  return { image, limits: limits.filter(({ deltaMilli }) => deltaMilli !== 0) };
}

function slotsOf(limits: readonly Limit[]): readonly Limit[] {
  return limits.filter(({ kind }) => holdsSlots(kind));
}

/** Pairs merge in any order: the shards of a bucket need not be split equally deep. */
function planPair(shards: readonly ShardImage[], at: Circumstances): RepairStep | null {
  for (const leaves of shards) {
    const half = leaves.shardCount / 2;
    if (leaves.key.shard < half || leaves.holders.size > 0 || !isCold(lastUsedMs(leaves, at), at.nowMs)) continue;
    const stays = shards.find(
      ({ key, shardCount }) => key.shard === leaves.key.shard - half && shardCount === half * 2,
    );
    if (stays === undefined) continue;
    if (compareVersions(stays.version, leaves.version) < 0) return planRules(stays, leaves, at);
    const merge = planMerge(stays, leaves, at.nowMs);
    if (merge !== null) return { kind: 'merge', stays, leaves, merge };
  }
  return null;
}

function planRules(older: ShardImage, newer: ShardImage, { nowMs }: Circumstances): RepairStep {
  return { kind: 'settle', image: older, settlement: planSettle(older, rulesOf(newer), nowMs), version: newer.version };
}

function rulesOf({ limits }: ShardImage): { readonly limits: readonly Limit[] } {
  return { limits: limits.map(({ limit }) => limit) };
}

function planUnmark(shards: readonly ShardImage[], at: Circumstances): RepairStep | null {
  const [image] = shards;
  if (image === undefined || !image.onSweepList || image.shardCount > 1 || image.holders.size > 0) return null;
  if (at.nowMs - lastUsedMs(image, at) < LISTED_FOR_MS) return null;
  return { kind: 'unmark', image, settlement: planSettle(image, rulesOf(image), at.nowMs) };
}
