import { BucketShards } from './bucket-shards.js';
import type { PressureOptions } from '../bucket/pressure.js';
import type { BucketRef, Executor } from '../bucket/executor.js';
import type { Deadline } from '../client/deadline.js';
import type { ShardImage } from '../table/items.js';
import { Revocations } from './revocations.js';

/** The number of cached buckets. Beyond it the least recently used bucket is evicted. */
const MAX_BUCKETS = 20_000;

/** The buckets that this process has cached. Bounded, because there may be one for every user. */
export class BucketCache {
  readonly #executorOf: (ns: string) => Executor;
  readonly #pressure: PressureOptions;
  readonly #revocations: Revocations;
  /** Least recently used first. */
  readonly #known = new Map<string, BucketShards>();

  constructor(executorOf: (ns: string) => Executor, random: () => number, pressure: PressureOptions) {
    this.#executorOf = executorOf;
    this.#pressure = pressure;
    this.#revocations = new Revocations(random);
  }

  /** Finishes the revocations that run in the background. */
  async finish(): Promise<void> {
    await this.#revocations.finish();
  }

  /** Reads all shards of each bucket from the store. The result is in the order of `refs`. */
  async read(ns: string, refs: readonly BucketRef[], deadline: Deadline): Promise<readonly (readonly ShardImage[])[]> {
    return this.#executorOf(ns).readBuckets(refs, deadline);
  }

  of(ns: string, entityId: string, resource: string): BucketShards {
    const key = `${ns}/${entityId}#${resource}`;
    const known = this.#known.get(key);
    if (known !== undefined) {
      // Moving an entry to the end costs as much as the lookup, so it is done only when an eviction is near.
      if (this.#known.size * 2 > MAX_BUCKETS) {
        this.#known.delete(key);
        this.#known.set(key, known);
      }
      return known;
    }
    const bucket = new BucketShards(this.#executorOf(ns), { entityId, resource }, this.#pressure, this.#revocations);
    this.#known.set(key, bucket);
    if (this.#known.size > MAX_BUCKETS) this.#evictOldest();
    return bucket;
  }

  /**
   * Skips busy buckets: after an eviction the next call would open a second queue for the same shard, and two groups of
   * this process would be written at once.
   */
  #evictOldest(): void {
    for (const [key, bucket] of this.#known) {
      if (bucket.busy) continue;
      this.#known.delete(key);
      return;
    }
  }
}
