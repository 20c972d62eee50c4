import type { AdminCall, LeaseRecord, LeaseStore, Page, PageRequest } from '../../backend.js';
import { isClosed } from '../../core/bucket/portable.js';
import { describeRelease } from '../../core/bucket/released-lease.js';
import { buildBucketKey, parseBucketKey, parsePlainResource } from '../../core/identifiers.js';
import { pageOf, parseTwoPartCursor, buildTwoPartCursor } from '../../core/paging.js';
import { endLease } from './bucket.js';
import { EVERYTHING } from './paging.js';
import type { OwnedBucket, Space, Storage } from './storage.js';
import { foldBeforeHourEnds } from './usage.js';

/** How many buckets a list reads at once: a namespace may have many that no lease holds. */
const BUCKETS_OF_A_READ = 200;

export function createLeaseStore(storage: Storage): LeaseStore {
  return {
    list: (call, entityId, resource, page) =>
      storage.read(call, (space) => {
        const owned = space.bucketsOfEntity(entityId, EVERYTHING).items;
        // Includes the buckets of per-call limits: their holders belong to the same entity and resource.
        const ofResource = owned.filter((candidate) => parsePlainResource(candidate.resource) === resource);
        return pageOf(ofResource.flatMap(leasesOf), page, ({ id }) => id);
      }),
    listOfEntity: (call, entityId, page) =>
      storage.read(call, (space) =>
        listLeases(page, {
          keyOf: ({ resource }) => resource,
          refOf: (resource) => ({ entityId, resource }),
          read: (ref) => readOwned(space, ref),
          next: (buckets) => space.bucketsOfEntity(entityId, buckets),
        }),
      ),
    listAll: (call, page) =>
      storage.read(call, (space) =>
        listLeases(page, {
          keyOf: ({ entityId, resource }) => buildBucketKey(entityId, resource),
          refOf: parseBucketKey,
          read: (ref) => readOwned(space, ref),
          next: (buckets) => space.buckets(buckets),
        }),
      ),
    find: (call, leaseId, levels) =>
      storage.read(call, (space) =>
        levels.map(({ entityId, resource }) => space.readBucket(entityId, resource)?.holders.get(leaseId)),
      ),
    release: (call, leaseId, { entityId, resource }) =>
      storage.write(call, (space) => release(space, call, leaseId, { entityId, resource })),
  };
}

type BucketOfLease = Pick<OwnedBucket, 'entityId' | 'resource'>;

/** The buckets that a list goes through. */
interface BucketOrder {
  /** Buckets are in the order of this key. */
  keyOf(ref: BucketOfLease): string;
  refOf(key: string): BucketOfLease;
  read(ref: BucketOfLease): readonly OwnedBucket[];
  next(page: PageRequest): Page<OwnedBucket>;
}

/** Leases of bucket after bucket, within a bucket in the order of their ids. */
function listLeases({ limit, after }: PageRequest, order: BucketOrder): Page<LeaseRecord> {
  const seen = after === null ? null : parseTwoPartCursor(after);
  // The last bucket of the previous page may have more leases.
  let buckets = seen === null ? [] : order.read(order.refOf(seen.first));
  let items = buckets.flatMap(leasesOf).filter(({ id }) => seen !== null && id > seen.second);
  let next: string | null = seen?.first ?? null;
  do {
    const page = order.next({ limit: BUCKETS_OF_A_READ, after: next });
    ({ items: buckets, next } = page);
    items = [...items, ...buckets.flatMap(leasesOf)];
  } while (next !== null && items.length <= limit);
  const taken = items.slice(0, limit);
  const last = items.length > limit ? taken.at(-1) : undefined;
  return { items: taken, next: last === undefined ? null : buildTwoPartCursor(order.keyOf(last), last.id) };
}

function readOwned(space: Space, { entityId, resource }: BucketOfLease): readonly OwnedBucket[] {
  const bucket = space.readBucket(entityId, resource);
  return bucket === undefined ? [] : [{ entityId, resource, bucket }];
}

/** In the order of their ids. */
function leasesOf({ entityId, resource, bucket }: OwnedBucket): readonly LeaseRecord[] {
  return [...bucket.holders]
    .filter(([, holder]) => !isClosed(holder))
    .map(([id, holder]) => ({ ...holder, id, entityId, resource }))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

function release(space: Space, call: AdminCall, leaseId: string, ref: BucketOfLease): boolean {
  const { nowMs, auditId, principal } = call;
  const bucket = space.readBucket(ref.entityId, ref.resource);
  const holder = bucket?.holders.get(leaseId);
  if (bucket === undefined || holder === undefined || isClosed(holder)) return false;
  foldBeforeHourEnds(space, ref, bucket, nowMs);
  endLease(bucket, leaseId, holder, nowMs);
  space.writeBucket(ref.entityId, ref.resource, bucket, nowMs);
  space.addAudit({ id: auditId, atMs: nowMs, principal, ...describeRelease({ ...holder, id: leaseId, ...ref }) });
  return true;
}
