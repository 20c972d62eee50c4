import type { Rate } from './bucket.js';
import { exactFloor } from '../int.js';
import { MILLI } from '../units.js';

/**
 * What shard `shard` of `count` holds of a limit. Capacities add up exactly: remainders go to the first shards. Slots are
 * divided whole: two halves of one could not be taken by anybody.
 * A refill period that is `count` times as long keeps the amounts whole and adds up to less than one token more.
 */
export function shareOf(rate: Rate, shard: number, count: number): Rate {
  // An unlimited limit is whole on every shard.
  if (count === 1 || rate.capacityMilli === Number.POSITIVE_INFINITY) return rate;
  const unit = rate.refillPeriodMs === 0 ? MILLI : 1;
  const units = exactFloor(rate.capacityMilli, unit);
  const each = exactFloor(units, count);
  return {
    capacityMilli: (shard < units - each * count ? each + 1 : each) * unit,
    refillMilli: rate.refillMilli,
    refillPeriodMs: rate.refillPeriodMs * count,
  };
}

/** The shard that a shard came from when its bucket was split: the same number without its highest bit. */
export function parentShard(shard: number): number {
  return shard === 0 ? 0 : shard - 2 ** Math.floor(Math.log2(shard));
}
