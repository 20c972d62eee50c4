import { expiryOf } from '../../../../core/bucket/give-back.js';
import { countOpen, isClosed } from '../../../../core/bucket/portable.js';
import { BackendUnavailable } from '../../../../core/errors.js';
import type { EpochMs } from '../../../../core/units.js';
import { backOffMs, type Deadline, sleep, timeLeftMs } from '../../../../machine-time.js';
import type { Executor } from '../../bucket/executor.js';
import { LimitSums, MAX_HOLDERS } from '../../bucket/group/group-draft.js';
import { buildShardWrite, removeHolder, type ShardWrite } from '../../bucket/shard-write.js';
import { createWriteId } from '../../bucket/writes/record-write.js';
import type { ShardImage } from '../../table/items.js';

/**
 * Ends leases of a shard, `MAX_HOLDERS` with each write, until at most `most` are open. Their slots return, and the
 * rates that their holders carry, as after an expiry.
 */
export async function releaseHolders(
  executor: Executor,
  seen: ShardImage,
  most: number,
  nowMs: EpochMs,
  deadline: Deadline,
): Promise<void> {
  const known = seen.limits.map(({ limit }) => limit);
  let image: ShardImage | null = seen;
  for (let attempt = 0; image !== null && countOpen(image.holders) > most;) {
    const ids = { own: createWriteId(nowMs, executor.random), unanswered: [] };
    const write = buildShardWrite(executor.ns, image, planRelease(image, nowMs), ids);
    const answer = await executor.write(image.key, write, known, deadline);
    if (answer.kind === 'written') {
      image = answer.image;
      continue;
    }
    if (answer.kind === 'failed') throw answer.error;
    const waitMs = backOffMs(attempt++, executor.random);
    if (timeLeftMs(deadline) <= waitMs) {
      throw 'error' in answer
        ? answer.error
        : new BackendUnavailable('Resetting a bucket: other writers won every attempt', 'contended');
    }
    await sleep(waitMs);
    // The holders show what a write without an answer has removed.
    image = answer.kind === 'refused' ? answer.image : await executor.read(image.key, known, deadline);
  }
}

function planRelease(image: ShardImage, nowMs: EpochMs): ShardWrite {
  const open = [...image.holders].filter(([, holder]) => !isClosed(holder)).slice(0, MAX_HOLDERS);
  const sums = new LimitSums();
  for (const [, holder] of open) {
    const { slots, rates } = expiryOf(holder);
    sums.refund(image, 'concurrent', slots);
    sums.refund(image, 'rate', rates);
  }
  const holders = open.map(([leaseId, holder]) => removeHolder(leaseId, holder));
  return { limits: sums.changes(image, nowMs), acquires: 0, expired: 0, holders, adopts: null, ttlSec: undefined };
}
