import type { Int } from '../core/int.js';
import type { Limit } from '../core/limit.js';
import type { ConfigVersion } from '../core/config/config.js';
import type { Pause, PauseChange } from '../core/pause.js';
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
  /** Left out if there is none. It may have ended. */
  readonly pause?: Pause;
}

/** A bucket with the limits that it gets if it does not exist. No limits: the first ask brings them. */
export interface BucketToPause {
  readonly entityId: string;
  readonly resource: string;
  readonly limits: readonly Limit[];
  readonly version: ConfigVersion;
}

/** The buckets of a namespace, for reading and administration. */
export interface BucketStore {
  /** One bucket; undefined if it does not exist. */
  read(call: Call, entityId: string, resource: string): Awaitable<BucketRecord | undefined>;
  /** The buckets of one entity. */
  listOfEntity(call: Call, entityId: string, page: PageRequest): Awaitable<Page<BucketRecord>>;
  /** `resource` is the plain name. The result includes buckets of per-call limits. */
  listOfResource(call: Call, resource: string, page: PageRequest): Awaitable<Page<BucketRecord>>;
  /** Fills the bucket and removes its holders; usage counters keep their values. False: there is no such bucket. */
  reset(call: AdminCall, entityId: string, resource: string): Awaitable<boolean>;
  /**
   * Pauses the bucket until the later of the stored and the given end, or ends its pause (null). A missing bucket is created
   * full, to be paused. `config.readFor` returns the pause too. If it rejects, the change may be made in part: repeat it.
   */
  pause(call: AdminCall, bucket: BucketToPause, pause: Pause | null): Awaitable<PauseChange>;
}
