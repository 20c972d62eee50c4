import { Agent } from 'node:http';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { expect, test } from 'vitest';
import { deadlineIn } from './deadline.js';
import { send } from './requests.js';
import { sdkTransport } from './sdk-transport.js';

test('a connection that the SDK could not make in time has sent nothing', async () => {
  const client = new DynamoDBClient({
    endpoint: 'http://host.invalid',
    region: 'us-east-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    maxAttempts: 1,
    // No address is ever found.
    requestHandler: { connectionTimeout: 10, httpAgent: new Agent({ lookup: () => {} }) },
  });
  const table = { name: 't', transport: sdkTransport({ client }), random: Math.random };
  const answer = await send(table, 'GetItem', { TableName: 't', Key: {} }, deadlineIn(10_000));
  expect(answer).toMatchObject({ ok: false, failure: { kind: 'lost', unsent: true } });
  client.destroy();
});
