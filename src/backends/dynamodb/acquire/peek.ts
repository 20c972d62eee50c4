import type { LevelAnswer, LevelAsk, LevelRef } from '../../../backend.js';
import { compareConfig } from '../../../core/config/config.js';
import { type Amount, amountOf, decide, type Verdict } from '../../../core/bucket/decide.js';
import { add } from '../../../core/int.js';
import type { Limit } from '../../../core/limit.js';
import type { EpochMs } from '../../../core/units.js';
import { viewShards, waitAcross } from '../bucket/across-shards.js';
import { newBucketImage } from '../bucket/new-bucket.js';
import type { Deadline } from '../client/deadline.js';
import { isForeign, requireOwn } from '../table/foreign-record.js';
import { decodeShard, type ShardImage } from '../table/items.js';
import { buildShardKey } from '../table/keys.js';
import { readItems, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';

type Decode = (item: Item, known: readonly Limit[]) => ShardImage;

/**
 * Reads all shards of each bucket, in the order of the references. An empty list: the bucket does not exist. `own-only`
 * skips foreign buckets, which a client of an older layout wrote.
 */
export async function readBuckets(
  table: Table,
  ns: string,
  refs: readonly { readonly entityId: string; readonly resource: string; readonly limits?: LevelRef['limits'] }[],
  deadline: Deadline,
  decode: Decode | 'own-only' = (item, known) => decodeShard(requireOwn(table, item), known),
): Promise<readonly (readonly ShardImage[])[]> {
  const first = await readItems(
    table,
    refs.map(({ entityId, resource }) => buildShardKey(ns, { entityId, resource, shard: 0 })),
    deadline,
  );
  return Promise.all(
    refs.map(async ({ entityId, resource, limits = [] }, at) => {
      const item = first[at];
      if (item === undefined || (decode === 'own-only' && isForeign(item))) return [];
      const read = decode === 'own-only' ? decodeShard : decode;
      const shards = [read(item, limits)];
      // A shard may have been split further than its parent shard.
      for (let next = 1, count = shards[0]?.shardCount ?? 1; next < count;) {
        const wanted = Array.from({ length: count - next }, (_, more) => next + more);
        const keys = wanted.map((shard) => buildShardKey(ns, { entityId, resource, shard }));
        const found = (await readItems(table, keys, deadline)).filter((other) => other !== undefined);
        shards.push(...found.map((other) => read(other, limits)));
        next = count;
        count = Math.max(count, ...shards.map(({ shardCount }) => shardCount));
      }
      return shards;
    }),
  );
}

/** Judges asks against a level, over all shards of its bucket. */
export function judgeLevel(shards: readonly ShardImage[], level: LevelAsk, asks: Asks, nowMs: EpochMs): LevelAnswer {
  const images = shards.length === 0 ? [newBucketImage({ ...level, shard: 0 }, level, nowMs)] : shards;
  const views = viewShards(images, level, nowMs);
  const perShard = views.map((view) => decide(view, asks(view), nowMs));
  const configIsOlder = images.some((image) => compareConfig(image, level) === 'reread');
  return { verdicts: perShard.length === 1 ? (perShard[0] ?? []) : sumVerdicts(views, perShard, nowMs), configIsOlder };
}

type Asks = (image: ShardImage) => readonly Amount[];

/** Asks for every limit of the bucket; for 0 where the level names no amount. */
export function everyLimit({ asks }: LevelAsk): Asks {
  return ({ limits }) => limits.map(({ limit }) => ({ name: limit.name, milli: amountOf(asks, limit.name) ?? 0 }));
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
    if (effectiveMilli >= first.requestedMilli) return { ...first, effectiveMilli, waitMs: 0 };
    const waits = parts.flatMap(({ waitMs }) => (waitMs === null ? [] : [waitMs]));
    const together = waitAcross(views, first.limit.name, first.requestedMilli, nowMs);
    return { ...first, effectiveMilli, waitMs: waits.length === 0 ? together : Math.min(...waits) };
  });
}
