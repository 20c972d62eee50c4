import type { Call, LevelChange } from '../../../backend.js';
import type { Amount } from '../../../core/bucket/decide.js';
import { type BucketShards, tuningOf } from './bucket-shards.js';
import type { Deadline } from '../client/deadline.js';
import { type ChangeEntry, refundsRates } from '../bucket/group/entries.js';
import { divideChange, readLocation } from '../bucket/grant-location.js';
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
