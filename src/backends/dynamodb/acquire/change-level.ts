import type {
  AdjustRequest,
  Call,
  LevelAnswer,
  LevelAsk,
  LevelOperation,
  LevelResult,
  OperateRequest,
  OperationResult,
} from '../../../backend.js';
import { type BucketCache, type BucketShards, tuningOf } from './bucket-shards.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import type { PortablePart } from '../../../core/bucket/portable.js';
import { joinParts } from '../../../core/bucket/portable-parts.js';
import type { OperationEntry } from '../bucket/group/entries.js';
import { readLocation } from '../bucket/grant-location.js';
import { divideOperation } from '../bucket/divide-operation.js';
import { undoOf, untakenOf } from '../bucket/group/revocation.js';
import { changeShards } from './change-shards.js';
import { operateAll } from './operate-shards.js';

interface Operating {
  readonly call: Call;
  readonly bucket: BucketShards;
  readonly leaseId: string;
  readonly deadline: Deadline;
  readonly level: LevelOperation;
}

/**
 * Makes an operation on the shards that the lease was taken from: on several shards in one transaction, or, where a holder is
 * missing, one after the other. A repeat finds the shards that are done by their holders.
 */
async function operateLevel({ call, bucket, level, leaseId, deadline }: Operating): Promise<OperationResult> {
  const locations = readLocation(level.place);
  const parts = divideOperation(level, locations);
  if (locations.length > 1) {
    const divided = locations.map(({ shard }, at) => ({ shard, level: parts[at] ?? level }));
    const result = await operateAll({ call, bucket, leaseId, parts: divided, deadline });
    if (result !== null) return result;
  }
  const found: PortablePart[] = [];
  for (const [at, { shard }] of locations.entries()) {
    const entry: OperationEntry = { kind: 'operation', level: parts[at] ?? level, leaseId, nowMs: call.nowMs };
    // Not under the caller's signal: what was taken must be corrected even if the caller has aborted.
    const { result } = await bucket.submit(shard, entry, deadline, tuningOf(call));
    if (result.kind === 'ended') return { kind: 'closed', state: result.state, part: result.part };
    if (result.part !== null) found.push(result.part);
  }
  return found.length < locations.length ? { kind: 'lost' } : { kind: 'done', part: found.reduce(joinParts) };
}

/** Makes an operation of a portable lease. Each level succeeds or fails separately. */
export async function operate(
  buckets: BucketCache,
  call: Call,
  { leaseId, levels }: OperateRequest,
): Promise<readonly OperationResult[]> {
  const deadline = deadlineIn(call.timeoutMs);
  return Promise.all(
    levels.map(async (level): Promise<OperationResult> => {
      const bucket = buckets.of(call.namespaceId, level.entityId, level.resource);
      try {
        return await operateLevel({ call, bucket, level, leaseId, deadline });
      } catch (error) {
        return { kind: 'failed', error };
      }
    }),
  );
}

/** Corrects what a lease took. Each level succeeds or fails separately. */
export async function adjust(
  buckets: BucketCache,
  call: Call,
  request: AdjustRequest,
): Promise<readonly LevelResult[]> {
  const deadline = deadlineIn(call.timeoutMs);
  return Promise.all(
    request.levels.map((level) => {
      const bucket = buckets.of(call.namespaceId, level.entityId, level.resource);
      return changeShards({ call, bucket, level, leaseId: request.leaseId, deadline });
    }),
  );
}

/** A level of an acquire whose grant is undone. */
interface Undoing extends Omit<Operating, 'level' | 'leaseId'> {
  readonly level: LevelAsk;
  readonly leaseId: string | null;
}

/** Undoes a grant on the shards that it was taken from. */
export async function undoLevel(
  { bucket, call, level, leaseId, deadline }: Undoing,
  answer: LevelAnswer,
): Promise<void> {
  const undo = {
    level: undoOf(level, answer),
    leaseId: leaseId ?? '',
    untaken: untakenOf(answer),
    uncounts: true,
  } as const;
  const result = await changeShards({ bucket, call, deadline, ...undo });
  if (result.kind === 'failed') throw result.error;
}
