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

/** Hears of asks that were not granted though a write of theirs may have landed, or may still land. */
export type Abandon = (shard: number, ask: AskEntry, doubt: Doubt, tuning: Tuning) => void;

/**
 * One shard of one bucket, in this process: one group is written at a time. Whatever comes while a write is under way
 * goes into the next one; an idle shard writes at once what came in one turn of the event loop.
 */
export class ShardLine {
  readonly #shard: Shard;
  /** How long to wait before the next write, so that the key is not overrun. */
  readonly #pacingMs: (image: ShardImage) => number;
  readonly #abandon: Abandon;
  #queue: Queued[] = [];
  #busy = false;
  /** Refunds that are on their way: a balance that is remembered from before must not deny. */
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

  /** Reads the shard; null: there is none. It is not remembered while somebody is writing, who will know better. */
  async look(nowMs: EpochMs, deadline: Deadline): Promise<ShardImage | null> {
    const { table, target, key, memory } = this.#shard;
    const item = requireOwn(table, await readItem(table, buildShardKey(target.ns, key), deadline));
    const known = memory.image?.limits.map(({ limit }) => limit) ?? [];
    const image = item === undefined ? null : decodeShard(item, known);
    if (!this.#busy) memory.keep(image, nowMs);
    return image;
  }

  /** Not while a write is under way, whose answer is newer. */
  keep(image: ShardImage, nowMs: EpochMs): void {
    if (!this.#busy) this.#shard.memory.keep(image, nowMs);
  }

  /** What was seen within the last `denyCacheMs`; null: nothing, or something has been given back since. */
  youngImage(nowMs: EpochMs, denyCacheMs: number): ShardImage | null {
    return this.#refunds === 0 && this.#shard.memory.isYoung(nowMs, denyCacheMs) ? this.image : null;
  }

  /** The denial of an ask, if what is remembered is enough for one. */
  recall(ask: AskEntry, tuning: Tuning): EntryResult | null {
    const { image } = this;
    if (image === null || this.#refunds > 0) return null;
    const { nowMs, level } = ask;
    // Most asks fit: nothing more need be looked at.
    if (decide(image, level.asks, nowMs).every(({ waitMs }) => waitMs === 0)) return null;
    const trust = this.#shard.memory.trustAt(nowMs, tuning.denyCacheMs);
    const at = { nowMs, trust, lifeFactor: tuning.bucketLifeFactor, withoutRefunds: false };
    const plan = planGroup(image, [ask], at);
    return plan.kind === 'answer' ? (plan.results[0] ?? null) : null;
  }

  /** Whether the whole ask fits by what is remembered. */
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

  /** The caller has no lease, though a write may have granted it one. */
  #leaveInDoubt({ entry, doubt, tuning }: Queued): void {
    if (entry.kind === 'ask' && doubt !== undefined) this.#abandon(this.shard, entry, doubt, tuning);
  }

  async #run(): Promise<void> {
    this.#busy = true;
    // Calls that are made in the same turn, as a line of waiters makes them, go into one write.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const waitMs = this.image === null ? 0 : this.#pacingMs(this.image);
      if (waitMs > 0) await pause(waitMs);
      const group = this.#nextGroup();
      if (group.length === 0) continue;
      const deferred = await writeGroup(this.#shard, group);
      // Not as arguments of a call: 140,000 of them overflow the stack.
      if (deferred.length > 0) this.#queue = (deferred as Queued[]).concat(this.#queue);
    }
    this.#busy = false;
  }

  /** Whoever left before anything was sent for him leaves nothing behind. */
  #nextGroup(): readonly Queued[] {
    const queued = this.#queue;
    this.#queue = [];
    return queued.filter(({ deadline, signal, reject }) => {
      if (signal?.aborted === true) reject(signal.reason);
      else if (timeLeftMs(deadline) <= 0) reject(tooLate());
      else return true;
      return false;
    });
  }
}

function tooLate(): BackendUnavailable {
  return new BackendUnavailable('The time was over before a write could be sent', 'timeout');
}
