import type { ConfigVersion } from '../config/config.js';
import type { EpochMs } from '../units.js';
import type { Amount } from './decide.js';

/** A bucket that is an object of this process. Only its store reads it. */
export type ResidentBucket = object;

/**
 * The optional part of the port for a store whose buckets are objects of this process. The limiter keeps the bucket that
 * it found last, and takes from it without the request and the answer of `consume`.
 */
export interface ResidentBuckets {
  /**
   * The `consume` of the backend that these buckets belong to. The limiter compares it with the `consume` that it calls: a
   * wrapper that replaces `consume` must see every acquire, so behind it the resident buckets are not used.
   */
  readonly consume: unknown;
  /** The stored bucket. `resource` is the key part. Creates nothing. */
  find(namespaceId: string, entityId: string, resource: string): ResidentBucket | undefined;
  /**
   * Takes what `consume` would take for one level that has no holder, or does nothing and returns false: the caller then
   * asks with `consume`, which decides. Takes only if the bucket is still stored in an active namespace, applies the rules
   * of this very version, is not paused, has each asked limit as a rate, and has room for all asks.
   */
  take(bucket: ResidentBucket, version: ConfigVersion, asks: readonly Amount[], nowMs: EpochMs): boolean;
}
