import type { LevelAnswer, LevelAsk } from '../../../backend.js';
import { compareConfig } from '../../../core/config/config.js';
import { type AskedAmount, askOf, decide, type Verdict } from '../../../core/bucket/decide.js';
import { add } from '../../../core/int.js';
import type { EpochMs } from '../../../core/units.js';
import { runningPause } from './shard-pauses.js';
import { sumOfNear, viewShards, waitAcross } from './across-shards.js';
import { newBucketImage } from './new-bucket.js';
import type { ShardImage } from '../table/items.js';

/** Judges asks against a level, over all shards of its bucket. */
export function judgeLevel(shards: readonly ShardImage[], level: LevelAsk, asks: Asks, nowMs: EpochMs): LevelAnswer {
  const images = shards.length === 0 ? [newBucketImage({ ...level, shard: 0 }, level, nowMs)] : shards;
  const views = viewShards(images, level, nowMs);
  const perShard = views.map((view) => decide(view, asks(view), nowMs));
  const configIsOlder = images.some((image) => compareConfig(image, level) === 'reread');
  const verdicts = perShard.length === 1 ? (perShard[0] ?? []) : sumVerdicts(views, perShard, nowMs);
  return { verdicts, configIsOlder, ...runningPause(images, nowMs) };
}

type Asks = (image: ShardImage) => readonly AskedAmount[];

/** Asks for every limit of the bucket; for 0 where the level names no amount. */
export function everyLimit({ asks }: LevelAsk): Asks {
  return ({ limits }) => limits.map(({ limit: { name } }) => askOf(asks, name) ?? { name, milli: 0 });
}

/** The shard that gives most of an ask that may be cut. If none does: the one that gives a token first. */
function bestOf(parts: readonly Verdict[]): Verdict {
  return parts.reduce((best, part) => {
    const [waitMs, leastMs] = [part.waitMs ?? Number.POSITIVE_INFINITY, best.waitMs ?? Number.POSITIVE_INFINITY];
    const isBetter = waitMs === leastMs ? part.requestedMilli > best.requestedMilli : waitMs < leastMs;
    return isBetter ? part : best;
  });
}

/** What the shards have together, and how long they need for the rest. For a debt: the shortest wait of the shards. */
function sumVerdicts(
  views: readonly ShardImage[],
  perShard: readonly (readonly Verdict[])[],
  nowMs: EpochMs,
): readonly Verdict[] {
  return (perShard[0] ?? []).map((first) => {
    const parts = perShard.flatMap((verdicts) => verdicts.filter(({ limit }) => limit.name === first.limit.name));
    const effectiveMilli = parts.map((part) => part.effectiveMilli).reduce(add);
    const near = sumOfNear(parts);
    const reserveMilli = parts.map((part) => part.reserveMilli ?? 0).reduce((sum, milli) => sum + milli);
    if (first.cut === true) return { ...bestOf(parts), ...near, effectiveMilli };
    if (effectiveMilli >= first.requestedMilli + reserveMilli) return { ...first, ...near, effectiveMilli, waitMs: 0 };
    const waits = parts.flatMap(({ waitMs }) => (waitMs === null ? [] : [waitMs]));
    const ask = { ...first, name: first.limit.name, milli: first.requestedMilli };
    const together = waitAcross(views, ask, nowMs);
    return { ...first, ...near, effectiveMilli, waitMs: waits.length === 0 ? together : Math.min(...waits) };
  });
}
