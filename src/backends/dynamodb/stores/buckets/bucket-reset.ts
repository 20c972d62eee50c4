import type { BucketStore } from '../../../../backend.js';
import { credit, effectiveTokens } from '../../../../core/bucket/bucket.js';
import { countOpen } from '../../../../core/bucket/portable.js';
import { add, type Int } from '../../../../core/int.js';
import { hasBalance } from '../../../../core/limit-kind.js';
import type { EpochMs } from '../../../../core/units.js';
import type { BucketCache } from '../../acquire/bucket-shards.js';
import { deadlineIn } from '../../../../machine-time.js';
import { buildReset } from '../../bucket/writes/write-reset.js';
import { createWriteId } from '../../bucket/writes/record-write.js';
import { renderAction } from '../../expressions/dynamodb-executor.js';
import type { ShardImage } from '../../table/items.js';
import { readBuckets } from '../../table/read-buckets.js';
import type { Table } from '../../client/requests.js';
import { writeChange } from '../change.js';
import { releaseHolders } from '../leases/release-holders.js';
import type { NamespaceGate } from '../../schema/namespace-gate.js';

/** The holders that the reset of one shard removes: one expression has at most 4 KB. */
const MAX_REMOVED = 400;

/**
 * Fills all shards of a bucket and writes the audit record in one transaction. Of a shard with more holders than that can
 * remove, some are released before it.
 */
export function createBucketReset(table: Table, buckets: BucketCache, gate: NamespaceGate): BucketStore['reset'] {
  return async (call, entityId, resource) => {
    await gate.check(call);
    const { namespaceId: ns, nowMs } = call;
    const deadline = deadlineIn(call.timeoutMs);
    const { executor } = buckets.of(ns, entityId, resource);
    const read = async () => (await readBuckets(table, ns, [{ entityId, resource }], deadline))[0] ?? [];
    const done = await writeChange<boolean>(table, ns, call, deadline, async () => {
      const found = await read();
      if (found.length === 0) return { result: false, write: null };
      const crowded = found.filter(({ holders }) => countOpen(holders) > MAX_REMOVED);
      await Promise.all(crowded.map(async (image) => releaseHolders(executor, image, MAX_REMOVED, nowMs, deadline)));
      const shards = crowded.length === 0 ? found : await read();
      const actions = shards.map((image) =>
        renderAction(table.name, buildReset(ns, image, nowMs, createWriteId(nowMs, table.random))),
      );
      const before = { resource, ...balances(found, nowMs, false) };
      const after = { resource, ...balances(shards, nowMs, true) };
      return { result: true, write: { action: 'bucket.reset', subject: entityId, before, after, actions } };
    });
    buckets.of(ns, entityId, resource).forget();
    return done;
  };
}

function balances(shards: readonly ShardImage[], nowMs: EpochMs, full: boolean) {
  const tokens = new Map<string, Int>();
  for (const { limits, baseMs } of shards) {
    for (const { limit, rate, tokensMilli } of limits) {
      if (!hasBalance(limit.kind)) continue;
      const tokensMilliNow = full
        ? rate.capacityMilli
        : effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs));
      tokens.set(limit.name, add(tokens.get(limit.name) ?? 0, tokensMilliNow));
    }
  }
  return {
    tokensMilli: Object.fromEntries([...tokens].map(([name, milli]) => [name, String(milli)])),
    holders: full ? 0 : shards.reduce((count, { holders }) => count + countOpen(holders), 0),
  };
}
