import type { Call, ExtendRequest } from '../../../backend.js';
import type { Holder } from '../../../core/bucket/decide.js';
import type { ClosedState } from '../../../core/bucket/portable.js';
import { BackendUnavailable } from '../../../core/errors.js';
import type { EpochMs } from '../../../core/units.js';
import { type BucketCache, type BucketShards, tuningOf } from './bucket-shards.js';
import { backOffMs, type Deadline, deadlineIn, sleep, timeLeftMs } from '../../../machine-time.js';
import type { Executor } from '../bucket/executor.js';
import { createWriteId, type Update } from '../bucket/writes/record-write.js';
import { buildShardWrite, replaceHolder, type ShardWrite } from '../bucket/shard-write.js';
import type { ShardImage } from '../table/items.js';
import { heldShards } from './change-shards.js';
import type { Shard } from './shard.js';

/** A shard on which a lease has a holder. */
interface HolderLocation {
  readonly bucket: BucketShards;
  readonly shard: number;
}

/** Moves the expiry of all holders of a lease, or of none. Several holders are written in one transaction. */
export async function extend(buckets: BucketCache, call: Call, request: ExtendRequest): Promise<boolean | ClosedState> {
  const deadline = deadlineIn(call.timeoutMs);
  const held = await Promise.all(request.levels.map(heldShards));
  const locations = request.levels.flatMap(({ entityId, resource }, at): HolderLocation[] => {
    const bucket = buckets.of(call.namespaceId, entityId, resource);
    return (held[at] ?? []).map((shard) => ({ bucket, shard }));
  });
  const [only] = locations;
  if (only === undefined) return false;
  if (locations.length === 1) return extendOne(call, only, request, deadline);
  return extendAll(call, locations, request, deadline);
}

async function extendOne(
  call: Call,
  location: HolderLocation,
  request: ExtendRequest,
  deadline: Deadline,
): Promise<boolean | ClosedState> {
  const { leaseId, expiresAtMs } = request;
  const entry = { kind: 'extend', leaseId, expiresAtMs, nowMs: call.nowMs } as const;
  const { result } = await location.bucket.submit(location.shard, entry, deadline, tuningOf(call));
  if (result.kind === 'ended') return result.state;
  return result.kind === 'extended' && result.found;
}

async function extendAll(
  call: Call,
  locations: readonly HolderLocation[],
  { leaseId, expiresAtMs }: ExtendRequest,
  deadline: Deadline,
): Promise<boolean | ClosedState> {
  for (let attempt = 0; ; attempt++) {
    const seen = await Promise.all(
      locations.map(async (location) => findHolder(location, leaseId, call.nowMs, deadline)),
    );
    const images = seen.flatMap(({ image }) => (image?.holders.has(leaseId) === true ? [image] : []));
    if (images.length < locations.length) return false;
    const [state = 'open'] = images.flatMap(({ holders }) => closedStateOf(holders.get(leaseId)));
    if (state !== 'open') return state;
    const { executor } = (locations[0] as HolderLocation).bucket;
    const writes = images.map((image) => extension(executor, call, image, leaseId, expiresAtMs));
    const answer = await executor.writeAll(writes, deadline);
    for (const { shard } of seen) shard.forget();
    if (answer.kind === 'written') return true;
    if (answer.kind === 'failed') throw answer.error;
    const waitMs = backOffMs(attempt, executor.random);
    if (timeLeftMs(deadline) <= waitMs) {
      throw 'error' in answer
        ? answer.error
        : new BackendUnavailable('Extending a lease: other writers won every attempt', 'contended');
    }
    await sleep(waitMs);
  }
}

function closedStateOf(holder: Holder | undefined): readonly ClosedState[] {
  const state = holder?.portable?.state ?? 'open';
  return state === 'open' ? [] : [state];
}

/** Finds the shard that should have the holder. A cached image without it may be stale, so the shard is read. */
async function findHolder(
  location: HolderLocation,
  leaseId: string,
  nowMs: EpochMs,
  deadline: Deadline,
): Promise<{ readonly shard: Shard; readonly image: ShardImage | null }> {
  const shard = location.bucket.shard(location.shard);
  if (shard.image?.holders.has(leaseId) === true) return { shard, image: shard.image };
  return location.bucket.read(location.shard, nowMs, deadline);
}

function extension(
  { ns, random }: Executor,
  { nowMs }: Call,
  image: ShardImage,
  leaseId: string,
  expiresAtMs: EpochMs,
): Update {
  const stored = image.holders.get(leaseId);
  const holders = stored === undefined ? [] : [replaceHolder(leaseId, stored, { ...stored, expiresAtMs })];
  const neededSec = Math.ceil(expiresAtMs / 1000);
  const ttlSec = image.ttlSec === null || image.ttlSec >= neededSec ? undefined : neededSec;
  const write: ShardWrite = { limits: [], acquires: 0, expired: 0, holders, adopts: null, ttlSec };
  return buildShardWrite(ns, image, write, { own: createWriteId(nowMs, random), unanswered: [] });
}
