import type { AdminCall, LeaseLevel, LeaseStore, LevelChange } from '../../../../backend.js';
import { isClosed } from '../../../../core/bucket/portable.js';
import { describeRelease } from '../../../../core/bucket/released-lease.js';
import { type BucketCache, tuningOf } from '../../acquire/bucket-shards.js';
import type { ChangeEntry } from '../../bucket/group/entries.js';
import { type GroupPlan, planGroup } from '../../bucket/group/plan-group.js';
import { createWriteId } from '../../bucket/writes/record-write.js';
import { buildShardWrite } from '../../bucket/shard-write.js';
import { type Deadline, deadlineIn } from '../../../../machine-time.js';
import type { Table } from '../../client/requests.js';
import { renderAction } from '../../expressions/dynamodb-executor.js';
import type { NamespaceGate } from '../../schema/namespace-gate.js';
import type { ShardImage } from '../../table/items.js';
import { readBuckets } from '../../table/read-buckets.js';
import type { Action } from '../actions.js';
import { type PlannedChange, writeChange } from '../change.js';
import { leasesOf } from './leases-of-bucket.js';

interface Releasing {
  readonly table: Table;
  readonly buckets: BucketCache;
  readonly call: AdminCall;
  readonly leaseId: string;
  readonly level: LeaseLevel;
  readonly deadline: Deadline;
}

/** Ends a lease on all shards of a bucket, and writes the audit record, in one transaction. */
export function createLeaseRelease(table: Table, gate: NamespaceGate, buckets: BucketCache): LeaseStore['release'] {
  return async (call, leaseId, level) => {
    await gate.check(call);
    const { namespaceId: ns } = call;
    const deadline = deadlineIn(call.timeoutMs);
    const releasing = { table, buckets, call, leaseId, level, deadline };
    try {
      return await writeChange(table, ns, call, deadline, async () => planRelease(releasing));
    } finally {
      // A transaction returns no images, so the cached ones are stale.
      buckets.of(ns, level.entityId, level.resource).forget();
    }
  };
}

async function planRelease(releasing: Releasing): Promise<PlannedChange<boolean>> {
  const { table, call, leaseId, level, deadline } = releasing;
  const { namespaceId: ns, nowMs } = call;
  const [shards = []] = await readBuckets(table, ns, [level], deadline);
  const lease = leasesOf(level, shards).find(({ id }) => id === leaseId);
  if (lease === undefined) return { result: false, write: null };
  const actions: Action[] = [];
  for (const image of shards) {
    const plan = planOn(image, releasing);
    if (plan === null) continue;
    if (plan.kind !== 'write') {
      await rebase(releasing, image);
      return planRelease(releasing);
    }
    const ids = { own: createWriteId(nowMs, table.random), unanswered: [] };
    actions.push(renderAction(table.name, buildShardWrite(ns, image, plan.write, ids)));
  }
  return { result: true, write: { ...describeRelease(lease), actions } };
}

/** null: the shard has no open holder of the lease. */
function planOn(image: ShardImage, { call, leaseId, level }: Releasing): GroupPlan | null {
  const holder = image.holders.get(leaseId);
  if (holder === undefined || isClosed(holder)) return null;
  const { nowMs } = call;
  const { entityId, resource } = level;
  const rules = { entityId, resource, limits: image.limits.map(({ limit }) => limit), version: image.version };
  // As its expiry would: rates return only if the holder says so.
  const amounts = (holder.rates ?? []).map(({ name, milli }) => ({ name, fromMilli: milli, toMilli: 0 }));
  const change: LevelChange = { ...rules, amounts, holder: 'release', refundsOnExpiry: true };
  const entry: ChangeEntry = { kind: 'change', level: change, leaseId, nowMs, uncounts: false, onlyIfHeld: true };
  const lifeFactor = tuningOf(call).bucketLifeFactor;
  return planGroup(image, [entry], { nowMs, trust: 'exact', lifeFactor, withoutRefunds: false });
}

/** An ask for nothing, as a dry run, moves the base of a shard whose balance has become too large. */
async function rebase({ buckets, call, level, deadline }: Releasing, image: ShardImage): Promise<void> {
  const { namespaceId: ns, nowMs } = call;
  const { entityId, resource } = level;
  const rules = { entityId, resource, limits: image.limits.map(({ limit }) => limit), version: image.version };
  const ask = { ...rules, asks: [], holder: null };
  const entry = { kind: 'ask', level: ask, leaseId: null, nowMs, counts: false, dryRun: true } as const;
  await buckets.of(ns, entityId, resource).submit(image.key.shard, entry, deadline, tuningOf(call));
}
