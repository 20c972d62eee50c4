import type { LevelCharge } from '../../../backend.js';
import { credit, effectiveTokens } from '../../../core/bucket/bucket.js';
import { partOfWhole } from '../../../core/bucket/parts.js';
import { sub } from '../../../core/int.js';
import { refills } from '../../../core/limit-kind.js';
import type { EpochMs } from '../../../core/units.js';
import { viewShards } from '../bucket/across-shards.js';
import { accountOf, type ShardImage } from '../table/items.js';
import type { Shard } from './shard.js';

/** The images of the shards with these numbers, which share a charge. */
export type Sharing = readonly (ShardImage | null)[];

/** Each shard once: a shard that is not split off yet is part of its parent. */
export function imagesOf(shards: readonly Shard[]): Sharing {
  return shards.map((shard, at) => (shards.indexOf(shard) === at ? shard.image : null));
}

export function isCredit({ deltas }: LevelCharge): boolean {
  return deltas.some(({ milli }) => milli < 0);
}

/**
 * The part of each shard. Of a charge every shard gets the same: otherwise one shard would be deep in debt while the others
 * grant as before. Of a credit each gets by the room that it has: what a full shard gets is lost. If others fill that room
 * first, some of the credit is lost, and none counts twice.
 */
export function divideCharge(level: LevelCharge, sharing: Sharing, nowMs: EpochMs): readonly LevelCharge[] {
  if (sharing.length === 1) return [level];
  const views = sharing.map((image) => (image === null ? null : (viewShards([image], level, nowMs)[0] ?? null)));
  const weightsOf = (name: string, isGivenBack: boolean): readonly bigint[] =>
    views.map((view) => (isGivenBack ? roomIn(view, name, nowMs) : 1n));
  const divided = level.deltas.map(({ name, milli }) => {
    const weights = weightsOf(name, milli < 0);
    return weights.map((_, at) => ({ name, milli: partOfWhole(milli, weights, at) }));
  });
  return sharing.map((_, at) => ({
    ...level,
    deltas: divided.flatMap((parts) => parts.slice(at, at + 1)).filter(({ milli }) => milli !== 0),
  }));
}

function roomIn(view: ShardImage | null, name: string, nowMs: EpochMs): bigint {
  const account = view === null ? undefined : accountOf(view, name);
  if (view === null || account === undefined || !refills(account.limit.kind)) return 0n;
  const { rate, tokensMilli } = account;
  return BigInt(sub(rate.capacityMilli, effectiveTokens(rate, tokensMilli, credit(rate, view.baseMs, nowMs))));
}
