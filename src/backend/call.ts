import type { EpochMs } from '../core/units.js';

/** A value, or a promise of one. */
export type Awaitable<T> = T | Promise<T>;

/** The fields that every call has. */
export interface Call {
  readonly namespaceId: string;
  readonly nowMs: EpochMs;
  /** How long the store may take. The limiter ignores an answer that comes later. */
  readonly timeoutMs: number;
  /** Aborts when the caller stops waiting. The store may drop requests that it has not sent yet. */
  readonly signal?: AbortSignal | undefined;
  readonly tuning?: Tuning;
}

/** The limiter options that a store over a network needs. */
export interface Tuning {
  /** How many writes may lose against other writers before an ask is denied as `contended`. */
  readonly maxRetries: number;
  /** How long a cached balance may be used to deny. */
  readonly denyCacheMs: number;
  /** An idle bucket is kept for this many times its longest fill time. */
  readonly bucketLifeFactor: number;
  /** How long configuration, entities and namespaces may be cached. */
  readonly configCacheMs: number;
  /** Called with failures that no caller awaits. */
  readonly onError?: (error: unknown, where: string) => void;
  /** Called when the store has split a shard of a bucket, or merged two, for this process. Left out if there is no listener. */
  readonly onReshard?: (change: Reshard) => void;
}

/** A change of the number of shards of one bucket. */
export interface Reshard {
  readonly kind: 'split' | 'merge';
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
}

/** A call that makes an administrative change. The same write adds one audit record. */
export interface AdminCall extends Call {
  /** Who makes the change; null if the limiter has no `principal`. */
  readonly principal: string | null;
  /** The id of the audit record that this call adds. Ids sort by time. */
  readonly auditId: string;
  /** Written in the same write as the change, and also when the change turns out to change nothing. */
  readonly managed?: ManagedMark | null;
}

/** What a declarative file owns of one object. */
export interface ManagedMark {
  /** The key of the object, built by `core/manifest/managed.ts`. */
  readonly key: string;
  /** Plain data: the fields that were applied last. null: the file no longer owns any field of the object. */
  readonly value: unknown;
  /**
   * The value that the caller saw, null for none. If the stored value differs, the call is refused as `contended` and
   * writes nothing. Left out: the stored value is not compared.
   */
  readonly seen?: unknown;
}

/** Which page of a list to read. */
export interface PageRequest {
  readonly limit: number;
  /** The `next` of the previous page; null for the first page. */
  readonly after: string | null;
}

/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** null: this was the last page. */
  readonly next: string | null;
}

/** How many records a `readMany` may name. */
export const MAX_READ = 100;
