import type { LevelChange, GrantLocation } from '../../../backend.js';
import type { Amount } from '../../../core/bucket/decide.js';
import { type Int, sub, toInt } from '../../../core/int.js';

/**
 * The shards that a grant was taken from, and how much from each. A grant from shard 0 of an unsplit bucket has none.
 */
export type ShardLocations = readonly ShardLocation[];

export interface ShardLocation {
  readonly shard: number;
  readonly taken: readonly { readonly name: string; readonly milli: string }[];
}

const SHARD_0: ShardLocations = [{ shard: 0, taken: [] }];

/** Reads a location, which may have been serialized and parsed since. */
export function readLocation(place: GrantLocation): ShardLocations {
  return Array.isArray(place) && place.length > 0 ? (place as ShardLocations) : SHARD_0;
}

export function locationOf(shard: number, taken: readonly Amount[]): ShardLocation {
  return { shard, taken: taken.map(({ name, milli }) => ({ name, milli: String(milli) })) };
}

/**
 * One change for each shard that the grant was taken from, in proportion to what each gave: so that changes in several
 * steps end where one step would. A limit that the grant did not take goes to the first shard.
 */
export function divideChange(level: LevelChange, locations: ShardLocations): readonly LevelChange[] {
  if (locations.length === 1) return [level];
  const deltas = level.deltas.map((amount) => divideAmount(amount, locations));
  const totals = level.totals?.map((amount) => divideAmount(amount, locations)) ?? null;
  return locations.map((_, at) => ({
    ...level,
    deltas: partsAt(deltas, at).filter(({ milli }) => milli !== 0),
    // A total of 0 is kept: it says that nothing is taken any more.
    totals: totals && partsAt(totals, at),
  }));
}

function partsAt(amounts: readonly (readonly Amount[])[], at: number): readonly Amount[] {
  return amounts.flatMap((parts) => parts.slice(at, at + 1));
}

function divideAmount({ name, milli }: Amount, locations: ShardLocations): readonly Amount[] {
  const weights = locations.map(({ taken }) => BigInt(taken.find((amount) => amount.name === name)?.milli ?? 0));
  const whole = weights.reduce((sum, weight) => sum + weight, 0n);
  if (whole === 0n) return locations.map((_, at) => ({ name, milli: at === 0 ? milli : 0 }));
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
