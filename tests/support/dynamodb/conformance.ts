import { DynamoDBClient, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { DynamoDBStreamsClient } from '@aws-sdk/client-dynamodb-streams';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Backend } from '../../../src/backend.js';
import { createTable, dynamodb } from '../../../src/backends/dynamodb/index.js';
import { sdkTransport } from '../../../src/backends/dynamodb/client/sdk-transport.js';
import { openSdkStream } from '../../../src/backends/dynamodb/stream/worker/sdk-stream.js';
import { describeBackend } from '../../../src/testing/backend.js';
import { type Engine, type EngineName, findEngine, startEngine } from '../../../src/testing/dynamodb/index.js';
import { StreamFold } from '../stream/fold.js';

/** Each record of a stream slows the next write of dynoxide down, so its tables are replaced while they are small. */
const CASES_OF_A_TABLE = 40;
const INDEXES = ['GSI1', 'GSI2', 'GSI3', 'GSI4'] as const;

/** Registers the conformance suite on the named engine, or on the first available one. Many cases share a table. */
export function describeDynamoDB(name?: EngineName, half?: Half): void {
  const found = findEngine(name);
  const title = `dynamodb on ${name ?? (found.status === 'available' ? found.name : 'any engine')}`;
  if (found.status === 'unavailable') {
    describe.skip(`${title} (skipped: ${found.reason})`, () => {
      test('the store passes the conformance suite', () => {});
    });
    return;
  }
  let engine: Engine;
  let client: DynamoDBClient;
  let streamsClient: DynamoDBStreamsClient;
  /** The newest table last. */
  const tables: { readonly name: string; readonly fold: StreamFold }[] = [];
  const folds = new WeakMap<Backend, StreamFold>();
  let cases = 0;

  const addTable = async (): Promise<void> => {
    const tableName = `conformance-${tables.length}`;
    await createTable({ tableName, client });
    const table = { name: tableName, transport: sdkTransport({ client }), random: Math.random };
    tables.push({ name: tableName, fold: new StreamFold(table, await openSdkStream(table, { streamsClient })) });
  };

  beforeAll(async () => {
    engine = await startEngine(name);
    const { endpoint, region, credentials } = engine;
    // For the stores, which are opened without a client: ExtendDB verifies signatures.
    process.env['AWS_ACCESS_KEY_ID'] = credentials.accessKeyId;
    process.env['AWS_SECRET_ACCESS_KEY'] = credentials.secretAccessKey;
    client = new DynamoDBClient({ endpoint, region, credentials, maxAttempts: 1 });
    streamsClient = new DynamoDBStreamsClient({ endpoint, region, credentials });
  });
  afterAll(async () => {
    client?.destroy();
    streamsClient?.destroy();
    await engine?.stop();
  });

  describeBackend(title, {
    describe: half === undefined ? describe : describeHalf(half, title),
    test,
    create: async () => {
      if (cases++ % (engine.name === 'dynoxide' ? CASES_OF_A_TABLE : Infinity) === 0) await addTable();
      const { name: table, fold } = tables.at(-1)!;
      const { endpoint, region } = engine;
      const backend = dynamodb({ table, endpoint, region });
      folds.set(backend, fold);
      return backend;
    },
    catchUp: async (backend) => {
      await folds.get(backend)?.foldAll();
      if (engine.name === 'extenddb') await untilIndexed(client, tables.at(-1)!.name);
    },
  });
}

/** Two files that each run a half of the topics keep two processors busy. */
export type Half = 'first' | 'second';

function describeHalf(half: Half, title: string): (name: string, body: () => void) => void {
  let topics = 0;
  return (name, body) => {
    if (name === title) describe(name, body);
    else if (topics++ % 2 === (half === 'first' ? 0 : 1)) describe(name, body);
  };
}

let marks = 0;

/** The indexes of this engine lag. When each shows the last record, it also shows all records before it. */
async function untilIndexed(client: DynamoDBClient, table: string): Promise<void> {
  marks += 1;
  const mark = { S: `_/MARK#${marks}` };
  const keys = INDEXES.flatMap((index) => [`${index}PK`, `${index}SK`]);
  const Item = Object.fromEntries(['PK', 'SK', ...keys].map((attribute) => [attribute, mark]));
  await client.send(new PutItemCommand({ TableName: table, Item }));
  await Promise.all(INDEXES.map(async (index) => untilShown(client, table, index, mark)));
}

async function untilShown(
  client: DynamoDBClient,
  table: string,
  index: string,
  mark: { readonly S: string },
): Promise<void> {
  const input = {
    TableName: table,
    IndexName: index,
    KeyConditionExpression: `${index}PK = :mark`,
    ExpressionAttributeValues: { ':mark': mark },
  };
  while ((await client.send(new QueryCommand(input))).Count === 0);
}
