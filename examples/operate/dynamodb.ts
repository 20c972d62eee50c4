import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
// #region open
import { RateLimiter } from 'headgate';
import { createTable, dynamodb } from 'headgate/dynamodb'; // for bundlers, and for your own client

export async function openTable(yourClient: DynamoDBClient, endpoint: string): Promise<readonly RateLimiter[]> {
  // For tests and development. It does not change a table that is ready.
  await createTable({ tableName: 'limits', region: 'eu-west-1', endpoint });
  const limiter = await RateLimiter.open(`dynamodb://limits?region=eu-west-1&namespace=default&endpoint=${endpoint}`);
  const same = await RateLimiter.open(dynamodb({ table: 'limits', client: yourClient }));
  return [limiter, same];
}
// #endregion open
