import type { Call, LevelAsk, Tuning } from '../../../backend.js';
import { type Amount, decide } from '../../../core/bucket/decide.js';
import { parentShard } from '../../../core/bucket/shard.js';
import type { EpochMs } from '../../../core/units.js';
import type { Deadline } from '../client/deadline.js';
import type { ChangeEntry } from '../bucket/entries.js';
import { buildMerge, buildSplit } from '../bucket/writes/write-split.js';
import type { Target } from '../bucket/writes/shard-update.js';
import { errorOf, type Failure } from '../client/failures.js';
import { requireOwn } from '../table/foreign-record.js';
import { createWriteId } from '../bucket/write-id.js';
import { ImageMemory } from './image-memory.js';
import { decodeShard, type ShardImage, writtenAtMs } from '../table/items.js';
import { buildShardKey } from '../table/keys.js';
import { Pressure, type PressureOptions } from '../bucket/pressure.js';
import { readItem, send, type Table } from '../client/requests.js';
import { Revocations } from './revocations.js';
import { revocationOf } from '../bucket/revocation.js';
import { ShardLine } from './shard-line.js';
import { isCold, maySplit, planMerge, planSplit } from '../bucket/split.js';

/** How long the largest asks are recorded. A share must be large enough to serve them. */
const ASKS_COUNT_FOR_MS = 60_000;
const LOOK_FOR_COLD_EVERY_MS = 60_000;

/** The shards of one bucket, as far as this process knows them. */
export class BucketShards {
  readonly #table: Table;
  readonly #target: Target;
  readonly #entityId: string;
  readonly #resource: string;
  readonly #options: PressureOptions;
  readonly #revocations: Revocations;
  readonly #lines = new Map<number, ShardLine>();
  readonly #pressures = new Map<number, Pressure>();
  readonly #missing = new Set<number>();
  #largestAsks = new Map<string, number>();
  #asksSinceMs: EpochMs = 0;
  #splitting = false;
  #lookedForColdMs: EpochMs = 0;
  /** When the bucket last refused an ask of a cascade. null: it has had room since. */
  refusedAtMs: EpochMs | null = null;

  constructor(
    table: Table,
    ns: string,
    entityId: string,
    resource: string,
    options: PressureOptions,
    revocations: Revocations = new Revocations(table.random),
  ) {
    this.#table = table;
    this.#target = { tableName: table.name, ns };
    this.#entityId = entityId;
    this.#resource = resource;
    this.#options = options;
    this.#revocations = revocations;
  }

  get busy(): boolean {
    for (const line of this.#lines.values()) if (line.busy) return true;
    return this.#splitting;
  }

  /** The largest shard count that is known. Some of these shards may not be split off yet. */
  get count(): number {
    let count = 1;
    for (const { image } of this.#lines.values())
      if (image !== null && image.shardCount > count) count = image.shardCount;
    return count;
  }

  random(): number {
    return this.#table.random();
  }

  /** The shards that exist, as far as this process knows. */
  realShards(): readonly number[] {
    const shards = new Set<number>();
    for (let shard = 0; shard < this.count; shard++) shards.add(this.line(shard).shard);
    return [...shards];
  }

  /** The image of every shard, if all are younger than `denyCacheMs`. null: at least one is not. */
  youngImages(nowMs: EpochMs, denyCacheMs: number): readonly ShardImage[] | null {
    const images = this.realShards().map((shard) => this.line(shard).youngImage(nowMs, denyCacheMs));
    return images.every((image) => image !== null) ? images : null;
  }

  /** Returns a function that caches images read after this call, except of shards whose image changed meanwhile. */
  keeper(nowMs: EpochMs): (images: readonly ShardImage[]) => void {
    const before = new Map([...this.#lines].map(([shard, { image }]) => [shard, image]));
    return (images) => {
      for (const image of images) {
        const { shard } = image.key;
        const line = this.#lines.get(shard);
        if (line !== undefined && before.get(shard) === line.image) line.keep(image, nowMs);
      }
    };
  }

  /** Whether the image of every shard has too little for the asks. A shard without an image may have enough. */
  isShortOf(asks: readonly Amount[], nowMs: EpochMs): boolean {
    return this.realShards().every((shard) => {
      const { image } = this.line(shard);
      return image !== null && decide(image, asks, nowMs).some(({ waitMs }) => waitMs !== 0);
    });
  }

  /** Reads every shard that was not seen within the last `denyCacheMs`. */
  async lookAtAll(nowMs: EpochMs, deadline: Deadline, denyCacheMs: number): Promise<void> {
    let isKnown = (line: ShardLine): boolean => line.youngImage(nowMs, denyCacheMs) !== null;
    for (;;) {
      const unknown = this.realShards().filter((shard) => !isKnown(this.line(shard)));
      if (unknown.length === 0) return;
      const missing: number[] = [];
      await Promise.all(
        unknown.map(async (shard) => {
          if ((await this.line(shard).look(nowMs, deadline)) === null) missing.push(shard);
        }),
      );
      // A shard that does not exist is part of its parent, and shard 0 has none: there is no bucket.
      if (missing.includes(0)) return;
      for (const shard of missing) this.noteMissing(shard);
      isKnown = ({ image }) => image !== null;
    }
  }

  /** The line of a shard. If the shard does not exist, the line of the existing shard that contains its share. */
  line(wanted: number): ShardLine {
    let shard = wanted;
    while (shard > 0 && this.#isMissing(shard)) shard = parentShard(shard);
    let line = this.#lines.get(shard);
    if (line === undefined) this.#lines.set(shard, (line = this.#open(shard)));
    return line;
  }

  /** Records that the store has no such shard. An image of the parent shard that says otherwise is stale. */
  noteMissing(shard: number): void {
    if (shard === 0) return;
    this.#missing.add(shard);
    this.#lines.delete(shard);
    this.#pressures.delete(shard);
    if (this.#parentHas(shard)) this.#lines.get(parentShard(shard))?.forget();
  }

  /** Another process may have split the shard off since. Then the image of its parent shard shows it. */
  #isMissing(shard: number): boolean {
    if (this.#missing.has(shard) && this.#parentHas(shard)) this.#missing.delete(shard);
    return this.#missing.has(shard);
  }

  #parentHas(shard: number): boolean {
    const parent = this.#lines.get(parentShard(shard))?.image;
    return parent !== undefined && parent !== null && parent.shardCount > shard;
  }

  forget(): void {
    this.#missing.clear();
    for (const line of this.#lines.values()) line.forget();
  }

  noteAsk({ asks }: LevelAsk, nowMs: EpochMs): void {
    if (nowMs - this.#asksSinceMs >= ASKS_COUNT_FOR_MS) {
      this.#largestAsks = new Map();
      this.#asksSinceMs = nowMs;
    }
    for (const { name, milli } of asks) {
      if (Number(milli) > (this.#largestAsks.get(name) ?? 0)) this.#largestAsks.set(name, Number(milli));
    }
  }

  /** The shard to ask first: a random one of a busy bucket, else shard 0, so that the others become cold and merge. */
  pick(): number {
    const { count } = this;
    if (count === 1) return 0;
    let unitsPerSec = 0;
    for (const pressure of this.#pressures.values()) unitsPerSec += pressure.unitsPerSec;
    return unitsPerSec * 4 < this.#options.paceAbove ? 0 : Math.floor(this.#table.random() * count);
  }

  #open(shard: number): ShardLine {
    const key = { entityId: this.#entityId, resource: this.#resource, shard };
    const pressure = new Pressure(this.#options);
    this.#pressures.set(shard, pressure);
    const memory = new ImageMemory();
    const markHot = (): void => pressure.markHot();
    return new ShardLine(
      { table: this.#table, target: this.#target, key, memory, markHot },
      () => pressure.pauseMs(this.#table.random),
      (of, ask, doubt, tuning) => this.revoke(of, revocationOf(ask, doubt), tuning),
    );
  }

  /** Undoes a grant on one shard, in the background. */
  revoke(shard: number, entry: ChangeEntry, tuning: Tuning): void {
    this.#revocations.add(
      async (deadline) => {
        const line = this.line(shard);
        const { kind } = await line.submit(entry, deadline, tuning);
        // A shard with holders is never merged. So if the shard does not exist, there is nothing to give back.
        if (kind === 'no-shard') this.noteMissing(line.shard);
      },
      (error) => tuning.onError?.(error, 'giving back a grant that no caller received'),
    );
  }

  /** Runs `tend` in the background. A failure is reported, and fails no call. */
  tendInBackground(line: ShardLine, { nowMs, tuning }: Call, deadline: Deadline): void {
    this.tend(line, nowMs, deadline)?.catch((error: unknown) =>
      tuning?.onError?.(error, 'splitting or merging a bucket'),
    );
  }

  /**
   * After a write: splits a shard that is too busy, or merges a cold one. Resolves with what was done. null, in nearly
   * all calls: nothing to do.
   */
  tend(line: ShardLine, nowMs: EpochMs, deadline: Deadline): Promise<'split' | 'merged' | null> | null {
    const { image } = line;
    if (image === null) return null;
    const pressure = this.#pressures.get(image.key.shard);
    pressure?.observe(image, nowMs);
    if (this.#splitting) return null;
    if (pressure?.wantsSplit(nowMs) === true) return this.#guarded(() => this.#split(image, pressure, nowMs, deadline));
    if (image.shardCount === 1 || nowMs - this.#lookedForColdMs < LOOK_FOR_COLD_EVERY_MS) return null;
    this.#lookedForColdMs = nowMs;
    return this.#guarded(() => this.#mergeCold(image, nowMs, deadline));
  }

  async #guarded<T>(work: () => Promise<T>): Promise<T> {
    this.#splitting = true;
    try {
      return await work();
    } finally {
      this.#splitting = false;
    }
  }

  async #split(image: ShardImage, pressure: Pressure, nowMs: EpochMs, deadline: Deadline): Promise<'split' | null> {
    pressure.reset();
    if (!maySplit(image, (limit) => this.#largestAsks.get(limit) ?? 0)) return null;
    const split = planSplit(image, nowMs);
    const input = buildSplit(this.#target, image, split, createWriteId(nowMs, this.#table.random));
    const answer = await send(this.#table, 'TransactWriteItems', input, deadline);
    // Whether or not the split was written, the image may be stale.
    this.#lines.get(image.key.shard)?.forget();
    if (!answer.ok) return leftToOthers(answer.failure);
    this.#missing.delete(split.newShard);
    return 'split';
  }

  /** Merges a shard with the half that was split off from it, if that half is cold. */
  async #mergeCold(stays: ShardImage, nowMs: EpochMs, deadline: Deadline): Promise<'merged' | null> {
    const shard = stays.key.shard + stays.shardCount / 2;
    if (stays.key.shard >= stays.shardCount / 2) return null;
    const key = buildShardKey(this.#target.ns, { ...stays.key, shard });
    const item = requireOwn(this.#table, await readItem(this.#table, key, deadline));
    if (item === undefined) return null;
    const known = stays.limits.map(({ limit }) => limit);
    const leaves = decodeShard(item, known);
    // The half was split further: its own half must be merged first.
    if (leaves.shardCount > stays.shardCount) return this.#mergeCold(leaves, nowMs, deadline);
    if (!isCold(writtenAtMs(leaves), nowMs)) return null;
    const merge = planMerge(stays, leaves, nowMs);
    if (merge === null) return null;
    const input = buildMerge(this.#target, stays, leaves, merge, createWriteId(nowMs, this.#table.random));
    const answer = await send(this.#table, 'TransactWriteItems', input, deadline);
    this.#lines.get(stays.key.shard)?.forget();
    if (!answer.ok) return leftToOthers(answer.failure);
    this.noteMissing(shard);
    return 'merged';
  }
}

/** Another writer of the bucket will split or merge it if that is still needed. All other failures are reported. */
function leftToOthers(failure: Failure): null {
  if (failure.kind === 'cancelled' || failure.kind === 'conflict' || failure.kind === 'throttled') return null;
  throw errorOf(failure, 'TransactWriteItems');
}
