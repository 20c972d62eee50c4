import type { BucketToPause } from '../../../backend.js';
import { BackendUnavailable } from '../../../core/errors.js';
import type { Pause } from '../../../core/pause.js';
import type { EpochMs } from '../../../core/units.js';
import type { Executor, WriteAnswer } from '../bucket/executor.js';
import { newBucketImage } from '../bucket/new-bucket.js';
import { buildCreate } from '../bucket/writes/create.js';
import { createWriteId } from '../bucket/writes/record-write.js';
import { buildPause } from '../bucket/writes/write-pause.js';
import { backOffMs, type Deadline, pause as sleep, timeLeftMs } from '../../../machine-time.js';
import type { ShardImage } from '../table/items.js';

/**
 * Writes the pause (null: its end) to every shard. A shard that is split off later gets the pause of the shard that it comes
 * from, which has a smaller number. So the shards are written in rounds, each after the shards that its own come from, until
 * no answer shows a larger count.
 */
export async function pauseShards(
  executor: Executor,
  bucket: BucketToPause,
  pause: Pause | null,
  nowMs: EpochMs,
  deadline: Deadline,
): Promise<void> {
  const write = async (shard: number): Promise<number> =>
    (await pauseShard(executor, bucket, shard, pause, nowMs, deadline))?.shardCount ?? 0;
  let count = await write(0);
  for (let first = 1; first < count; first *= 2) {
    const round = Array.from({ length: first }, (_, at) => first + at);
    count = Math.max(count, ...(await Promise.all(round.map(write))));
  }
}

/** null: the shard does not exist. Shard 0 is created, to be paused. */
async function pauseShard(
  executor: Executor,
  bucket: BucketToPause,
  shard: number,
  pause: Pause | null,
  nowMs: EpochMs,
  deadline: Deadline,
): Promise<ShardImage | null> {
  const { entityId, resource, limits } = bucket;
  const key = { entityId, resource, shard };
  let isMissing = false;
  for (let attempt = 0; ; attempt++) {
    const writeId = createWriteId(nowMs, executor.random);
    const creates = isMissing && shard === 0 && pause !== null;
    if (isMissing && !creates) return null;
    const write = creates
      ? buildCreate(executor.ns, { ...pausedImage(bucket, pause, nowMs), writeId, writeUnits: 1 })
      : buildPause(executor.ns, key, pause, writeId);
    const answer = await executor.write(key, write, limits, deadline);
    if (answer.kind === 'written') return answer.image;
    // The write may be sent again whatever became of it.
    if (answer.kind === 'refused') isMissing = answer.image === null;
    else await backOff(executor, attempt, answer, deadline);
  }
}

/** Without a ttl, also where the limits are not those of exactly this entity and resource. */
function pausedImage(bucket: BucketToPause, pause: Pause, nowMs: EpochMs): ShardImage {
  const { entityId, resource } = bucket;
  return { ...newBucketImage({ entityId, resource, shard: 0 }, { ...bucket, lasting: true }, nowMs), pause };
}

async function backOff(
  executor: Executor,
  attempt: number,
  answer: Exclude<WriteAnswer, { readonly kind: 'written' | 'refused' }>,
  deadline: Deadline,
): Promise<void> {
  if (answer.kind === 'failed') throw answer.error;
  const waitMs = backOffMs(attempt, executor.random);
  if (timeLeftMs(deadline) <= waitMs) {
    throw answer.error ?? new BackendUnavailable('Pausing a bucket: no time left', 'timeout');
  }
  await sleep(waitMs);
}
