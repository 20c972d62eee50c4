import type { Call, LevelChange, LevelOperation, OperationResult } from '../../../backend.js';
import type { Amount } from '../../../core/bucket/decide.js';
import { type BucketShards, tuningOf } from './bucket-shards.js';
import type { Deadline } from '../../../machine-time.js';
import { addAmounts } from '../../../core/bucket/portable.js';
import { type ChangeEntry, type OperationEntry, refundsRates } from '../bucket/group/entries.js';
import { divideChange, divideOperation, readLocation } from '../bucket/grant-location.js';
import { RefundLost } from '../bucket/group/refund-lost.js';

interface Changing {
  readonly call: Call;
  readonly bucket: BucketShards;
  readonly level: LevelChange;
  readonly leaseId: string;
  readonly deadline: Deadline;
  /** As in `ChangeEntry`. */
  readonly untaken?: readonly Amount[];
}

/** Corrects what a lease took from one bucket, on the shards that it was taken from. True: a holder was lost. */
export async function changeLevel(changing: Changing, uncounts: boolean): Promise<boolean> {
  const { level } = changing;
  const locations = readLocation(level.place);
  const parts = divideChange(level, locations);
  let holderLost = false;
  for (const [at, { shard }] of locations.entries()) {
    const part = parts[at] ?? level;
    try {
      if (await changeShard(changing, shard, part, uncounts && at === 0)) holderLost = true;
    } catch (error) {
      // A caller that repeats the whole change would repeat the refunds that are written already.
      const isPartDone = parts.slice(0, at).some(refundsRates);
      throw isPartDone ? new RefundLost(error) : error;
    }
  }
  return holderLost;
}

async function changeShard(
  { call, bucket, leaseId, deadline, untaken = [] }: Changing,
  shard: number,
  level: LevelChange,
  uncounts: boolean,
): Promise<boolean> {
  const undone = untaken.length === 0 ? {} : { untaken };
  const entry: ChangeEntry = { kind: 'change', level, leaseId, nowMs: call.nowMs, uncounts, ...undone };
  // Not under the caller's signal: what was taken must be corrected even if the caller has aborted.
  const { result } = await bucket.submit(shard, entry, deadline, tuningOf(call));
  return result.holderLost;
}

interface Operating extends Omit<Changing, 'level'> {
  readonly level: LevelOperation;
}

/**
 * Makes an operation on the shards that the lease was taken from, one after the other: the first shard decides between
 * contradictory operations. A repeat finds the shards that are done by their holders.
 */
export async function operateLevel({ call, bucket, level, leaseId, deadline }: Operating): Promise<OperationResult> {
  const locations = readLocation(level.place);
  const parts = divideOperation(level, locations);
  let taken: readonly Amount[] | null = [];
  for (const [at, { shard }] of locations.entries()) {
    const entry: OperationEntry = { kind: 'operation', level: parts[at] ?? level, leaseId, nowMs: call.nowMs };
    // Not under the caller's signal: what was taken must be corrected even if the caller has aborted.
    const { result } = await bucket.submit(shard, entry, deadline, tuningOf(call));
    if (result.kind === 'ended') return { kind: 'closed', state: result.state };
    taken = taken === null || result.taken === null ? null : addAmounts(taken, result.taken);
  }
  return taken === null ? { kind: 'lost' } : { kind: 'done', taken };
}
