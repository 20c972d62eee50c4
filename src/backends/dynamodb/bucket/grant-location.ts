import type { GrantLocation, LevelAnswer, LevelChange } from '../../../backend.js';
import { type Amount, amountOf, takenMilli } from '../../../core/bucket/decide.js';
import type { AmountChange } from '../../../core/bucket/holder-rules.js';
import { partOfWhole } from '../../../core/bucket/parts.js';
import { type Int, min } from '../../../core/int.js';

/**
 * The shards that a grant was taken from, and how much from each. A grant from shard 0 of an unsplit bucket has none.
 */
export type ShardLocations = readonly ShardLocation[];

export interface ShardLocation {
  readonly shard: number;
  readonly taken: readonly { readonly name: string; readonly milli: string }[];
}

/** What a lease has on one shard, as far as the process that changes the lease knows. */
export interface ShardShare extends ShardLocation {
  /** At least this much is taken. Of a limit that is not named: its part of the whole, as the grant took it. */
  readonly has: readonly Amount[];
  /** `held`: as far as this process knows, the shard has the holder, or there never was one. */
  readonly holder: 'held' | 'released' | 'lost';
}

/** What the lease has before its first change. */
export function sharesOf(place: GrantLocation): readonly ShardShare[] {
  return readLocation(place).map(({ shard, taken }) => ({ shard, taken, has: [], holder: 'held' }));
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
 * One change for each shard that the grant was taken from: to its part of the new amount, in proportion to what it gave,
 * from what the lease has there. So it does not matter how much of an earlier change was made. A limit that the grant did
 * not take is taken from the first shard.
 */
export function divideChange(level: LevelChange, shares: readonly ShardShare[]): readonly LevelChange[] {
  const [first] = shares;
  if (shares.length === 1 && first?.has.length === 0 && first.holder === 'held') return [level];
  return shares.map(({ has, holder }, at) => {
    const partOf = (name: string, milli: Int): Int => partAt(shares, at, name, milli);
    const amounts = level.amounts.map(({ name, fromMilli, toMilli }): AmountChange => {
      return { name, fromMilli: amountOf(has, name) ?? partOf(name, fromMilli), toMilli: partOf(name, toMilli) };
    });
    if (holder === 'held') return { ...level, amounts };
    const { refundsOnExpiry: _, ...withoutHolder } = level;
    return { ...withoutHolder, amounts, holder: 'none' };
  });
}

/** The share before its part of a change. Kept because the lease may count its amounts otherwise if a part fails. */
export function withPart(share: ShardShare, { amounts }: LevelChange): ShardShare {
  return withAmounts(share, amounts, ({ fromMilli }) => fromMilli);
}

/**
 * The share once its part has been written. `holderLost`: its holder was missing. If that had given back what it carried, and
 * the change named no amounts, then nothing was charged again, and the next change must find it missing too.
 */
export function withPartDone(share: ShardShare, part: LevelChange, holderLost: boolean): ShardShare {
  if (holderLost && part.refundsOnExpiry === true && part.amounts.length === 0) return share;
  const { shard, taken, has } = withAmounts(share, part.amounts, ({ toMilli }) => toMilli);
  if (holderLost) return { shard, taken, has, holder: 'lost' };
  return { shard, taken, has, holder: part.holder === 'release' ? 'released' : share.holder };
}

/** The share once its refunds may have been written. They are not repeated, because they could count twice. */
export function withRefundsDone(share: ShardShare, { amounts }: LevelChange): ShardShare {
  return withAmounts(share, amounts, ({ fromMilli, toMilli }) => min(fromMilli, toMilli));
}

function withAmounts(
  share: ShardShare,
  amounts: readonly AmountChange[],
  hasOf: (amount: AmountChange) => Int,
): ShardShare {
  if (amounts.length === 0) return share;
  const { shard, taken, holder } = share;
  const others = share.has.filter(({ name }) => !amounts.some((amount) => amount.name === name));
  const has = [...others, ...amounts.map((amount) => ({ name: amount.name, milli: hasOf(amount) }))];
  return { shard, taken, has, holder };
}

/** Whether a part has nothing to write. What is due where there is a holder depends on it. */
export function changesNothing({ holder, amounts }: LevelChange): boolean {
  return holder === 'none' && amounts.every(({ fromMilli, toMilli }) => fromMilli === toMilli);
}

/** Whether the next change must look for a holder here. */
export function isHeld({ holder }: ShardShare): boolean {
  return holder === 'held';
}

/** Divided as the grant was taken. */
export function partAt(locations: ShardLocations, at: number, name: string, milli: Int): Int {
  const weights = locations.map(({ taken }) => BigInt(taken.find((amount) => amount.name === name)?.milli ?? 0));
  return partOfWhole(milli, weights, at);
}

/** What a grant took from its shard. */
export function takenOf({ verdicts }: LevelAnswer): readonly Amount[] {
  return verdicts.map((verdict) => ({ name: verdict.limit.name, milli: takenMilli(verdict) }));
}
