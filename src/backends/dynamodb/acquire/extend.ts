import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { Call, ExtendRequest } from '../../../backend.js';
import { BackendUnavailable } from '../../../core/errors.js';
import type { EpochMs } from '../../../core/units.js';
import type { BucketShards } from './bucket-shards.js';
import type { BucketCache } from './bucket-cache.js';
import { backOffMs, type Deadline, deadlineIn, pause, timeLeftMs } from '../client/deadline.js';
import { keyOf } from '../bucket/writes/shard-update.js';
import { shardWriteExpression } from '../bucket/writes/write-shard.js';
import { errorOf } from '../client/failures.js';
import { createWriteId } from '../bucket/write-id.js';
import type { ShardImage } from '../table/items.js';
import { type ShardWrite, replaceHolder } from '../bucket/shard-write.js';
import { readLocation } from '../bucket/grant-location.js';
import { send, type Table } from '../client/requests.js';
import type { ShardLine } from './shard-line.js';
import { tuningOf } from '../bucket/tuning.js';

/** A shard on which a lease has a holder. */
interface HolderLocation {
  readonly bucket: BucketShards;
  readonly shard: number;
}

/** Moves the expiry of all holders of a lease, or of none. Several holders are written in one transaction. */
export async function extend(table: Table, buckets: BucketCache, call: Call, request: ExtendRequest): Promise<boolean> {
  const deadline = deadlineIn(call.timeoutMs);
  const locations = request.levels.flatMap(({ entityId, resource, place }): HolderLocation[] => {
    const bucket = buckets.of(call.namespaceId, entityId, resource);
    return readLocation(place).map(({ shard }) => ({ bucket, shard }));
  });
  const [only] = locations;
  if (locations.length === 1 && only !== undefined) return extendOne(call, only, request, deadline);
  return extendAll(table, call, locations, request, deadline);
}

async function extendOne(
  call: Call,
  location: HolderLocation,
  request: ExtendRequest,
  deadline: Deadline,
): Promise<boolean> {
  const { leaseId, expiresAtMs } = request;
  const entry = { kind: 'extend', leaseId, expiresAtMs, nowMs: call.nowMs } as const;
  for (;;) {
    const line = location.bucket.line(location.shard);
    const result = await line.submit(entry, deadline, tuningOf(call));
    if (result.kind === 'extended') return result.found;
    // Shard 0 is missing only if there is no bucket at all.
    if (line.shard === 0) return false;
    location.bucket.noteMissing(line.shard);
  }
}

async function extendAll(
  table: Table,
  call: Call,
  locations: readonly HolderLocation[],
  { leaseId, expiresAtMs }: ExtendRequest,
  deadline: Deadline,
): Promise<boolean> {
  for (let attempt = 0; ; attempt++) {
    const seen = await Promise.all(
      locations.map(async (location) => findHolder(location, leaseId, call.nowMs, deadline)),
    );
    const images = seen.flatMap(({ image }) => (image?.holders.has(leaseId) === true ? [image] : []));
    if (images.length < locations.length) return false;
    const TransactItems = images.map((image) => actionOf(table, call, image, leaseId, expiresAtMs));
    const answer = await send(table, 'TransactWriteItems', { TransactItems }, deadline);
    for (const { line } of seen) line.forget();
    if (answer.ok) return true;
    const { failure } = answer;
    if (failure.kind === 'fatal' || failure.kind === 'unreached') throw errorOf(failure, 'TransactWriteItems');
    const waitMs = backOffMs(attempt, table.random);
    if (timeLeftMs(deadline) <= waitMs) {
      throw 'error' in failure
        ? failure.error
        : new BackendUnavailable('Extending a lease: other writers won every attempt', 'contended');
    }
    await pause(waitMs);
  }
}

/** Finds the shard that should have the holder. A cached image without it may be stale, so the shard is read. */
async function findHolder(
  location: HolderLocation,
  leaseId: string,
  nowMs: EpochMs,
  deadline: Deadline,
): Promise<{ readonly line: ShardLine; readonly image: ShardImage | null }> {
  for (;;) {
    const line = location.bucket.line(location.shard);
    if (line.image?.holders.has(leaseId) === true) return { line, image: line.image };
    const image = await line.look(nowMs, deadline);
    if (image !== null || line.shard === 0) return { line, image };
    location.bucket.noteMissing(line.shard);
  }
}

function actionOf(
  table: Table,
  { namespaceId: ns, nowMs }: Call,
  image: ShardImage,
  leaseId: string,
  expiresAtMs: EpochMs,
): TransactWriteItem {
  const stored = image.holders.get(leaseId);
  const holders = stored === undefined ? [] : [replaceHolder(leaseId, stored, { ...stored, expiresAtMs })];
  const neededSec = Math.ceil(expiresAtMs / 1000);
  const ttlSec = image.ttlSec === null || image.ttlSec >= neededSec ? undefined : neededSec;
  const write: ShardWrite = { limits: [], acquires: 0, expired: 0, holders, adopts: null, ttlSec };
  const ids = { own: createWriteId(nowMs, table.random), unanswered: [] };
  const expression = shardWriteExpression(ns, image, write, ids);
  return { Update: { TableName: table.name, Key: keyOf(ns, image.key), ...expression.buildUpdate() } };
}
