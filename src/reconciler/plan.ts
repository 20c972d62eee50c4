import { compareVersions } from '../core/config.js';
import { amountOf } from '../core/decide.js';
import { add, type Int, min, sub } from '../core/int.js';
import { type Limit, sameRule } from '../core/limit.js';
import type { EpochMs } from '../core/units.js';
import type { SlotCorrection } from '../backends/dynamodb/expressions/write-sweep.js';
import { accountOf, hasExpired, planReclaim } from '../backends/dynamodb/group.js';
import { type ShardImage, writtenAtMs } from '../backends/dynamodb/items.js';
import type { Move } from '../backends/dynamodb/move.js';
import { planSettle, type Settlement } from '../backends/dynamodb/settle.js';
import { isCold, type Merge, planMerge } from '../backends/dynamodb/split.js';

/** The next thing to put right in a bucket. */
export type Step =
  | { readonly kind: 'reclaim'; readonly image: ShardImage; readonly move: Move }
  | { readonly kind: 'heal'; readonly corrections: readonly SlotCorrection[] }
  /** A shard that stays must not live by older rules than the one that leaves. */
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
  /** Writes of this very visit, and when what they changed had been used before: they are no use of it. */
  readonly ownWrites: ReadonlyMap<string, EpochMs>;
}

/** When somebody other than this visit last wrote it. */
export function lastUsedMs(image: ShardImage, { ownWrites }: Pick<Circumstances, 'ownWrites'>): EpochMs {
  return ownWrites.get(image.writeId) ?? writtenAtMs(image);
}

/**
 * A bucket that was written to more lately stays on the list: whoever uses it will most likely hold something again, and
 * a visit is cheaper than two changes of the index. Less than the pause between two sweeps.
 */
const LISTED_FOR_MS = 240_000;

/** What to do next with a bucket, of all whose shards these are; null: it is as it should be. */
export function planStep(shards: readonly ShardImage[], at: Circumstances): Step | null {
  return planReclaims(shards, at) ?? planHeal(shards) ?? planPair(shards, at) ?? planUnmark(shards, at);
}

function planReclaims(shards: readonly ShardImage[], { nowMs }: Circumstances): Step | null {
  const image = shards.find((candidate) => hasExpired(candidate, nowMs));
  return image === undefined ? null : { kind: 'reclaim', image, move: planReclaim(image, nowMs) };
}

/**
 * Free slots may be on any shard, so that only their sum can be wrong. Shards are not read in one instant: between two of
 * them, one may have been split, and slots be on a shard that was not seen. Then they do not add up to a whole.
 */
function planHeal(shards: readonly ShardImage[]): Step | null {
  if (!isWhole(shards)) return null;
  const deltas = new Map<ShardImage, { readonly name: string; readonly deltaMilli: Int }[]>();
  for (const { limit } of shards[0]?.limits ?? []) {
    if (limit.kind !== 'concurrent' || !shards.every((image) => lives(image, limit))) continue;
    const known = shards.reduce<Int>((sum, image) => add(sum, slotsOf(image, limit.name)), 0);
    for (const [image, deltaMilli] of divide(shards, limit.name, sub(limit.capacityMilli, known))) {
      deltas.set(image, [...(deltas.get(image) ?? []), { name: limit.name, deltaMilli }]);
    }
  }
  if (deltas.size === 0) return null;
  return { kind: 'heal', corrections: [...deltas].map(([image, limits]) => ({ image, limits })) };
}

/** Whether these are all shards that there are, if they stood so in one instant. */
export function isWhole(shards: readonly ShardImage[]): boolean {
  return shards.reduce((sum, { shardCount }) => sum + 1 / shardCount, 0) === 1;
}

/** While shards come to new rules one by one, their sum means nothing. */
function lives(image: ShardImage, limit: Limit): boolean {
  const account = accountOf(image, limit.name);
  return account !== undefined && sameRule(account.limit, limit);
}

/** Free and held. */
function slotsOf(image: ShardImage, name: string): Int {
  let sum: Int = accountOf(image, name)?.tokensMilli ?? 0;
  for (const { slots } of image.holders.values()) sum = add(sum, amountOf(slots, name) ?? 0);
  return sum;
}

/** What lacks is added to the first shard; what is too much is taken where it is free, so that nobody is granted it. */
function divide(shards: readonly ShardImage[], name: string, missingMilli: Int): ReadonlyMap<ShardImage, Int> {
  const deltas = new Map<ShardImage, Int>();
  let owed = missingMilli;
  for (const image of owed < 0 ? shards : []) {
    const free = accountOf(image, name)?.tokensMilli ?? 0;
    const taken = free > 0 ? min(free, sub(0, owed)) : 0;
    if (taken === 0) continue;
    deltas.set(image, sub(0, taken));
    owed = add(owed, taken);
  }
  const [first] = shards;
  if (first !== undefined && owed !== 0) deltas.set(first, add(deltas.get(first) ?? 0, owed));
  return deltas;
}

/** Pairs merge in any order, each where it stands: shards of one bucket need not be split equally deep. */
function planPair(shards: readonly ShardImage[], at: Circumstances): Step | null {
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

function planRules(older: ShardImage, newer: ShardImage, { nowMs }: Circumstances): Step {
  return { kind: 'settle', image: older, settlement: planSettle(older, rulesOf(newer), nowMs), version: newer.version };
}

function rulesOf({ limits }: ShardImage): { readonly limits: readonly Limit[] } {
  return { limits: limits.map(({ limit }) => limit) };
}

function planUnmark(shards: readonly ShardImage[], at: Circumstances): Step | null {
  const [image] = shards;
  if (image === undefined || !image.swept || image.shardCount > 1 || image.holders.size > 0) return null;
  if (at.nowMs - lastUsedMs(image, at) < LISTED_FOR_MS) return null;
  return { kind: 'unmark', image, settlement: planSettle(image, rulesOf(image), at.nowMs) };
}
