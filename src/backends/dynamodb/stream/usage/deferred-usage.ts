import type { UsageWindow } from '../../../../core/usage/usage.js';
import type { EpochMs } from '../../../../core/units.js';
import { deadlineIn } from '../../../../machine-time.js';
import type { Table } from '../../client/requests.js';
import type { BucketChange } from '../decode.js';
import { UsageFold } from './usage.js';
import { addSums, isCountable, readStatuses, type RefusedUsage } from './write-usage.js';

const DEFERRED: readonly UsageWindow[] = ['daily', 'monthly'];
/** Less than the time that a purge waits before it deletes. */
const WRITE_MS = 30_000;
/** Each uses about 300 bytes of memory until it is written. */
const MAX_CHANGES = 20_000;

/**
 * Usage of days and months that was read from one shard of the stream and is not written yet. Hours are written with
 * each batch, these at most once per `everyMs`. The owner must not move its checkpoint past the first deferred change,
 * so that a crash reads the changes again. Changes that two processes defer are added once, by the condition of the
 * write.
 */
export class DeferredUsage {
  readonly #everyMs: number;
  readonly #fold = new UsageFold(DEFERRED);
  #changes = 0;
  #dueMs: EpochMs = Number.POSITIVE_INFINITY;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  get isEmpty(): boolean {
    return this.#changes === 0;
  }

  isDue(nowMs: EpochMs): boolean {
    return nowMs >= this.#dueMs || this.#changes >= MAX_CHANGES;
  }

  /** The changes of one bucket shard must be in order. They may be added again. */
  add(changes: readonly BucketChange[], nowMs: EpochMs): void {
    if (changes.length === 0) return;
    if (this.isEmpty) this.#dueMs = nowMs + this.#everyMs;
    this.#fold.add(changes);
    this.#changes += changes.length;
  }

  /**
   * Rejects if a part could not be written: the part is kept and due at once. A part that DynamoDB permanently refuses
   * is reported and dropped.
   */
  async write(table: Table, onRefused: (refused: RefusedUsage) => void): Promise<void> {
    if (this.isEmpty) return;
    this.#dueMs = Number.NEGATIVE_INFINITY;
    const deadline = deadlineIn(WRITE_MS);
    const sums = this.#fold.sums();
    // The namespaces may have been purged since the changes were read.
    const statuses = await readStatuses(table, new Set(sums.map(({ ns }) => ns)), deadline);
    const { failed, refused } = await addSums(
      table,
      sums.filter(({ ns }) => isCountable(statuses.get(ns))),
      deadline,
    );
    for (const sum of sums) if (!failed.has(sum)) this.#fold.remove(sum);
    for (const one of refused) onRefused(one);
    for (const error of failed.values()) throw error;
    this.#changes = 0;
    this.#dueMs = Number.POSITIVE_INFINITY;
  }
}
