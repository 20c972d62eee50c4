import type { EpochMs } from '../../../../core/units.js';
import type { BatchResult } from '../process-batch.js';

/** The progress of a worker. Counts are since its start. */
export interface WorkerProgress {
  readonly records: number;
  /** Since the last report. */
  readonly recordsPerSec: number;
  /** The age of the last record that was read, the maximum over its shards: 0 at the end of all. */
  readonly lagMs: number;
  /** The number of shards that it reads. */
  readonly shards: number;
  /** Whether it has reached the end of every shard that it reads. */
  readonly caughtUp: boolean;
  /** Changes that were skipped. A change that several windows refuse may count once for each. */
  readonly poison: number;
  readonly archived: number;
  readonly splits: number;
}

/** DynamoDB also returns empty pages in the middle of a shard. */
const EMPTY_PAGES_AT_END = 3;

export class ProgressCount {
  #records = 0;
  #reportedRecords = 0;
  #reportedMs: EpochMs;
  #poison = 0;
  #archived = 0;
  #splits = 0;
  #discovered = false;
  /** The age of each shard's last record; null: nothing was read yet. */
  readonly #lagsMs = new Map<string, number | null>();
  /** How many of each shard's last pages were empty. */
  readonly #emptyPages = new Map<string, number>();

  constructor(startMs: EpochMs) {
    this.#reportedMs = startMs;
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

  /** Changes that a day or a month refuses. This is known only after their page was read. */
  skipped(changes: number): void {
    this.#poison += changes;
  }

  report(nowMs: EpochMs): WorkerProgress {
    const seconds = Math.max(1, nowMs - this.#reportedMs) / 1_000;
    const recordsPerSec = Math.round((this.#records - this.#reportedRecords) / seconds);
    this.#reportedMs = nowMs;
    this.#reportedRecords = this.#records;
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
