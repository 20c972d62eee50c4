import type { LevelAsk } from '../../../backend.js';
import { askOf, decide } from '../../../core/bucket/decide.js';
import { type EpochMs, MILLI } from '../../../core/units.js';
import { newBucketImage } from '../bucket/new-bucket.js';
import type { BucketShards } from './bucket-shards.js';

/**
 * What one shard of a level can give of the limit that may be cut, as far as the images show; at least one token. Without
 * an image of every shard: what a full bucket gives. `isCareful`: what every shard that has a token can give, because the
 * ask may reach any of them.
 */
export function givenBy(
  bucket: BucketShards,
  level: LevelAsk,
  atMost: string,
  nowMs: EpochMs,
  isCareful: boolean,
): number {
  const ask = askOf(level.asks, atMost);
  if (ask === undefined) return Number.POSITIVE_INFINITY;
  // A shadow is asked for what the other levels give.
  if (ask.atMost !== true) return Number(ask.milli);
  const perShard = bucket.all().map((shard) => shard.judge(level.asks, nowMs));
  const verdicts = perShard.some((judged) => judged === null)
    ? decide(newBucketImage({ ...level, shard: 0 }, level, nowMs), [ask], nowMs)
    : perShard.flatMap((judged) => judged ?? []);
  const own = verdicts.filter(({ limit }) => limit.name === atMost);
  // By newer rules than those of the config, the limit may be unlimited, or gone.
  if (own.every(({ cut }) => cut !== true)) return Number(ask.milli);
  const given = own.filter(({ waitMs }) => waitMs === 0).map(({ requestedMilli }) => requestedMilli);
  if (given.length === 0) return MILLI;
  return isCareful ? Math.min(...given) : Math.max(...given);
}
