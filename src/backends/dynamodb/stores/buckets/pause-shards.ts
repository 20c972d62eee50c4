import type { BucketToPause } from '../../../../backend.js';
import { BackendUnavailable } from '../../../../core/errors.js';
import { isForever, type Pause } from '../../../../core/pause.js';
import type { EpochMs } from '../../../../core/units.js';
import type { Executor, WriteAnswer } from '../../bucket/executor.js';
import { newBucketImage } from '../../bucket/new-bucket.js';
import { expirySec } from '../../bucket/shard-write.js';
import { buildCreate } from '../../bucket/writes/create.js';
import { createWriteId } from '../../bucket/writes/record-write.js';
import { buildPause } from '../../bucket/writes/write-pause.js';
import { backOffMs, type Deadline, sleep, timeLeftMs } from '../../../../machine-time.js';
import type { ShardImage } from '../../table/items.js';

interface Pausing {
  readonly executor: Executor;
  readonly bucket: BucketToPause;
  readonly nowMs: EpochMs;
  readonly deadline: Deadline;
  readonly lifeFactor: number;
}

/**
 * Writes the pause (null: its end) to every shard. A shard that is split off later gets the pause of the shard that it comes
 * from, which has a smaller number. So the shards are written in rounds, each after the shards that its own come from, until
 * no answer shows a larger count.
 */
export async function pauseShards(pausing: Pausing, pause: Pause | null): Promise<void> {
  const write = async (shard: number): Promise<number> => (await pauseShard(pausing, shard, pause))?.shardCount ?? 0;
  let count = await write(0);
  for (let first = 1; first < count; first *= 2) {
    const round = Array.from({ length: first }, (_, at) => first + at);
    count = Math.max(count, ...(await Promise.all(round.map(write))));
  }
}

/** null: the shard does not exist. Shard 0 is created, to be paused. */
async function pauseShard(pausing: Pausing, shard: number, pause: Pause | null): Promise<ShardImage | null> {
  const { executor, bucket, nowMs, deadline } = pausing;
  const { entityId, resource, limits } = bucket;
  const key = { entityId, resource, shard };
  let isMissing = false;
  for (let attempt = 0; ; attempt++) {
    const writeId = createWriteId(nowMs, executor.random);
    const creates = isMissing && shard === 0 && pause !== null;
    if (isMissing && !creates) return null;
    const write = creates
      ? buildCreate(executor.ns, { ...pausedImage(pausing, pause), writeId, writeUnits: 1 })
      : buildPause(executor.ns, key, pause, writeId);
    const answer = await executor.write(key, write, limits, deadline);
    if (answer.kind === 'written') return answer.image;
    // The write may be sent again whatever became of it.
    if (answer.kind === 'refused') isMissing = answer.image === null;
    else await backOff(executor, attempt, answer, deadline);
  }
}

/** Its ttl comes after the end of the pause. Without it, a bucket that is not used after its pause would never be deleted. */
function pausedImage({ bucket, nowMs, lifeFactor }: Pausing, pause: Pause): ShardImage {
  const { entityId, resource } = bucket;
  const image = newBucketImage({ entityId, resource, shard: 0 }, bucket, nowMs);
  return { ...image, pause, ttlSec: isForever(pause) ? null : expirySec(image, pause.endMs, lifeFactor) };
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
