import type { Call } from '../../../backend.js';
import type { EpochMs } from '../../../core/units.js';
import type { Executor, TransactionAnswer } from '../bucket/executor.js';
import type { LargestAsks } from '../bucket/pressure.js';
import { isCold, maySplit, planMerge, planSplit } from '../bucket/split.js';
import { createWriteId } from '../bucket/writes/record-write.js';
import { buildMerge, buildSplit } from '../bucket/writes/write-split.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import { type ShardImage, writtenAtMs } from '../table/items.js';
import type { Shard } from './shard.js';

const LOOK_FOR_COLD_EVERY_MS = 60_000;
const TEND_WITHIN_MS = 2_000;

/** The shards of a bucket, which a split or a merge changes. */
export interface TendedShards {
  readonly executor: Executor;
  readonly largestAsks: LargestAsks;
  forgetShard(shard: number): void;
  noteSplit(newShard: number): void;
  noteMissing(shard: number): void;
}

/** Splits the busy shards of one bucket and merges the cold ones. */
export class BucketTender {
  readonly #shards: TendedShards;
  #lookedForColdMs: EpochMs = 0;
  #busy = false;

  constructor(shards: TendedShards) {
    this.#shards = shards;
  }

  get busy(): boolean {
    return this.#busy;
  }

  /** Runs `tend` in the background. A failure is reported, and fails no call. */
  tendInBackground(shard: Shard, { nowMs, tuning, namespaceId }: Call): void {
    const { entityId, resource } = shard.key;
    const told = this.tend(shard, nowMs, deadlineIn(TEND_WITHIN_MS))?.then((done) =>
      done === null
        ? undefined
        : tuning?.onReshard?.({ kind: done === 'split' ? 'split' : 'merge', namespaceId, entityId, resource }),
    );
    told?.catch((error: unknown) => tuning?.onError?.(error, 'splitting or merging a bucket'));
  }

  /** Splits a shard that is too busy, or merges a cold one. Resolves with what was done. null: nothing to do. */
  tend({ image, pressure }: Shard, nowMs: EpochMs, deadline: Deadline): Promise<'split' | 'merged' | null> | null {
    if (image === null || this.#busy) return null;
    if (pressure.wantsSplit(nowMs)) {
      pressure.reset();
      return this.#alone(async () => this.#split(image, nowMs, deadline));
    }
    if (image.shardCount === 1 || nowMs - this.#lookedForColdMs < LOOK_FOR_COLD_EVERY_MS) return null;
    this.#lookedForColdMs = nowMs;
    return this.#alone(async () => this.#mergeCold(image, nowMs, deadline));
  }

  async #alone<T>(work: () => Promise<T>): Promise<T> {
    this.#busy = true;
    try {
      return await work();
    } finally {
      this.#busy = false;
    }
  }

  async #split(image: ShardImage, nowMs: EpochMs, deadline: Deadline): Promise<'split' | null> {
    if (!maySplit(image, (limit) => this.#shards.largestAsks.of(limit))) return null;
    const { executor } = this.#shards;
    const split = planSplit(image, nowMs);
    const writes = buildSplit(executor.ns, image, split, createWriteId(nowMs, executor.random));
    const answer = await executor.writeAll(writes, deadline);
    // Whether or not the split was written, the image may be stale.
    this.#shards.forgetShard(image.key.shard);
    if (!isWritten(answer)) return null;
    this.#shards.noteSplit(split.newShard);
    return 'split';
  }

  /** Merges a shard with the half that was split off from it, if that half is cold. */
  async #mergeCold(stays: ShardImage, nowMs: EpochMs, deadline: Deadline): Promise<'merged' | null> {
    const half = stays.shardCount / 2;
    if (stays.key.shard >= half) return null;
    const { executor } = this.#shards;
    const key = { ...stays.key, shard: stays.key.shard + half };
    const known = stays.limits.map(({ limit }) => limit);
    const leaves = await executor.read(key, known, deadline);
    if (leaves === null) return null;
    // The half was split further: its own half must be merged first.
    if (leaves.shardCount > stays.shardCount) return this.#mergeCold(leaves, nowMs, deadline);
    const merge = isCold(writtenAtMs(leaves), nowMs) ? planMerge(stays, leaves, nowMs) : null;
    if (merge === null) return null;
    const writes = buildMerge(executor.ns, stays, leaves, merge, createWriteId(nowMs, executor.random));
    const answer = await executor.writeAll(writes, deadline);
    this.#shards.forgetShard(stays.key.shard);
    if (!isWritten(answer)) return null;
    this.#shards.noteMissing(key.shard);
    return 'merged';
  }
}

/** False: another writer of the bucket will split or merge it if that is still needed. All other failures are thrown. */
function isWritten(answer: TransactionAnswer): boolean {
  if (answer.kind === 'no-answer' || answer.kind === 'failed') throw answer.error;
  return answer.kind === 'written';
}
