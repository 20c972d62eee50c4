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
  return places.map(({ taken }, at) => {
    const isFirst = at === 0;
    const isLast = at === places.length - 1;
    const deltas: Amount[] = [];
    for (const [name, milli] of owed) {
      const part = partOf(milli, BigInt(taken.find((amount) => amount.name === name)?.milli ?? '0'), isFirst, isLast);
      if (part === 0) continue;
      deltas.push({ name, milli: part });
      owed.set(name, sub(milli, part));
    }
    return { ...level, deltas, totals: level.totals === null ? null : totalsOf(level, taken, places, isFirst) };
  });
}

function partOf(owedMilli: Int, takenMilli: bigint, isFirst: boolean, isLast: boolean): Int {
  if (owedMilli >= 0) return isFirst ? owedMilli : 0;
  if (isLast) return owedMilli;
  const most = -takenMilli;
  return owedMilli < most ? add(0, most) : owedMilli;
}

/** What each of them will have taken: as at the grant, but the first, which bears every difference. */
function totalsOf(
  { totals }: LevelChange,
  taken: ShardPlace['taken'],
  places: ShardPlaces,
  isFirst: boolean,
): readonly Amount[] {
  const own = taken.map(({ name, milli }) => ({ name, milli: add(0, BigInt(milli)) }));
  const wanted = totals ?? [];
  if (!isFirst) return own.filter(({ name }) => amountOf(wanted, name) !== undefined);
  return wanted.map(({ name, milli }) => {
    const elsewhere = places.slice(1).flatMap((place) => place.taken.filter((amount) => amount.name === name));
    return { name, milli: elsewhere.reduce<Int>((rest, amount) => sub(rest, BigInt(amount.milli)), milli) };
  });
}
