import type { ChargeReceipt, LevelRef } from '../../../backend.js';
import type { Limit } from '../../../core/limit.js';
import type { EpochMs } from '../../../core/units.js';
import type { ShardImage } from '../table/items.js';
import type { ShardKey } from '../table/keys.js';
import type { Creation, RecordWrite, Update } from './writes/record-write.js';

/** What became of a write that was sent once. */
export type WriteAnswer =
  /** The write landed; this is the new record. */
  | { readonly kind: 'written'; readonly image: ShardImage }
  /** A condition failed and nothing was written; this is the record, null if there is none. */
  | { readonly kind: 'refused'; readonly image: ShardImage | null }
  | NotWritten;

/** What became of several writes of which all land or none. */
export type TransactionAnswer = { readonly kind: 'written' } | { readonly kind: 'refused' } | NotWritten;

type NotWritten =
  /** Nothing was written; a retry may succeed. `conflict`: a transaction was writing the record. */
  | {
      readonly kind: 'busy';
      readonly cause: 'conflict' | 'throttled';
      /** The store names this key as too busy. */
      readonly hotKey: boolean;
      readonly error: unknown;
    }
  /** The write may or may not have landed, or may still land. `unsent`: it was not sent. */
  | { readonly kind: 'no-answer'; readonly unsent: boolean; readonly error: unknown }
  /** Nothing was written, and a retry would not help. */
  | { readonly kind: 'failed'; readonly error: unknown };

/** The most writes of one `writeAll`. */
export const MAX_WRITES_AT_ONCE = 100;

/** Identifies a bucket. `limits`: rules that it may have, which decoding reuses. */
export type BucketRef = Pick<LevelRef, 'entityId' | 'resource'> & { readonly limits?: readonly Limit[] };

/**
 * A store with conditional writes on flat records: the seam between planning writes and sending them. Every method takes
 * the instant until which the store may answer, on the monotonic clock of the process.
 */
export interface Executor {
  readonly ns: string;
  /** For write ids, back-off and the choice of shards. */
  readonly random: () => number;
  /** Sends once. `known`: rules that the record may have, which decoding reuses. Never rejects. */
  write(key: ShardKey, write: Creation | Update, known: readonly Limit[], deadline: number): Promise<WriteAnswer>;
  writeAll(writes: readonly RecordWrite[], deadline: number): Promise<TransactionAnswer>;
  /** The last written record; null if there is none. */
  read(key: ShardKey, known: readonly Limit[], deadline: number): Promise<ShardImage | null>;
  /** The content of a receipt; null if there is none, or if it has ended. */
  readReceipt(receipt: ChargeReceipt, nowMs: EpochMs, deadline: number): Promise<string | null>;
  /** All shards of each bucket, in the order of the references. An empty list: the bucket does not exist. */
  readBuckets(refs: readonly BucketRef[], deadline: number): Promise<readonly (readonly ShardImage[])[]>;
}
