import type { Call, LeaseLevel, LeaseRecord, LeaseStore, Page, PageRequest } from '../../../../backend.js';
import type { Holder } from '../../../../core/bucket/decide.js';
import { joinHolders } from '../../../../core/bucket/portable-parts.js';
import { buildBucketKey, parseBucketKey, parsePlainResource } from '../../../../core/identifiers.js';
import { buildTwoPartCursor, pageOf, parseTwoPartCursor } from '../../../../core/paging.js';
import type { BucketCache } from '../../acquire/bucket-shards.js';
import { readLocation } from '../../bucket/grant-location.js';
import { type Deadline, deadlineIn } from '../../../../machine-time.js';
import type { Table } from '../../client/requests.js';
import { readKey } from '../../table/attributes.js';
import type { ShardImage } from '../../table/items.js';
import { buildShardKey, index, parseShardKey } from '../../table/keys.js';
import { readBuckets } from '../../table/read-buckets.js';
import type { NamespaceGate } from '../../schema/namespace-gate.js';
import { createLeaseRelease } from './lease-release.js';
import { type BucketOfLease, leasesOf, plainHolder } from './leases-of-bucket.js';
import { behind, readRows, type RowRange } from '../rows.js';

const EXPECTED_ROWS = 1_000;
/** Buckets that a list reads at once: the limit of one BatchGetItem. */
const BUCKETS_OF_A_READ = 100;

export function createLeaseStore(table: Table, gate: NamespaceGate, buckets: BucketCache): LeaseStore {
  return {
    /** Of the bucket of the entity and resource, and of its buckets for per-call limits. */
    async list(call, entityId, resource, page) {
      await gate.check(call);
      const deadline = deadlineIn(call.timeoutMs);
      const { namespaceId: ns } = call;
      // The plain bucket is read by its key, because the index is eventually consistent.
      const resources = new Set([resource]);
      const partitions = [index.bucketsOfEntity(ns, entityId)];
      const range = { index: 'GSI3', partitions, ...behind(`BUCKET#${resource}~`, null) } as const;
      for await (const row of readRows(table, range, EXPECTED_ROWS, () => deadline)) {
        const key = parseShardKey(readKey(row).PK);
        if (key !== null && parsePlainResource(key.resource) === resource) resources.add(key.resource);
      }
      const refs = [...resources].map((keyPart) => ({ entityId, resource: keyPart }));
      const shards = await readBuckets(table, ns, refs, deadline);
      const leases = refs.flatMap((ref, at) => leasesOf(ref, shards[at] ?? []));
      return pageOf(leases, page, ({ id }) => id);
    },
    /** By the index of an entity's buckets. */
    async listOfEntity(call, entityId, page) {
      await gate.check(call);
      const after = page.after === null ? null : parseTwoPartCursor(page.after);
      const from = after === null ? 'BUCKET#' : `BUCKET#${after.first}#`;
      const partitions = [index.bucketsOfEntity(call.namespaceId, entityId)];
      const range = { index: 'GSI3', partitions, from, to: 'BUCKET#\u007f' } as const;
      return listBuckets(table, call, range, page, ({ resource }) => resource);
    },
    /** By the sweep list, which has every shard with a holder. */
    async listAll(call, page) {
      await gate.check(call);
      const { namespaceId: ns } = call;
      const after = page.after === null ? null : parseBucketKey(parseTwoPartCursor(page.after).first);
      const from = after === null ? ' ' : buildShardKey(ns, { ...after, shard: 0 }).PK.slice(0, -1);
      const range = { index: 'GSI1', partitions: [index.sweep(ns)], from, to: '\u007f' } as const;
      return listBuckets(table, call, range, page, ({ entityId, resource }) => buildBucketKey(entityId, resource));
    },
    async find(call, leaseId, levels) {
      await gate.check(call);
      const shards = await readBuckets(table, call.namespaceId, levels, deadlineIn(call.timeoutMs));
      return levels.map((level, at) => holderOf(level, shards[at] ?? [], leaseId));
    },
    release: createLeaseRelease(table, gate, buckets),
  };
}

/** Leases of bucket after bucket, from the bucket of the cursor on. */
async function listBuckets(
  table: Table,
  call: Call,
  range: RowRange,
  { limit, after }: PageRequest,
  keyOf: (ref: BucketOfLease) => string,
): Promise<Page<LeaseRecord>> {
  const deadline = deadlineIn(call.timeoutMs);
  const seen = after === null ? null : parseTwoPartCursor(after);
  const isNew = (lease: LeaseRecord): boolean => seen === null || keyOf(lease) !== seen.first || lease.id > seen.second;
  const found: LeaseRecord[] = [];
  for await (const refs of bucketsIn(table, range, deadline)) {
    const shards = await readBuckets(table, call.namespaceId, refs, deadline, 'own-only');
    for (const [at, ref] of refs.entries()) found.push(...leasesOf(ref, shards[at] ?? []).filter(isNew));
    if (found.length > limit) break;
  }
  const items = found.slice(0, limit);
  const last = found.length > limit ? items.at(-1) : undefined;
  return { items, next: last === undefined ? null : buildTwoPartCursor(keyOf(last), last.id) };
}

/** The buckets of a range, some at a time. The shards of one bucket are adjacent. */
async function* bucketsIn(table: Table, range: RowRange, deadline: Deadline): AsyncGenerator<readonly BucketOfLease[]> {
  let refs: BucketOfLease[] = [];
  for await (const row of readRows(table, range, BUCKETS_OF_A_READ, () => deadline)) {
    const key = parseShardKey(readKey(row).PK);
    const last = refs.at(-1);
    if (key === null || (last?.entityId === key.entityId && last.resource === key.resource)) continue;
    if (refs.length === BUCKETS_OF_A_READ) {
      yield refs;
      refs = [];
    }
    refs.push({ entityId: key.entityId, resource: key.resource });
  }
  if (refs.length > 0) yield refs;
}

/** A holder stays on its shard: shards with holders are not merged, and a split leaves them where they are. */
function holderOf({ place }: LeaseLevel, shards: readonly ShardImage[], leaseId: string): Holder | undefined {
  const parts = readLocation(place).map(({ shard }) =>
    shards.find(({ key }) => key.shard === shard)?.holders.get(leaseId),
  );
  const whole = joinHolders(parts);
  return whole && plainHolder(whole);
}
