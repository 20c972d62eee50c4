import { Readable } from 'node:stream';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { expect, test } from 'vitest';
import { deadlineIn } from './deadline.js';
import { sdkTransport } from './sdk-transport.js';
import type { Transport } from './transport.js';

/** A client whose answers are empty, and of a store whose clock is ahead by so much. */
function clientAhead(ms: () => number): DynamoDBClient {
  return new DynamoDBClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    requestHandler: {
      handle: async () => ({
        response: {
          statusCode: 200,
          headers: { date: new Date(Date.now() + ms()).toUTCString() },
          body: Readable.from(['{}']),
        } as never,
      }),
    },
  });
}

async function ask(transport: Transport): Promise<void> {
  await transport.send('DescribeTable', { TableName: 'any' }, deadlineIn(5_000));
}

test('all stores over one client learn from each of its answers how far its clock is', async () => {
  let aheadMs = 0;
  const client = clientAhead(() => aheadMs);
  const stores = [sdkTransport({ client }), sdkTransport({ client })];
  for (const store of stores) await ask(store);
  expect(stores.map((store) => store.clockOffsetMs())).toEqual([0, 0]);
  aheadMs = 300_000;
  await ask(stores[0]!);
  expect(stores.map((store) => Math.round(store.clockOffsetMs() / 10_000))).toEqual([30, 30]);
});

test('a store that has asked nothing yet knows no difference', () => {
  expect(sdkTransport({ client: clientAhead(() => 300_000) }).clockOffsetMs()).toBe(0);
});
