import type { LevelChange, GrantLocation, LevelOperation } from '../../../backend.js';
import type { Amount } from '../../../core/bucket/decide.js';
import { type Int, toInt } from '../../../core/int.js';

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
  return locations.map((_, at) => {
    const partOf = (name: string, milli: Int): Int => partAt(locations, at, name, milli);
    if (level.kind === 'deltas') {
      const deltas = level.deltas.map(({ name, milli }) => ({ name, milli: partOf(name, milli) }));
      return { ...level, deltas: deltas.filter(({ milli }) => milli !== 0) };
    }
    // A total of 0 is kept: it says that nothing is taken any more.
    const totals = level.totals.map(({ name, milli, deltaMilli }) => {
      return { name, milli: partOf(name, milli), deltaMilli: partOf(name, deltaMilli) };
    });
    return { ...level, totals };
  });
}

/** One operation for each shard that the grant was taken from, divided as a change is. */
export function divideOperation(level: LevelOperation, locations: ShardLocations): readonly LevelOperation[] {
  if (locations.length === 1) return [level];
  return locations.map((_, at) => {
    const partOf = (amounts: readonly Amount[]): readonly Amount[] =>
      amounts.map(({ name, milli }) => ({ name, milli: partAt(locations, at, name, milli) }));
    const { operation } = level;
    const dueIfLost = partOf(level.dueIfLost).filter(({ milli }) => milli !== 0);
    switch (operation.kind) {
      case 'settle':
      case 'commit':
        return { ...level, dueIfLost, operation: { ...operation, totals: partOf(operation.totals) } };
      case 'adjust':
        return { ...level, dueIfLost, operation: { ...operation, deltas: partOf(operation.deltas) } };
      case 'release':
      case 'rollback':
        return { ...level, dueIfLost };
    }
  });
}

/** The parts up to each shard are rounded, not the parts themselves, so that they add up to the whole amount. */
function partAt(locations: ShardLocations, at: number, name: string, milli: Int): Int {
  const weights = locations.map(({ taken }) => BigInt(taken.find((amount) => amount.name === name)?.milli ?? 0));
  const weightUpTo = (end: number): bigint => weights.slice(0, end).reduce((sum, weight) => sum + weight, 0n);
  const whole = weightUpTo(weights.length);
  if (whole === 0n) return at === 0 ? milli : 0;
  const upTo = (end: number): bigint => (BigInt(milli) * weightUpTo(end)) / whole;
  return toInt(upTo(at + 1) - upTo(at));
}
