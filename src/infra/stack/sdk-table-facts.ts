import { type AwsOptions, clientConfig, lazyClient } from './aws-client.js';
import { serviceErrorName } from './aws-failure.js';
import { type TableFacts, tableFactsOf } from './table-facts.js';

const PEER = '@aws-sdk/client-dynamodb';

/** Describes a table; null: there is none. Writes nothing. */
export async function readTableFacts(options: AwsOptions, tableName: string): Promise<TableFacts | null> {
  const { send, close } = lazyClient(options, {
    peer: PEER,
    load: async () => import('@aws-sdk/client-dynamodb'),
    make: (sdk) => new sdk.DynamoDBClient(clientConfig(options)),
  });
  const input = { TableName: tableName };
  try {
    const { Table } = await send('DynamoDB DescribeTable', async ({ sdk, client }, abortSignal) =>
      client.send(new sdk.DescribeTableCommand(input), { abortSignal }),
    );
    const { TimeToLiveDescription: ttl } = await send(
      'DynamoDB DescribeTimeToLive',
      async ({ sdk, client }, abortSignal) => client.send(new sdk.DescribeTimeToLiveCommand(input), { abortSignal }),
    );
    const expires = ttl?.TimeToLiveStatus === 'ENABLED' || ttl?.TimeToLiveStatus === 'ENABLING';
    const backups = await send('DynamoDB DescribeContinuousBackups', async ({ sdk, client }, abortSignal) =>
      client.send(new sdk.DescribeContinuousBackupsCommand(input), { abortSignal }),
    ).catch(withoutBackups);
    const recovery = backups?.ContinuousBackupsDescription?.PointInTimeRecoveryDescription;
    return tableFactsOf(Table ?? {}, {
      ttlAttribute: expires ? (ttl.AttributeName ?? null) : null,
      pointInTimeRecovery: recovery?.PointInTimeRecoveryStatus === 'ENABLED',
    });
  } catch (error) {
    if (serviceErrorName(error) === 'ResourceNotFoundException') return null;
    throw error;
  } finally {
    close();
  }
}

/** Test engines do not support this operation. */
function withoutBackups(error: unknown): null {
  if (serviceErrorName(error) === 'UnknownOperationException') return null;
  throw error;
}
