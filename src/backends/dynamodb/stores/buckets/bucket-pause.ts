import type { AdminCall, BucketStore, BucketToPause } from '../../../../backend.js';
import { auditOfPause } from '../../../../core/config/paused-records.js';
import { laterPause, type Pause, type PauseChange, planPause, samePause } from '../../../../core/pause.js';
import { type BucketCache, tuningOf } from '../../acquire/bucket-shards.js';
import { latestPause } from '../../bucket/shard-pauses.js';
import { type Deadline, deadlineIn } from '../../../../machine-time.js';
import { readItem, type Table } from '../../client/requests.js';
import type { Item } from '../../client/transport.js';
import { requireOwn } from '../../table/foreign-record.js';
import { ATTRIBUTE, decodePauseAttributes, encodePauseAttributes } from '../../table/items.js';
import { buildConfigKey } from '../../table/keys.js';
import { readBuckets } from '../../table/read-buckets.js';
import { encodeConfig } from '../../table/records.js';
import { type Action, putAction, updateAction } from '../actions.js';
import { type PlannedChange, writeChange } from '../change.js';
import { asSeen } from '../config.js';
import type { NamespaceGate } from '../../schema/namespace-gate.js';
import type { VersionGate } from '../../schema/version-gate.js';
import { pauseShards } from './pause-shards.js';
import type { RecentWrites } from '../recent-writes.js';

interface PauseContext {
  readonly gate: NamespaceGate;
  readonly versions: Pick<VersionGate, 'require'>;
  readonly ownWrites: RecentWrites;
}

/**
 * Pauses a bucket in two places. The config record of the entity and resource, which every process reads and caches,
 * has the pause for levels that an ask does not write and for per-call limits; its transaction has the audit record and
 * decides which of several pauses applies. Then every shard gets the same pause, which stops the next take of every
 * process. If a process stops in between, the pause applies, but later; a repetition completes it.
 */
export function createBucketPause(
  table: Table,
  buckets: BucketCache,
  { gate, versions, ownWrites }: PauseContext,
): BucketStore['pause'] {
  return async (call, bucket, wanted) => {
    await gate.check(call);
    // A client of version 1 would take without the condition on the pause.
    if (wanted !== null) await versions.require(call, 'a pause');
    const { namespaceId: ns, nowMs } = call;
    const { entityId, resource } = bucket;
    const deadline = deadlineIn(call.timeoutMs);
    const shards = buckets.of(ns, entityId, resource);
    const { bucketLifeFactor: lifeFactor } = tuningOf(call);
    const pausing = { executor: shards.executor, bucket, nowMs, deadline, lifeFactor };
    try {
      const [before = []] = await readBuckets(table, ns, [bucket], deadline);
      const change = await writeChange(table, ns, call, deadline, async () =>
        planRecord(table, call, bucket, wanted, deadline),
      );
      for (let pause = change.after; ;) {
        await pauseShards(pausing, pause);
        // Of two operators at once, each might write some shards last: the record decides, and all shards follow it.
        const current = decodePauseAttributes((await readRecord(table, ns, bucket, deadline)) ?? {}) ?? null;
        if (samePause(current, pause)) break;
        pause = current;
      }
      // A resume that stopped halfway has left the pause on the shards only.
      const left = latestPause(before);
      return left === null ? change : { ...change, before: laterPause(change.before, left) };
    } finally {
      // A change that failed may have been written in part.
      shards.forget();
      ownWrites.note(ns, nowMs);
    }
  };
}

async function readRecord(
  table: Table,
  ns: string,
  { entityId, resource }: BucketToPause,
  deadline: Deadline,
): Promise<Item | undefined> {
  const key = buildConfigKey(ns, { kind: 'entity', entityId, resource });
  return requireOwn(table, await readItem(table, key, deadline));
}

async function planRecord(
  table: Table,
  { namespaceId: ns }: AdminCall,
  bucket: BucketToPause,
  wanted: Pause | null,
  deadline: Deadline,
): Promise<PlannedChange<PauseChange>> {
  const item = await readRecord(table, ns, bucket, deadline);
  const result = planPause(item === undefined ? null : decodePauseAttributes(item), wanted);
  if (samePause(result.before, result.after)) return { result, write: null };
  const [action, subject, before, after] = auditOfPause('bucket', bucket.entityId, result, bucket.resource);
  return {
    result,
    write: { action, subject, before, after, actions: [recordAction(table, ns, bucket, item, result)] },
  };
}

/** A level without limits gets a record without limits, as a deleted level has. It has no number of the sequence. */
function recordAction(
  table: Table,
  ns: string,
  { entityId, resource }: BucketToPause,
  item: Item | undefined,
  { after }: PauseChange,
): Action {
  const level = { kind: 'entity', entityId, resource } as const;
  if (item === undefined) {
    const record = encodeConfig(ns, level, { limits: null, onUnavailable: null, v: 0 }, 0);
    return putAction(table, { ...record, ...encodePauseAttributes(after) }, asSeen(item));
  }
  const remove = after === null ? [ATTRIBUTE.pauseEnd, ATTRIBUTE.pauseReason] : [];
  return updateAction(table, buildConfigKey(ns, level), { set: encodePauseAttributes(after), remove }, asSeen(item));
}
