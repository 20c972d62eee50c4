import { isHeadgateError } from '../../../../core/errors.js';
import type { Clock } from '../../../../clock.js';
import type { Checkpoint, Checkpoints } from './checkpoints.js';
import { DeferredUsage } from '../usage/deferred-usage.js';
import { type BatchResult, sequenceNumberOf } from '../process-batch.js';
import type { StreamApi, StreamPage } from './stream-api.js';

/** What all lanes of a worker share. */
export interface LaneTools {
  readonly stream: StreamApi;
  readonly checkpoints: Checkpoints;
  readonly clock: Required<Clock>;
  readonly leaseMs: number;
  readonly pollMs: number;
  /** How often usage of days and months is written. */
  readonly rollupMs: number;
  readonly process: (records: readonly unknown[], deferred: DeferredUsage) => Promise<BatchResult>;
  readonly writeDeferred: (deferred: DeferredUsage) => Promise<void>;
  /** `lagMs`: the age of the last record; 0 at the end of the shard. */
  readonly onRead: (shardId: string, records: number, result: BatchResult | null, lagMs: number) => void;
  readonly onTrimmed: (shardId: string, sequenceNumber: string | null) => void;
  readonly onError: (error: unknown, where: string) => void;
}

/** Why a lane ended: aborted, read to the end of a closed shard, or claimed by another worker. */
export type LaneEnd = 'stopped' | 'done' | 'taken';

const FIRST_WAIT_MS = 100;
const MAX_WAIT_MS = 10_000;

/** One worker's reading of one shard, from its checkpoint. */
export class Lane {
  readonly shardId: string;
  readonly #tools: LaneTools;
  readonly #deferred: DeferredUsage;
  #iterator: string | null = null;
  /** The last record that was read. */
  #last: string | null;
  /** The last record up to which nothing is deferred: the next reader of the shard starts after it. */
  #safe: string | null;
  #saved: string | null;
  #renewedMs: number;
  #failures = 0;

  constructor(tools: LaneTools, { shardId, sequenceNumber }: Checkpoint) {
    this.#tools = tools;
    this.shardId = shardId;
    this.#deferred = new DeferredUsage(tools.rollupMs);
    this.#last = sequenceNumber;
    this.#safe = sequenceNumber;
    this.#saved = sequenceNumber;
    this.#renewedMs = tools.clock.now();
  }

  /** Never rejects: errors are reported and retried. */
  async run(signal: AbortSignal): Promise<LaneEnd> {
    const { clock, pollMs, onError } = this.#tools;
    for (;;) {
      let waitMs = 0;
      try {
        if (signal.aborted) {
          await this.#leave(false);
          return 'stopped';
        }
        const step = await this.#step();
        if (step === 'done' || step === 'taken') return step;
        this.#failures = 0;
        if (step === 'idle') waitMs = pollMs;
      } catch (error) {
        onError(error, `reading shard ${this.shardId}`);
        // The shard stays leased to this worker, and is free again when the lease expires.
        if (signal.aborted) return 'stopped';
        waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
        this.#failures += 1;
      }
      if (waitMs > 0) await clock.sleep(waitMs, signal).catch(() => {});
    }
  }

  async #step(): Promise<'read' | 'idle' | 'done' | 'taken'> {
    const { clock, leaseMs } = this.#tools;
    // Renew also while reads and writes fail: the renewal shows that the worker runs.
    if (clock.now() - this.#renewedMs >= leaseMs / 3 && !(await this.#save())) return 'taken';
    if (this.#deferred.isDue(clock.now())) await this.#writeDeferred();
    const page = await this.#read();
    if (page === null) return 'read';
    const result = page.records.length === 0 ? null : await this.#tools.process(page.records, this.#deferred);
    const [failure] = result?.failures ?? [];
    const processed = failure === undefined ? page.records : page.records.slice(0, failure.at);
    this.#last = lastNumberOf(processed) ?? this.#last;
    if (this.#deferred.isEmpty) this.#safe = this.#last;
    this.#iterator = failure === undefined ? page.next : null;
    this.#tools.onRead(this.shardId, processed.length, result, failure === undefined ? this.#lagOf(page) : 0);
    if (failure !== undefined) throw failure.error;
    if (page.next === null) return (await this.#leave(true)) ? 'done' : 'taken';
    return page.records.length === 0 ? 'idle' : 'read';
  }

  /** null: the iterator expired, or the next records were trimmed. */
  async #read(): Promise<StreamPage | null> {
    const { stream, onTrimmed } = this.#tools;
    try {
      this.#iterator ??= await stream.locate(this.shardId, this.#last);
      const page = await stream.read(this.#iterator);
      if (page === null) this.#iterator = null;
      return page;
    } catch (error) {
      this.#iterator = null;
      // Continue from the oldest record. If that fails too, it is an ordinary error.
      if (this.#last === null || !isHeadgateError(error, 'infrastructure.stream-trimmed')) throw error;
      onTrimmed(this.shardId, this.#last);
      this.#last = null;
      return null;
    }
  }

  async #writeDeferred(): Promise<void> {
    await this.#tools.writeDeferred(this.#deferred);
    this.#safe = this.#last;
  }

  async #save(): Promise<boolean> {
    const nowMs = this.#tools.clock.now();
    const kept = await this.#tools.checkpoints.advance(this.shardId, this.#safe, nowMs);
    if (kept) {
      this.#saved = this.#safe;
      this.#renewedMs = nowMs;
    }
    return kept;
  }

  /**
   * Writes the deferred usage first: changes after this shard must not be counted before it, or its own would be taken
   * as replays.
   */
  async #leave(done: boolean): Promise<boolean> {
    await this.#writeDeferred();
    const number = this.#safe === this.#saved ? null : this.#safe;
    return this.#tools.checkpoints.leave(this.shardId, number, done, this.#tools.clock.now());
  }

  #lagOf({ records }: StreamPage): number {
    const record = records.at(-1) as
      | { readonly dynamodb?: { readonly ApproximateCreationDateTime?: unknown } }
      | undefined;
    const time = record?.dynamodb?.ApproximateCreationDateTime;
    return time instanceof Date ? Math.max(0, this.#tools.clock.now() - time.getTime()) : 0;
  }
}

function lastNumberOf(records: readonly unknown[]): string | null {
  const last = records.at(-1);
  return last === undefined ? null : sequenceNumberOf(last);
}
