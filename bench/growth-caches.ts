import { BucketCache } from '../src/backends/dynamodb/acquire/bucket-shards.js';
import type { Executor } from '../src/backends/dynamodb/bucket/executor.js';
import { newBucketImage } from '../src/backends/dynamodb/bucket/new-bucket.js';
import { PRESSURE } from '../src/backends/dynamodb/bucket/pressure.js';
import { ConfigCache, type ResolvedRead } from '../src/limiter/config/config-cache.js';
import { bucketCounts, keysOf, plenty } from './growth-points.js';
import { heapGrowth } from './heap.js';
import type { Point } from './series.js';

const RESOURCE = 'gpt-4';
/** The caches only keep these. */
const NO_STORE = { ns: 'growth', random: Math.random } as Executor;
const NO_CONFIG = {} as ResolvedRead;
const LEVEL = { entityId: '', resource: RESOURCE, limits: [plenty('rpd')], version: { sequence: 0, openedAtMs: 0 } };

/** Looks one key up in a cache, and adds it if it is missing: a bucket with its image, or an entity with its config. */
type LookUp = (key: string) => void;

/** Both caches are bounded: with more keys than they keep, each look-up evicts the entry of another key. */
export async function cachePoints(open: () => LookUp): Promise<readonly Point[]> {
  const points: Point[] = [];
  for (const count of bucketCounts()) {
    const keys = keysOf(count);
    const lookUp = open();
    const { bytes } = await heapGrowth(async () => {
      for (const key of keys) lookUp(key);
      return lookUp;
    });
    let next = 0;
    const call = (): void => lookUp(keys[next++ % count] ?? '');
    points.push({ label: String(count), call, bytes: bytes / count });
  }
  return points;
}

export function lookUpConfig(): LookUp {
  const cache = new ConfigCache();
  return (entityId) => {
    if (cache.get(entityId, RESOURCE) !== undefined) return;
    const { generation } = cache;
    const entry = { entityId, resource: RESOURCE, resolved: NO_CONFIG, bucket: null, fetchedAtMs: 0, generation };
    cache.keep(entry, generation);
  };
}

export function lookUpBucket(): LookUp {
  const cache = new BucketCache(() => NO_STORE, Math.random, PRESSURE);
  return (entityId) => {
    const shard = cache.of('growth', entityId, RESOURCE).shard(0);
    if (shard.image === null) shard.keep(newBucketImage(shard.key, LEVEL, 0), 0);
  };
}
