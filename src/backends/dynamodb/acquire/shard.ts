import type { Tuning } from '../../../backend.js';
import type { EpochMs } from '../../../core/units.js';
import type { Doubt, Entry, EntryResult } from '../bucket/entries.js';
import type { Target } from '../bucket/writes/shard-update.js';
import type { Deadline } from '../client/deadline.js';
import type { Table } from '../client/requests.js';
import type { ShardKey } from '../table/keys.js';
import type { ImageMemory } from './image-memory.js';

/** One entry of a shard's queue, with the callbacks of its caller. */
export interface Waiting {
  readonly entry: Entry;
  readonly deadline: Deadline;
  readonly tuning: Tuning;
  readonly resolve: (result: EntryResult) => void;
  readonly reject: (error: unknown) => void;
  /** Set once a write that would have granted an ask with a holder got no answer. */
  doubt?: Doubt | undefined;
}

/** One shard of one bucket, with its cached image. */
export interface Shard {
  readonly table: Table;
  readonly target: Target;
  readonly key: ShardKey;
  readonly memory: ImageMemory;
  /** Called when DynamoDB reports that this key's range is throttled. */
  readonly markHot: (nowMs: EpochMs) => void;
}
