import type { Call, LevelChange, LevelResult } from '../../../backend.js';
import type { Amount } from '../../../core/bucket/decide.js';
import type { Deadline } from '../../../machine-time.js';
import {
  changesNothing,
  divideChange,
  isHeld,
  type ShardShare,
  sharesOf,
  withPart,
  withPartDone,
  withRefundsDone,
} from '../bucket/grant-location.js';
import type { ChangeEntry } from '../bucket/group/entries.js';
import { RefundLost } from '../bucket/group/refund-lost.js';
import { type BucketShards, tuningOf } from './bucket-shards.js';

export interface Changing {
  readonly call: Call;
  readonly bucket: BucketShards;
  readonly level: LevelChange;
  readonly leaseId: string;
  readonly deadline: Deadline;
  /** The grant is undone, so it must not count as one. */
  readonly uncounts?: true;
  /** As in `ChangeEntry`. */
  readonly untaken?: readonly Amount[];
}

/** What `LevelChange.progress` contains. */
interface Progress {
  shares: readonly ShardShare[];
  /** Ends after the change that was begun last. The limiter may have stopped waiting for it. null: none was begun. */
  latest: Promise<unknown> | null;
}

type Place = Pick<LevelChange, 'place' | 'progress'>;

/** The shards that may have a holder of the lease, once no change of it is under way. */
export async function heldShards({ place, progress }: Place): Promise<readonly number[]> {
  const known = progress?.state as Progress | undefined;
  await known?.latest;
  const shares = known?.shares ?? sharesOf(place);
  return shares.filter(isHeld).map(({ shard }) => shard);
}

/**
 * Changes what a lease has taken from one bucket. A change that is still under way, because the limiter's deadline ended the
 * call before its answer came, comes first: what it does is where this one begins. Never rejects.
 */
export function changeShards(changing: Changing): Promise<LevelResult> {
  const { place, progress: slot = {} } = changing.level;
  const progress = (slot.state ??= { shares: sharesOf(place), latest: null } satisfies Progress) as Progress;
  const { latest } = progress;
  const result =
    latest === null
      ? changeEach(changing, progress, false)
      : latest.then(async () => changeEach(changing, progress, true));
  progress.latest = result;
  return result;
}

/** Changes the shards one after the other. */
async function changeEach(changing: Changing, progress: Progress, isContinued: boolean): Promise<LevelResult> {
  const { level } = changing;
  const parts = divideChange(level, progress.shares);
  const shares = progress.shares.map((share, at) => withPart(share, parts[at] ?? level));
  progress.shares = shares;
  let holderLost = shares.some(({ holder }) => holder === 'lost');
  for (const [at, part] of parts.entries()) {
    const share = shares[at] as ShardShare;
    // A grant that took nothing, of limits that it lacks, of 0, or of short shadows, was still counted.
    const uncounts = changing.uncounts === true && at === 0;
    if (changesNothing(part) && !uncounts) continue;
    try {
      const isLost = await changeShard(changing, share.shard, part, uncounts);
      shares[at] = withPartDone(share, part, isLost);
      holderLost ||= isLost;
    } catch (error) {
      const mayHaveRefunded = error instanceof RefundLost;
      if (mayHaveRefunded) shares[at] = withRefundsDone(share, part);
      return { kind: 'failed', error, mayHaveRefunded, isUnfinished: isContinued || parts.length > 1 };
    }
  }
  const holds = level.holder !== 'none' && shares.some(isHeld);
  return { kind: 'done', holderLost, holds, isUnfinished: holds && !shares.every(isHeld) };
}

/** Whether the shard had no holder of the lease, although it should have one. */
async function changeShard(changing: Changing, shard: number, level: LevelChange, uncounts: boolean): Promise<boolean> {
  const { call, bucket, leaseId, deadline, untaken = [] } = changing;
  const undone = untaken.length === 0 ? {} : { untaken };
  const entry: ChangeEntry = { kind: 'change', level, leaseId, nowMs: call.nowMs, uncounts, ...undone };
  // Not under the caller's signal: what was taken must be corrected even if the caller has aborted.
  const { result } = await bucket.submit(shard, entry, deadline, tuningOf(call));
  return result.holderLost;
}
