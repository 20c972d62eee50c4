import type { LevelChange, Place } from '../../backend.js';
import { type Amount, amountOf } from '../../core/decide.js';
import { add, type Int, sub } from '../../core/int.js';

/** On which shards a grant was taken, and how much on each. A grant on shard 0 alone needs no words. */
export type ShardPlaces = readonly ShardPlace[];

export interface ShardPlace {
  readonly shard: number;
  readonly taken: readonly { readonly name: string; readonly milli: string }[];
}

const SHARD_0: ShardPlaces = [{ shard: 0, taken: [] }];

/** Plain data, which may have been away from this process. */
export function readPlace(place: Place): ShardPlaces {
  return Array.isArray(place) && place.length > 0 ? (place as ShardPlaces) : SHARD_0;
}

export function placeOf(shard: number, taken: readonly Amount[]): ShardPlace {
  return { shard, taken: taken.map(({ name, milli }) => ({ name, milli: String(milli) })) };
}

/**
 * One change for each shard that the grant was taken from: what is given back goes to where it came from, in their
 * order; everything else goes to the first. The last one takes whatever is left over.
 */
export function divideChange(level: LevelChange, places: ShardPlaces): readonly LevelChange[] {
  if (places.length === 1) return [level];
  const owed = new Map(level.deltas.map(({ name, milli }) => [name, milli]));
  const parts = places.map(({ taken }, at) => {
    const deltas: Amount[] = [];
    for (const [name, milli] of owed) {
      const part = partOf(milli, takenOf(taken, name), at === 0, at === places.length - 1);
      if (part === 0) continue;
      deltas.push({ name, milli: part });
      owed.set(name, sub(milli, part));
    }
    return { taken, deltas };
  });
  const rest = parts.slice(1).map((part) => totalsAfter(part, level.totals ?? []));
  return parts.map(({ deltas }, at) => {
    if (level.totals === null) return { ...level, deltas };
    return { ...level, deltas, totals: rest[at - 1] ?? totalsOfFirst(level.totals, rest) };
  });
}

function partOf(owedMilli: Int, takenMilli: Int, isFirst: boolean, isLast: boolean): Int {
  if (owedMilli >= 0) return isFirst ? owedMilli : 0;
  if (isLast) return owedMilli;
  const most = sub(0, takenMilli);
  return owedMilli < most ? most : owedMilli;
}

function takenOf(taken: ShardPlace['taken'], name: string): Int {
  return add(0, BigInt(taken.find((amount) => amount.name === name)?.milli ?? '0'));
}

/** What the lease will have taken there: as at the grant, less what goes back. */
function totalsAfter(
  { taken, deltas }: { readonly taken: ShardPlace['taken']; readonly deltas: readonly Amount[] },
  wanted: readonly Amount[],
): readonly Amount[] {
  return wanted.map(({ name }) => ({ name, milli: add(takenOf(taken, name), amountOf(deltas, name) ?? 0) }));
}

/** It bears every other difference, so that all of them add up. */
function totalsOfFirst(wanted: readonly Amount[], rest: readonly (readonly Amount[])[]): readonly Amount[] {
  return wanted.map(({ name, milli }) => ({
    name,
    milli: rest.reduce<Int>((left, totals) => sub(left, amountOf(totals, name) ?? 0), milli),
  }));
}
