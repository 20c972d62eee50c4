import type { EpochMs } from '../../../core/units.js';
import { backOffMs, deadlineIn, sleep } from '../../../machine-time.js';
import type { Failure } from '../client/failures.js';
import { createWriteId } from '../bucket/writes/record-write.js';
import type { ShardImage } from '../table/items.js';
import { readBuckets } from '../table/read-buckets.js';
import type { Table } from '../client/requests.js';
import { isWhole } from '../bucket/settle/settle-all.js';
import type { Item } from '../client/transport.js';
import { lastUsedMs, planStep, type RepairStep } from './plan.js';
import { addRepairs, NO_REPAIRS, type RepairCounts } from './report.js';
import { decodeStrictly } from './strict-shard.js';
import { changedBy, writeIdOn, writeStep } from './write-step.js';

export interface ListedBucket {
  readonly entityId: string;
  /** The key part: `{resource}~{hash}` for per-call limits. */
  readonly resource: string;
}

export interface Visitor {
  readonly table: Table;
  readonly ns: string;
  readonly nowMs: EpochMs;
  /** The timeout of each request. */
  readonly timeoutMs: number;
}

/** The result of a visit. Repairs that were made before it ended stay. */
export interface Visit {
  readonly repairs: RepairCounts;
  readonly end:
    | { readonly kind: 'done' }
    /** Other processes keep writing the bucket: the next sweep tries again. */
    | { readonly kind: 'busy' }
    | { readonly kind: 'failed'; readonly error: unknown };
}

/** Refused or unanswered steps before the bucket is left for the next sweep. */
const MAX_REFUSALS = 5;

/** Repairs one bucket step by step. Each step is planned from the store's latest state. `item`: its shard 0. */
export async function visitBucket(visitor: Visitor, ref: ListedBucket, item: Item): Promise<Visit> {
  const visit = new BucketVisit(visitor, ref);
  try {
    const isBusy = await visit.run(item);
    return { repairs: visit.repairs, end: { kind: isBusy ? 'busy' : 'done' } };
  } catch (error) {
    return { repairs: visit.repairs, end: { kind: 'failed', error } };
  }
}

class BucketVisit {
  readonly #visitor: Visitor;
  readonly #ref: ListedBucket;
  readonly #ownWrites = new Map<string, EpochMs>();
  #refusals = 0;
  repairs = NO_REPAIRS;

  constructor(visitor: Visitor, ref: ListedBucket) {
    this.#visitor = visitor;
    this.#ref = ref;
  }

  /** True if a step was left for the next sweep. */
  async run(item: Item): Promise<boolean> {
    const first = decodeStrictly(item);
    let shards = first.shardCount === 1 ? [first] : await this.#read();
    for (;;) {
      const step = planStep(shards, { nowMs: this.#visitor.nowMs, ownWrites: this.#ownWrites });
      const isRepaired = step === null && (shards.length === 0 || isWhole(shards));
      if (isRepaired) return false;
      if (this.#refusals > MAX_REFUSALS) {
        if (step === null) throw new RangeError('some of its shards are missing');
        return true;
      }
      shards = step === null ? await this.#readAgain() : await this.#take(shards, step);
    }
  }

  /** Returns the shards after the step. */
  async #take(shards: readonly ShardImage[], step: RepairStep): Promise<readonly ShardImage[]> {
    const { table, ns, nowMs, timeoutMs } = this.#visitor;
    const id = createWriteId(nowMs, table.random);
    const changed = changedBy(step, shards);
    for (const image of changed) {
      const own = writeIdOn(step, id, image);
      const usedMs = lastUsedMs(image, { ownWrites: this.#ownWrites });
      this.#ownWrites.set(own, Math.max(usedMs, this.#ownWrites.get(own) ?? 0));
    }
    const answer = await writeStep(table, ns, shards, step, id, deadlineIn(timeoutMs));
    if (!answer.ok) return this.#afterRefusal(answer.failure, step, id);
    this.repairs = addRepairs(this.repairs, repairsOf(step));
    const shown = 'Attributes' in answer.output ? answer.output.Attributes : undefined;
    if (shown === undefined) return this.#read();
    return shards.map((image) => (image === changed[0] ? decodeStrictly(shown) : image));
  }

  /** The plan is stale, or the answer was lost: read the shards again. */
  async #afterRefusal(failure: Failure, step: RepairStep, id: string): Promise<readonly ShardImage[]> {
    if (failure.kind === 'fatal') throw failure.error;
    const isContention = failure.kind === 'condition' || failure.kind === 'cancelled' || failure.kind === 'conflict';
    if (this.#refusals >= MAX_REFUSALS && !isContention) throw failure.error;
    const shards = await this.#readAgain();
    // The answer was lost, but the write landed.
    if (shards.some((image) => image.writeId === writeIdOn(step, id, image)))
      this.repairs = addRepairs(this.repairs, repairsOf(step));
    return shards;
  }

  async #readAgain(): Promise<readonly ShardImage[]> {
    this.#refusals += 1;
    // The first refusal means a stale read; from the second one, other processes are writing.
    if (this.#refusals > 1) await sleep(backOffMs(this.#refusals, this.#visitor.table.random));
    return this.#read();
  }

  async #read(): Promise<readonly ShardImage[]> {
    const { table, ns, timeoutMs } = this.#visitor;
    const [shards = []] = await readBuckets(table, ns, [this.#ref], deadlineIn(timeoutMs), decodeStrictly);
    return shards;
  }
}

function repairsOf(step: RepairStep): RepairCounts {
  switch (step.kind) {
    case 'reclaim':
      return { ...NO_REPAIRS, reclaimed: step.move.holders.length };
    case 'heal':
      return { ...NO_REPAIRS, healed: step.correction.limits.length };
    case 'heal-all':
      return { ...NO_REPAIRS, healed: step.limits };
    case 'settle':
      return NO_REPAIRS;
    case 'merge':
      return { ...NO_REPAIRS, merged: 1 };
    case 'unmark':
      return { ...NO_REPAIRS, unmarked: 1 };
  }
}
