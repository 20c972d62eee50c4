import { DynamoDBClient, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { DynamoDBStreamsClient } from '@aws-sdk/client-dynamodb-streams';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createTable, dynamodb } from '../../src/backends/dynamodb/index.js';
import { sdkTransport } from '../../src/backends/dynamodb/client/sdk-transport.js';
import { openSdkStream } from '../../src/backends/dynamodb/stream/worker/sdk-stream.js';
import { describeBackend } from '../../src/testing/backend.js';
import { type Engine, type EngineName, findEngine, startEngine } from '../../src/testing/dynamodb/index.js';
import { StreamFold } from './stream-fold.js';

const TABLE = 'conformance';
const INDEXES = ['GSI1', 'GSI2', 'GSI3', 'GSI4'] as const;

/** Registers the conformance suite on an engine, with one table for all cases; without a name on the one at hand. */
export function describeDynamoDB(name?: EngineName): void {
  const found = findEngine(name);
  const title = `dynamodb on ${name ?? (found.status === 'available' ? found.name : 'any engine')}`;
  if (found.status === 'unavailable') {
    describe.skip(`${title} (skipped: ${found.reason})`, () => {
      test('conformance', () => {});
    });
    return;
  }
  let engine: Engine;
  let client: DynamoDBClient;
  let streamsClient: DynamoDBStreamsClient;
  let fold: StreamFold;

  beforeAll(async () => {
    engine = await startEngine(name);
    const { endpoint, region, credentials } = engine;
    client = new DynamoDBClient({ endpoint, region, credentials, maxAttempts: 1 });
    streamsClient = new DynamoDBStreamsClient({ endpoint, region, credentials });
    await createTable({ tableName: TABLE, client });
    const table = { name: TABLE, transport: sdkTransport({ client }), random: Math.random };
    fold = new StreamFold(table, await openSdkStream(table, { streamsClient }));
  });
  afterAll(async () => {
    client?.destroy();
    streamsClient?.destroy();
    await engine?.stop();
  });

  describeBackend(title, {
    describe,
    test,
    create: () => dynamodb({ table: TABLE, client }),
    catchUp: async () => {
      await fold.foldAll();
      if (engine.name === 'extenddb') await untilIndexed(client);
    },
  });
}

let marks = 0;

/** Indexes of this engine lag: once each shows a record that was written last, it shows what was written before. */
async function untilIndexed(client: DynamoDBClient): Promise<void> {
  marks += 1;
  const mark = { S: `_/MARK#${marks}` };
  const keys = INDEXES.flatMap((index) => [`${index}PK`, `${index}SK`]);
  const Item = Object.fromEntries(['PK', 'SK', ...keys].map((attribute) => [attribute, mark]));
  await client.send(new PutItemCommand({ TableName: TABLE, Item }));
  await Promise.all(INDEXES.map(async (index) => untilShown(client, index, mark)));
}

async function untilShown(client: DynamoDBClient, index: string, mark: { readonly S: string }): Promise<void> {
  const input = {
    TableName: TABLE,
    IndexName: index,
    KeyConditionExpression: `${index}PK = :mark`,
    ExpressionAttributeValues: { ':mark': mark },
  };
  while ((await client.send(new QueryCommand(input))).Count === 0);
}
