import type { LevelChange, GrantLocation } from '../../../backend.js';
import type { Amount } from '../../../core/bucket/decide.js';
import { type Int, sub, toInt } from '../../../core/int.js';

/** On which shards a grant was taken, and how much on each. A grant on shard 0 alone needs no words. */
export type ShardLocations = readonly ShardLocation[];

export interface ShardLocation {
  readonly shard: number;
  readonly taken: readonly { readonly name: string; readonly milli: string }[];
}

const SHARD_0: ShardLocations = [{ shard: 0, taken: [] }];

/** Plain data, which may have been away from this process. */
export function readLocation(place: GrantLocation): ShardLocations {
  return Array.isArray(place) && place.length > 0 ? (place as ShardLocations) : SHARD_0;
}

export function locationOf(shard: number, taken: readonly Amount[]): ShardLocation {
  return { shard, taken: taken.map(({ name, milli }) => ({ name, milli: String(milli) })) };
}

/**
 * One change for each shard that the grant was taken from, each in proportion to what it gave: so that whatever is taken
 * or given back in several steps ends where it began. A limit that the grant did not take belongs to the first.
 */
export function divideChange(level: LevelChange, places: ShardLocations): readonly LevelChange[] {
  if (places.length === 1) return [level];
  const deltas = level.deltas.map((amount) => divideAmount(amount, places));
  const totals = level.totals?.map((amount) => divideAmount(amount, places)) ?? null;
  return places.map((_, at) => ({
    ...level,
    deltas: partsAt(deltas, at).filter(({ milli }) => milli !== 0),
    // A total of 0 says that nothing is taken any more: it is not nothing.
    totals: totals && partsAt(totals, at),
  }));
}

function partsAt(amounts: readonly (readonly Amount[])[], at: number): readonly Amount[] {
  return amounts.flatMap((parts) => parts.slice(at, at + 1));
}

function divideAmount({ name, milli }: Amount, places: ShardLocations): readonly Amount[] {
  const weights = places.map(({ taken }) => BigInt(taken.find((amount) => amount.name === name)?.milli ?? 0));
  const whole = weights.reduce((sum, weight) => sum + weight, 0n);
  if (whole === 0n) return places.map((_, at) => ({ name, milli: at === 0 ? milli : 0 }));
  let weight = 0n;
  let given: Int = 0;
  return weights.map((own) => {
    weight += own;
    const upToHere = toInt((BigInt(milli) * weight) / whole);
    const part = sub(upToHere, given);
    given = upToHere;
    return { name, milli: part };
  });
}
