import type { Awaitable, Call, Tuning } from '../../../backend.js';
import { parentShard } from '../../../core/bucket/shard.js';
import type { EpochMs } from '../../../core/units.js';
import type { ChangeEntry, Entry, ResultOf } from '../bucket/group/entries.js';
import { DEFAULT_LIFE_FACTOR } from '../bucket/shard-write.js';
import type { BucketRef, Executor } from '../bucket/executor.js';
import { LargestAsks, type PressureOptions } from '../bucket/pressure.js';
import { revocationsOf } from '../bucket/group/revocation.js';
import type { Deadline } from '../../../machine-time.js';
import type { ShardImage } from '../table/items.js';
import { Revocations } from './revocations.js';
import { Shard } from './shard.js';
import { BucketTender } from './tend-bucket.js';

export interface BucketKey {
  readonly entityId: string;
  readonly resource: string;
}

/** An entry's result, and the shard that gave it. */
export interface Submitted<E extends Entry> {
  readonly result: ResultOf<E>;
  readonly shard: Shard;
}

/** An entry, and how long its caller awaits the result. */
export interface ShardRequest<E extends Entry> {
  readonly entry: E;
  readonly deadline: Deadline;
  readonly tuning: Tuning;
  readonly signal?: AbortSignal | undefined;
}

function asItIs<T>(submitted: T): T {
  return submitted;
}

const ID_TAKEN = { kind: 'id-taken' } as const;

/** The parent shard may have the holder of an earlier part, under the same id: it would prove, or revoke, the wrong part. */
function isLaterPart(entry: Entry): boolean {
  return entry.kind === 'ask' && !entry.counts && entry.level.holder !== null;
}

/** The shards of one bucket, as far as this process knows them. */
export class BucketShards {
  readonly executor: Executor;
  readonly tender: BucketTender;
  readonly largestAsks = new LargestAsks();
  readonly #key: BucketKey;
  readonly #options: PressureOptions;
  readonly #revocations: Revocations;
  readonly #shards = new Map<number, Shard>();
  readonly #missing = new Set<number>();
  /** When the bucket last refused an ask of a cascade. null: it has had room since. */
  refusedAtMs: EpochMs | null = null;
  /** Whether it was looked up again since it was cached, or since an eviction spared it. Its cache uses this. */
  wasUsed = false;

  constructor(
    executor: Executor,
    { entityId, resource }: BucketKey,
    options: PressureOptions,
    revocations: Revocations = new Revocations(executor.random),
  ) {
    this.executor = executor;
    this.tender = new BucketTender(this);
    this.#key = { entityId, resource };
    this.#options = options;
    this.#revocations = revocations;
  }

  get busy(): boolean {
    for (const shard of this.#shards.values()) if (shard.busy) return true;
    return this.tender.busy;
  }

  /** The largest shard count that is known. Some of these shards may not be split off yet. */
  get count(): number {
    let count = 1;
    for (const { image } of this.#shards.values())
      if (image !== null && image.shardCount > count) count = image.shardCount;
    return count;
  }

  /** A shard. If it does not exist, the existing shard that contains its share. */
  shard(wanted: number): Shard {
    let number = wanted;
    while (number > 0 && this.#isMissing(number)) number = parentShard(number);
    let shard = this.#shards.get(number);
    if (shard === undefined) this.#shards.set(number, (shard = this.#open(number)));
    return shard;
  }

  /** The shards that exist, as far as this process knows. */
  all(): readonly Shard[] {
    const shards = new Set<Shard>();
    for (let number = 0; number < this.count; number++) shards.add(this.shard(number));
    return [...shards];
  }

  /** The shard to ask first: a random one of a busy bucket, else shard 0, so that the others become cold and merge. */
  pick(): number {
    const { count } = this;
    if (count === 1) return 0;
    let unitsPerSec = 0;
    for (const { pressure } of this.#shards.values()) unitsPerSec += pressure.unitsPerSec;
    return unitsPerSec * 4 < this.#options.paceAbove ? 0 : Math.floor(this.executor.random() * count);
  }

  /**
   * Submits an entry to a shard. If the store has no such shard, its parent gets the entry. Only an `extend` can end as
   * `no-shard`: there is no bucket, and the entry brings no limits to create one.
   */
  submit<E extends Entry>(
    wanted: number,
    entry: E,
    deadline: Deadline,
    tuning: Tuning,
    signal?: AbortSignal,
  ): Awaitable<Submitted<E>> {
    return submitAnd(this, wanted, { entry, deadline, tuning, signal }, asItIs);
  }

  /** Reads a shard, or the existing shard that contains its share. null: there is no bucket. */
  async read(wanted: number, nowMs: EpochMs, deadline: Deadline): Promise<{ shard: Shard; image: ShardImage | null }> {
    for (;;) {
      const shard = this.shard(wanted);
      const image = await shard.read(nowMs, deadline);
      if (image !== null || shard.number === 0) return { shard, image };
      this.noteMissing(shard.number);
    }
  }

  forget(): void {
    this.#missing.clear();
    for (const shard of this.#shards.values()) shard.forget();
  }

  forgetShard(number: number): void {
    this.#shards.get(number)?.forget();
  }

  noteSplit(newShard: number): void {
    this.#missing.delete(newShard);
  }

  /** Records that the store has no such shard. An image of the parent shard that says otherwise is stale. */
  noteMissing(number: number): void {
    if (number === 0) return;
    this.#missing.add(number);
    this.#shards.delete(number);
    if (this.#parentHas(number)) this.forgetShard(parentShard(number));
  }

  /** Undoes a grant on one shard, in the background. */
  revoke(wanted: number, entry: ChangeEntry, tuning: Tuning): void {
    this.#revocations.add(
      async (deadline) => {
        const shard = this.shard(wanted);
        const { kind } = await shard.submit(entry, deadline, tuning);
        // A shard with holders is never merged. So if the shard does not exist, there is nothing to give back.
        if (kind === 'no-shard') this.noteMissing(shard.number);
      },
      (error) => tuning.onError?.(error, 'giving back a grant that no caller received'),
    );
  }

  /** Another process may have split the shard off since. Then the image of its parent shard shows it. */
  #isMissing(number: number): boolean {
    if (this.#missing.has(number) && this.#parentHas(number)) this.#missing.delete(number);
    return this.#missing.has(number);
  }

  #parentHas(number: number): boolean {
    const parent = this.#shards.get(parentShard(number))?.image;
    return parent !== undefined && parent !== null && parent.shardCount > number;
  }

  #open(number: number): Shard {
    return new Shard(this.executor, { ...this.#key, shard: number }, this.#options, (of, ask, doubt, tuning) => {
      for (const revocation of revocationsOf(ask, doubt)) this.revoke(of, revocation, tuning);
    });
  }
}

/** As `submit`. `conclude` gets what the store has answered: one promise less than a `then` for each ask of a hot group. */
export function submitAnd<E extends Entry, T>(
  bucket: BucketShards,
  wanted: number,
  request: ShardRequest<E>,
  conclude: (submitted: Submitted<E>) => Awaitable<T>,
): Submitted<E> | Promise<T> {
  const { entry, deadline, tuning, signal } = request;
  const shard = bucket.shard(wanted);
  const result = shard.submit(entry, deadline, tuning, signal);
  if (!(result instanceof Promise)) return { result: result as ResultOf<E>, shard };
  return result.then((late): Awaitable<T> => {
    if (late.kind !== 'no-shard' || shard.number === 0) return conclude({ result: late as ResultOf<E>, shard });
    bucket.noteMissing(shard.number);
    if (isLaterPart(entry)) return conclude({ result: ID_TAKEN as ResultOf<E>, shard });
    const again = submitAnd(bucket, wanted, request, conclude);
    return again instanceof Promise ? again : conclude(again);
  });
}

interface Latest {
  ns: string;
  entityId: string;
  resource: string;
  bucket: BucketShards | null;
}

/** The number of cached buckets. Beyond it a bucket that was not used lately is evicted. */
const MAX_BUCKETS = 20_000;

/**
 * The buckets that this process has cached. Bounded, because there may be one for every user. A look-up only sets a flag,
 * and an eviction gives each bucket with the flag a second chance. Were a look-up to move its entry to the end of the map,
 * V8 would make a new table every few thousand look-ups, and the iterator below would keep all of them in memory until the
 * next eviction.
 */
export class BucketCache {
  readonly #executorOf: (ns: string) => Executor;
  readonly #pressure: PressureOptions;
  readonly #revocations: Revocations;
  readonly #known = new Map<string, BucketShards>();
  /** The bucket that was looked up last: the callers of a hot bucket build no key. */
  readonly #latest: Latest = { ns: '', entityId: '', resource: '', bucket: null };
  /** The next entry to evict. A new iteration would first skip the gaps of all deleted entries. */
  readonly #oldest = this.#known.entries();

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
    const latest = this.#latest;
    const isLatest = latest.entityId === entityId && latest.resource === resource && latest.ns === ns;
    if (isLatest && latest.bucket !== null) {
      latest.bucket.wasUsed = true;
      return latest.bucket;
    }
    latest.ns = ns;
    latest.entityId = entityId;
    latest.resource = resource;
    return (latest.bucket = this.#find(ns, entityId, resource));
  }

  #find(ns: string, entityId: string, resource: string): BucketShards {
    const key = `${ns}/${entityId}#${resource}`;
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.wasUsed = true;
      return known;
    }
    const bucket = new BucketShards(this.#executorOf(ns), { entityId, resource }, this.#pressure, this.#revocations);
    // Before the new bucket is added, which has no write under way yet and could be the one that is evicted.
    if (this.#known.size >= MAX_BUCKETS) this.#evictOne();
    this.#known.set(key, bucket);
    return bucket;
  }

  /**
   * Skips busy buckets: after an eviction the next call would open a second queue for the same shard, and two groups of
   * this process would be written at once.
   */
  #evictOne(): void {
    // Each entry is deleted or moved to the end, so all entries are ahead of the iterator. After one round no flag is set.
    for (let left = 2 * this.#known.size; left > 0; left--) {
      const next = this.#oldest.next();
      if (next.done === true) return;
      const [key, bucket] = next.value;
      this.#known.delete(key);
      if (!bucket.wasUsed && !bucket.busy) return;
      bucket.wasUsed = false;
      this.#known.set(key, bucket);
    }
  }
}

/** For calls without tuning: the defaults of the limiter's options. */
const DEFAULT_TUNING: Tuning = {
  maxRetries: 5,
  denyCacheMs: 1_000,
  bucketLifeFactor: DEFAULT_LIFE_FACTOR,
  configCacheMs: 60_000,
};

export function tuningOf({ tuning }: Pick<Call, 'tuning'>): Tuning {
  return tuning ?? DEFAULT_TUNING;
}
