import type { Int } from '../core/int.js';
import type { Limit } from '../core/limit.js';
import type { AdminCall, Awaitable, Call, Page, PageRequest } from './call.js';

/** The state of one bucket, with all shards added up. An unlimited limit has no balance: its `availableMilli` is 0. */
export interface BucketRecord {
  readonly entityId: string;
  /** The resource's name, or `{resource}~{hash}` for a bucket of per-call limits. */
  readonly resource: string;
  readonly limits: readonly {
    readonly limit: Limit;
    readonly availableMilli: Int;
    readonly consumedMilli: Int;
  }[];
  readonly holders: number;
  readonly acquires: number;
  readonly expired: number;
}

export interface BucketStore {
  read(call: Call, entityId: string, resource: string): Awaitable<BucketRecord | undefined>;
  listOfEntity(call: Call, entityId: string, page: PageRequest): Awaitable<Page<BucketRecord>>;
  /** `resource` is the plain name. The result includes buckets of per-call limits. */
  listOfResource(call: Call, resource: string, page: PageRequest): Awaitable<Page<BucketRecord>>;
  /** Fills the bucket and removes its holders; usage counters keep their values. False: there is no such bucket. */
  reset(call: AdminCall, entityId: string, resource: string): Awaitable<boolean>;
}
