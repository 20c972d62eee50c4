import { InfrastructureError } from '../../../../core/errors.js';

/** A part of a stream, in which changes stand in their order. */
export interface StreamShard {
  readonly id: string;
  /** Whose changes come before those of this one; it may be gone. */
  readonly parentId: string | null;
}

export interface StreamPage {
  /** As `decodeChange` reads them. */
  readonly records: readonly unknown[];
  /** Where the next page begins; null: the shard is closed, and this was its last. */
  readonly next: string | null;
}

/** What can be asked of a table's stream. */
export interface StreamApi {
  readonly label: string;
  /** Every shard that still has records, or will have. */
  listShards(): Promise<readonly StreamShard[]>;
  /** Where to read on after a record, or from the oldest one. Rejects with `infrastructure.stream-trimmed` if that is gone. */
  locate(shardId: string, afterSequence: string | null): Promise<string>;
  /** null: the place has expired, and must be located again. Rejects in the same way if what follows is gone. */
  read(place: string): Promise<StreamPage | null>;
  close(): void;
}

export function streamTrimmed(table: string, cause?: unknown): InfrastructureError {
  return new InfrastructureError(
    'infrastructure.stream-trimmed',
    `The stream of table ${table} was not read for a day or more: DynamoDB has removed changes that are not counted`,
    { cause },
  );
}
