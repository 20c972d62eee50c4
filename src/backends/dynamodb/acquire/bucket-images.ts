import { type AskedAmount, refuses } from '../../../core/bucket/decide.js';
import type { EpochMs } from '../../../core/units.js';
import type { Deadline } from '../../../machine-time.js';
import type { ShardImage } from '../table/items.js';
import type { BucketShards } from './bucket-shards.js';
import type { Shard } from './shard.js';

/** Reads every shard of a bucket that was not seen within the last `denyCacheMs`. */
export async function readShards(
  bucket: BucketShards,
  nowMs: EpochMs,
  deadline: Deadline,
  denyCacheMs: number,
): Promise<void> {
  let isKnown = (shard: Shard): boolean => shard.youngImage(nowMs, denyCacheMs) !== null;
  for (;;) {
    const unknown = bucket.all().filter((shard) => !isKnown(shard));
    if (unknown.length === 0) return;
    const images = await Promise.all(unknown.map(async (shard) => shard.read(nowMs, deadline)));
    const missing = unknown.filter((_, at) => images[at] === null);
    // A shard that does not exist is part of its parent, and shard 0 has none: there is no bucket.
    if (missing.some(({ number }) => number === 0)) return;
    for (const { number } of missing) bucket.noteMissing(number);
    isKnown = ({ image }) => image !== null;
  }
}

/** The image of every shard, if all are younger than `denyCacheMs`. null: at least one is not. */
export function youngImages(bucket: BucketShards, nowMs: EpochMs, denyCacheMs: number): readonly ShardImage[] | null {
  const images = bucket.all().map((shard) => shard.youngImage(nowMs, denyCacheMs));
  return images.every((image) => image !== null) ? images : null;
}

/** Returns a function that caches images read after this call, except of shards whose image changed meanwhile. */
export function startKeeping(bucket: BucketShards, nowMs: EpochMs): (images: readonly ShardImage[]) => void {
  const before = new Map(bucket.all().map((shard) => [shard, shard.image]));
  return (images) => {
    for (const image of images) {
      const shard = bucket.shard(image.key.shard);
      if (shard.number === image.key.shard && before.get(shard) === shard.image) shard.keep(image, nowMs);
    }
  };
}

/** Whether the image of every shard has too little for the asks, or is paused. A shard without an image may have enough. */
export function isShortOf(bucket: BucketShards, asks: readonly AskedAmount[], nowMs: EpochMs): boolean {
  return bucket.all().every((shard) => shard.isPaused(nowMs) || shard.judge(asks, nowMs)?.some(refuses) === true);
}
