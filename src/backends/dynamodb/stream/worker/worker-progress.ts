import type { EpochMs } from '../../../../core/units.js';
import type { BatchResult } from '../process-batch.js';

/** How far a worker is. Counts are since it was started. */
export interface WorkerProgress {
  readonly records: number;
  /** Since the last time that progress was told. */
  readonly recordsPerSec: number;
  /** How old the last record was that it read, over all its shards: 0 where it is at the end. */
  readonly lagMs: number;
  /** Shards that it reads. */
  readonly shards: number;
  /** Whether it has seen the end of every shard that it reads. */
  readonly caughtUp: boolean;
  /** Changes that were passed over. One that several windows cannot take may be in it for each of them. */
  readonly poison: number;
  readonly archived: number;
  readonly splits: number;
}

/** DynamoDB gives empty pages in the middle of a shard, too. */
const EMPTY_PAGES_AT_END = 3;

export class ProgressCount {
  #records = 0;
  #toldRecords = 0;
  #toldMs: EpochMs;
  #poison = 0;
  #archived = 0;
  #splits = 0;
  #discovered = false;
  /** Per shard how old its last record was; null: nothing was read of it yet. */
  readonly #lagsMs = new Map<string, number | null>();
  /** Per shard how many of its last pages were empty. */
  readonly #emptyPages = new Map<string, number>();

  constructor(startMs: EpochMs) {
    this.#toldMs = startMs;
  }

  discovered(): void {
    this.#discovered = true;
  }

  opened(shardId: string): void {
    this.#lagsMs.set(shardId, null);
  }

  closed(shardId: string): void {
    this.#lagsMs.delete(shardId);
    this.#emptyPages.delete(shardId);
  }

  note(shardId: string, records: number, result: BatchResult | null, lagMs: number): void {
    this.#records += records;
    this.#poison += result?.poison ?? 0;
    this.#archived += result?.archived ?? 0;
    this.#splits += result?.splits ?? 0;
    this.#lagsMs.set(shardId, lagMs);
    this.#emptyPages.set(shardId, result === null ? (this.#emptyPages.get(shardId) ?? 0) + 1 : 0);
  }

  /** Changes that a day or a month cannot take, which are found out after their page was read. */
  passedOver(changes: number): void {
    this.#poison += changes;
  }

  tell(nowMs: EpochMs): WorkerProgress {
    const seconds = Math.max(1, nowMs - this.#toldMs) / 1_000;
    const recordsPerSec = Math.round((this.#records - this.#toldRecords) / seconds);
    this.#toldMs = nowMs;
    this.#toldRecords = this.#records;
    return {
      records: this.#records,
      recordsPerSec,
      lagMs: Math.max(0, ...[...this.#lagsMs.values()].map((lagMs) => lagMs ?? 0)),
      shards: this.#lagsMs.size,
      caughtUp: this.#discovered && [...this.#lagsMs.keys()].every((shardId) => this.#isAtEnd(shardId)),
      poison: this.#poison,
      archived: this.#archived,
      splits: this.#splits,
    };
  }

  #isAtEnd(shardId: string): boolean {
    return (this.#emptyPages.get(shardId) ?? 0) >= EMPTY_PAGES_AT_END;
  }
}
