import type * as Sdk from '@aws-sdk/client-dynamodb-streams';
import { InfrastructureError } from '../../../../core/errors.js';
import { deadlineIn } from '../../../../machine-time.js';
import { errorOf, failureOf } from '../../client/failures.js';
import { loopbackDefaults } from '../../client/loopback.js';
import { LostAnswer } from '../../client/lost-answer.js';
import { REQUEST_MS, sendRead, type Table } from '../../client/requests.js';
import { parseStreamLabel } from '../decode.js';
import { type StreamApi, type StreamShard, streamTrimmed } from './stream-api.js';

export interface SdkStreamOptions {
  /** The caller's client. It is not closed here. */
  readonly streamsClient?: Sdk.DynamoDBStreamsClient;
  readonly region?: string;
  readonly endpoint?: string;
}

const MAX_RECORDS = 1_000;
const VIEW = 'NEW_AND_OLD_IMAGES';

/** Opens the stream of a table through the AWS SDK. The SDK retries failed requests, because reads have no effect. */
export async function openSdkStream(table: Table, options: SdkStreamOptions): Promise<StreamApi> {
  const sdk = await loadSdk();
  const streamArn = await readStreamArn(table);
  const { streamsClient, ...config } = options;
  const client = streamsClient ?? new sdk.DynamoDBStreamsClient({ ...loopbackDefaults(config), ...config });

  /**
   * `partOf` returns a part that every complete answer has: an incomplete answer would look like the end of a shard.
   */
  const send = async <T>(
    what: string,
    request: (settings: { readonly abortSignal: AbortSignal }) => Promise<T>,
    partOf: (output: T) => unknown,
  ) => {
    try {
      const output = await request({ abortSignal: AbortSignal.timeout(REQUEST_MS) });
      if (partOf(output) === undefined) throw new LostAnswer('the answer is not complete');
      return output;
    } catch (error) {
      const name = error instanceof Error ? error.name : '';
      if (name === 'ExpiredIteratorException') return null;
      if (name === 'TrimmedDataAccessException') throw streamTrimmed(table.name, error);
      throw errorOf(failureOf(error, what, table.name), what);
    }
  };

  let isDisabled = false;
  const listShards = async (): Promise<readonly StreamShard[]> => {
    const shards: StreamShard[] = [];
    for (let after: string | undefined; ;) {
      const input = { StreamArn: streamArn, ...(after === undefined ? {} : { ExclusiveStartShardId: after }) };
      const output = await send(
        'DescribeStream',
        async (settings) => client.send(new sdk.DescribeStreamCommand(input), settings),
        ({ StreamDescription }) => StreamDescription?.Shards,
      );
      for (const { ShardId: id = '', ParentShardId } of output?.StreamDescription?.Shards ?? []) {
        shards.push({ id, parentId: ParentShardId ?? null });
      }
      isDisabled = output?.StreamDescription?.StreamStatus === 'DISABLED';
      after = output?.StreamDescription?.LastEvaluatedShardId;
      if (after === undefined) return shards;
    }
  };

  return {
    label: parseStreamLabel(streamArn),
    listShards,
    isDisabled: () => isDisabled,
    async locate(shardId, afterSequence) {
      const start: { ShardIteratorType: Sdk.ShardIteratorType; SequenceNumber?: string } =
        afterSequence === null
          ? { ShardIteratorType: 'TRIM_HORIZON' }
          : { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber: afterSequence };
      const input = { StreamArn: streamArn, ShardId: shardId, ...start };
      const output = await send(
        'GetShardIterator',
        async (settings) => client.send(new sdk.GetShardIteratorCommand(input), settings),
        ({ ShardIterator }) => ShardIterator,
      );
      return output?.ShardIterator ?? '';
    },
    async read(iterator) {
      const input = { ShardIterator: iterator, Limit: MAX_RECORDS };
      const output = await send(
        'GetRecords',
        async (settings) => client.send(new sdk.GetRecordsCommand(input), settings),
        ({ Records }) => Records,
      );
      return output === null ? null : { records: output.Records ?? [], next: output.NextShardIterator ?? null };
    },
    close() {
      if (streamsClient === undefined) client.destroy();
    },
  };
}

async function readStreamArn(table: Table): Promise<string> {
  const { Table: found } = await sendRead(table, 'DescribeTable', { TableName: table.name }, deadlineIn(REQUEST_MS));
  if (found?.LatestStreamArn !== undefined && found.StreamSpecification?.StreamViewType === VIEW) {
    return found.LatestStreamArn;
  }
  throw new InfrastructureError(
    'infrastructure.stream-missing',
    `Table ${table.name} has no stream of kind ${VIEW}: usage cannot be counted`,
  );
}

async function loadSdk(): Promise<typeof Sdk> {
  try {
    return await import('@aws-sdk/client-dynamodb-streams');
  } catch (cause) {
    throw new InfrastructureError(
      'infrastructure.missing-peer',
      'Reading the change stream needs the AWS SDK. Run: npm install @aws-sdk/client-dynamodb-streams',
      { cause },
    );
  }
}
