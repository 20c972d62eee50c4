import type { Holder } from '../core/bucket/decide.js';
import type { AdminCall, Awaitable, Call, Page, PageRequest } from './call.js';

/** The holder of a lease in one bucket, with the parts of all shards added up. */
export type LeaseRecord = Holder & {
  readonly id: string;
  readonly entityId: string;
  /** The resource's name, or `{resource}~{hash}` for a bucket of per-call limits. */
  readonly resource: string;
};

/** A bucket in which a lease may have a holder. `place`: where the store recorded the grant. */
export interface LeaseLevel {
  readonly entityId: string;
  readonly resource: string;
  readonly place?: unknown;
}

/** The holders in the buckets of a namespace. */
export interface LeaseStore {
  /** Leases that have not ended, in the order of their ids. `resource` is the plain name. */
  list(call: Call, entityId: string, resource: string, page: PageRequest): Awaitable<Page<LeaseRecord>>;
  /** Bucket by bucket, within a bucket in the order of the ids. */
  listOfEntity(call: Call, entityId: string, page: PageRequest): Awaitable<Page<LeaseRecord>>;
  /** All leases of the namespace, bucket by bucket, within a bucket in the order of the ids. */
  listAll(call: Call, page: PageRequest): Awaitable<Page<LeaseRecord>>;
  /** The holder in each of these buckets, also if the lease has ended. undefined: there is none, or a part is missing. */
  find(call: Call, leaseId: string, levels: readonly LeaseLevel[]): Awaitable<readonly (Holder | undefined)[]>;
  /** Ends a lease in one bucket as its expiry would, and audits it. False: the bucket has no such lease, or it has ended. */
  release(call: AdminCall, leaseId: string, level: LeaseLevel): Awaitable<boolean>;
}
