import { InfrastructureError } from '../../../../core/errors.js';

/** A part of a stream with ordered changes. */
export interface StreamShard {
  readonly id: string;
  /** The shard whose changes come before this one's; it may have been removed. */
  readonly parentId: string | null;
}

export interface StreamPage {
  /** In the format of `decodeChange`. */
  readonly records: readonly unknown[];
  /** The iterator of the next page; null: the shard is closed, and this was its last page. */
  readonly next: string | null;
}

/** The port to a table's stream. */
export interface StreamApi {
  readonly label: string;
  /** Every shard that has records, or will have some. */
  listShards(): Promise<readonly StreamShard[]>;
  /** Whether the stream was disabled when its shards were last listed: it gets no more changes, also if another is enabled. */
  isDisabled?(): boolean;
  /**
   * The iterator after a record, or at the oldest one. Rejects with `infrastructure.stream-trimmed` if that record was
   * removed.
   */
  locate(shardId: string, afterSequence: string | null): Promise<string>;
  /**
   * null: the iterator has expired and must be located again. Rejects with `infrastructure.stream-trimmed` if the next
   * records were removed.
   */
  read(iterator: string): Promise<StreamPage | null>;
  close(): void;
}

export function streamTrimmed(table: string, cause?: unknown): InfrastructureError {
  return new InfrastructureError(
    'infrastructure.stream-trimmed',
    `The stream of table ${table} was not read for a day or more: DynamoDB has removed changes that are not counted`,
    { cause },
  );
}

export function streamDisabled(table: string, label: string): InfrastructureError {
  return new InfrastructureError(
    'infrastructure.stream-missing',
    `The stream ${label} of table ${table} was disabled, and is read to its end. Enable a stream, and start the worker again`,
  );
}
