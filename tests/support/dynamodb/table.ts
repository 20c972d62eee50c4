import { CreateTableCommand, DynamoDBClient, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
import type { Engine } from '../../../src/testing/dynamodb/index.js';

/** The name of the table that `makeTable` creates. */
export const TABLE = 'engine-test';

/** A client of the SDK without retries, so that tests see each answer. */
export function clientOf(engine: Pick<Engine, 'region' | 'credentials'>, endpoint: string): DynamoDBClient {
  return new DynamoDBClient({ endpoint, region: engine.region, credentials: engine.credentials, maxAttempts: 1 });
}

export async function makeTable(client: DynamoDBClient): Promise<void> {
  await client.send(
    new CreateTableCommand({
      TableName: TABLE,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'PK', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'PK', KeyType: 'HASH' }],
    }),
  );
  await waitUntilTableExists({ client, minDelay: 1, maxDelay: 1, maxWaitTime: 20 }, { TableName: TABLE });
}
