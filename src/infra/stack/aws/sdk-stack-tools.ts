import { randomUUID } from 'node:crypto';
import { sleep } from '../../../machine-time.js';
import { runMigrations } from '../../../backends/dynamodb/migrations/run.js';
import { prepareTable, raiseTable, readTableVersion } from '../../../backends/dynamodb/schema/prepare-table.js';
import { type AwsOptions, clientConfig, lazyClient, serviceErrorName } from './aws-client.js';
import { sdkCloudFormation } from './sdk-cloudformation.js';
import { sdkFunctions } from './sdk-functions.js';
import type { StackTools } from '../stack-tools.js';
import { type TableFacts, tableFactsOf } from '../table/table-facts.js';

/** Tools that call AWS. Nothing is loaded or sent before the first call. */
export function sdkStackTools(options: AwsOptions): StackTools & { close(): void } {
  const { region, endpoint } = options;
  const target = { ...(region === undefined ? {} : { region }), ...(endpoint === undefined ? {} : { endpoint }) };
  const cloudformation = sdkCloudFormation(options);
  const functions = sdkFunctions(options);
  return {
    cloudformation,
    functions,
    tables: {
      prepare: async (tableName) => prepareTable({ ...target, tableName }),
      readVersion: async (tableName) => readTableVersion({ ...target, tableName }),
      raise: async (tableName) => raiseTable({ ...target, tableName }),
      readFacts: async (tableName) => readTableFacts(options, tableName),
      migrate: async (migration) => runMigrations({ ...target, ...migration }),
    },
    newId: () => `headgate-${randomUUID()}`,
    pause: sleep,
    now: () => performance.now(),
    close() {
      cloudformation.close();
      functions.close();
    },
  };
}

/** Describes a table; null: there is none. Writes nothing. */
async function readTableFacts(options: AwsOptions, tableName: string): Promise<TableFacts | null> {
  const { send, close } = lazyClient(options, {
    peer: '@aws-sdk/client-dynamodb',
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
