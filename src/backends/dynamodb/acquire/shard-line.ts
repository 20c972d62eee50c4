import type { Tuning } from '../../../backend.js';
import { decide } from '../../../core/bucket/decide.js';
import { BackendUnavailable } from '../../../core/errors.js';
import type { EpochMs } from '../../../core/units.js';
import { type Deadline, pause, timeLeftMs } from '../client/deadline.js';
import { type AskEntry, type Doubt, type Entry, type EntryResult, givesBack } from '../bucket/entries.js';
import { writeGroup } from './group-write.js';
import type { Shard, Waiting } from './shard.js';
import { planGroup } from '../bucket/plan-group.js';
import { decodeShard, type ShardImage } from '../table/items.js';
import { requireOwn } from '../table/foreign-record.js';
import { buildShardKey } from '../table/keys.js';
import { readItem } from '../client/requests.js';

interface Queued extends Waiting {
  readonly signal: AbortSignal | undefined;
}

/** Called for an ask that was not granted although one of its writes may have landed or may still land. */
export type Abandon = (shard: number, ask: AskEntry, doubt: Doubt, tuning: Tuning) => void;

/**
 * The queue of one shard in this process. One group is written at a time. Entries that arrive during a write go into
 * the next group. An idle shard writes at once what arrives in one turn of the event loop.
 */
export class ShardLine {
  readonly #shard: Shard;
  /** Pacing: how long to wait before the next write, so that the key is not throttled. */
  readonly #pacingMs: (image: ShardImage) => number;
  readonly #abandon: Abandon;
  #queue: Queued[] = [];
  #busy = false;
  /** The number of refunds under way. A balance from before a refund must not deny. */
  #refunds = 0;

  constructor(shard: Shard, pacingMs: (image: ShardImage) => number, abandon: Abandon = () => {}) {
    this.#shard = shard;
    this.#pacingMs = pacingMs;
    this.#abandon = abandon;
  }

  get shard(): number {
    return this.#shard.key.shard;
  }

  get image(): ShardImage | null {
    return this.#shard.memory.image;
  }

  get busy(): boolean {
    return this.#busy;
  }

  forget(): void {
    this.#shard.memory.forget();
  }

  /** Reads the shard. null: it does not exist. Not cached while a write is under way, whose answer is newer. */
  async look(nowMs: EpochMs, deadline: Deadline): Promise<ShardImage | null> {
    const { table, target, key, memory } = this.#shard;
    const item = requireOwn(table, await readItem(table, buildShardKey(target.ns, key), deadline));
    const known = memory.image?.limits.map(({ limit }) => limit) ?? [];
    const image = item === undefined ? null : decodeShard(item, known);
    if (!this.#busy) memory.keep(image, nowMs);
    return image;
  }

  /** Caches an image, unless a write is under way, whose answer is newer. */
  keep(image: ShardImage, nowMs: EpochMs): void {
    if (!this.#busy) this.#shard.memory.keep(image, nowMs);
  }

  /** The image, if it was seen within the last `denyCacheMs` and no refund is under way; else null. */
  youngImage(nowMs: EpochMs, denyCacheMs: number): ShardImage | null {
    return this.#refunds === 0 && this.#shard.memory.isYoung(nowMs, denyCacheMs) ? this.image : null;
  }

  /** A denial from the deny cache; null if the image cannot deny the ask. */
  recall(ask: AskEntry, tuning: Tuning): EntryResult | null {
    const { image } = this;
    if (image === null || this.#refunds > 0) return null;
    const { nowMs, level } = ask;
    // Most asks fit, and skip the full plan below.
    if (decide(image, level.asks, nowMs).every(({ waitMs }) => waitMs === 0)) return null;
    const trust = this.#shard.memory.trustAt(nowMs, tuning.denyCacheMs);
    const at = { nowMs, trust, lifeFactor: tuning.bucketLifeFactor, withoutRefunds: false };
    const plan = planGroup(image, [ask], at);
    return plan.kind === 'answer' ? (plan.results[0] ?? null) : null;
  }

  /** Whether the whole ask fits into the image. */
  hasRoom(entry: Entry, tuning: Tuning): boolean {
    const { image } = this;
    if (image === null) return false;
    const at = {
      nowMs: entry.nowMs,
      trust: 'exact',
      lifeFactor: tuning.bucketLifeFactor,
      withoutRefunds: false,
    } as const;
    const plan = planGroup(image, [entry], at);
    return plan.kind === 'write' && plan.results[0]?.kind === 'granted';
  }

  submit(entry: Entry, deadline: Deadline, tuning: Tuning, signal?: AbortSignal): Promise<EntryResult> {
    const result = new Promise<EntryResult>((resolve, reject) => {
      const queued: Queued = {
        entry,
        deadline,
        signal,
        tuning,
        resolve: (value) => {
          if (value.kind !== 'granted') this.#leaveInDoubt(queued);
          resolve(value);
        },
        reject: (error) => {
          this.#leaveInDoubt(queued);
          reject(error);
        },
      };
      this.#queue.push(queued);
    });
    if (!this.#busy) void this.#run();
    if (!givesBack(entry)) return result;
    this.#refunds += 1;
    return result.finally(() => (this.#refunds -= 1));
  }

  /** The caller gets no lease, although a write may have granted it. */
  #leaveInDoubt({ entry, doubt, tuning }: Queued): void {
    if (entry.kind === 'ask' && doubt !== undefined) this.#abandon(this.shard, entry, doubt, tuning);
  }

  async #run(): Promise<void> {
    this.#busy = true;
    // Calls that are made in the same turn of the event loop, as by a queue of waiters, share one write.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const waitMs = this.image === null ? 0 : this.#pacingMs(this.image);
      if (waitMs > 0) await pause(waitMs);
      const group = this.#nextGroup();
      if (group.length === 0) continue;
      const deferred = await writeGroup(this.#shard, group);
      // Not spread into `unshift`: 140,000 arguments overflow the stack.
      if (deferred.length > 0) this.#queue = (deferred as Queued[]).concat(this.#queue);
    }
    this.#busy = false;
  }

  /** Drops entries that aborted or timed out before they were sent. */
  #nextGroup(): readonly Queued[] {
    const queued = this.#queue;
    this.#queue = [];
    return queued.filter(({ deadline, signal, reject }) => {
      if (signal?.aborted === true) reject(signal.reason);
      else if (timeLeftMs(deadline) <= 0) reject(deadlinePassed());
      else return true;
      return false;
    });
  }
}

function deadlinePassed(): BackendUnavailable {
  return new BackendUnavailable('The deadline passed before the write was sent', 'timeout');
}
