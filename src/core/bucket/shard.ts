import type { Rate } from './bucket.js';
import { exactFloor } from '../int.js';
import { MILLI } from '../units.js';

/**
 * The share of a limit that shard `shard` of `count` has. Capacities add up exactly: the first shards get the
 * remainder. Each share is in whole slots for a concurrent limit, because half a slot could never be taken. A refill
 * period that is `count` times as long keeps the amounts whole. The sum of the refills differs by less than one token.
 */
export function shareOf(rate: Rate, shard: number, count: number): Rate {
  if (count === 1) return rate;
  switch (rate.kind) {
    case 'rate':
      return shareInUnits(rate, 1, shard, count);
    case 'concurrent':
      return shareInUnits(rate, MILLI, shard, count);
    case 'unlimited':
      // Whole on every shard.
      return rate;
  }
}

function shareInUnits(rate: Rate, unit: number, shard: number, count: number): Rate {
  const units = exactFloor(rate.capacityMilli, unit);
  const each = exactFloor(units, count);
  return {
    kind: rate.kind,
    capacityMilli: (shard < units - each * count ? each + 1 : each) * unit,
    refillMilli: rate.refillMilli,
    refillPeriodMs: rate.refillPeriodMs * count,
  };
}

/** The shard that was split into this one: the same number without its highest bit. */
export function parentShard(shard: number): number {
  return shard === 0 ? 0 : shard - 2 ** Math.floor(Math.log2(shard));
}
