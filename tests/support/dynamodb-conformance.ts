import { DynamoDBClient, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { DynamoDBStreamsClient } from '@aws-sdk/client-dynamodb-streams';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Backend } from '../../src/backend.js';
import { createTable, dynamodb } from '../../src/backends/dynamodb/index.js';
import { openTail, type Tail } from '../../src/backends/dynamodb/stream/worker/tail.js';
import { describeBackend } from '../../src/testing/backend.js';
import { type Engine, type EngineName, findEngine, startEngine } from '../../src/testing/dynamodb/index.js';

/** Each record in a stream makes the next write slower on dynoxide: its tables are replaced while they are small. */
const CASES_OF_A_TABLE = 40;
const INDEXES = ['GSI1', 'GSI2', 'GSI3', 'GSI4'] as const;

/** Registers the conformance suite on an engine, with a table for many cases; without a name on the one at hand. */
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
  /** The newest table last. */
  const tables: { readonly name: string; readonly tail: Tail }[] = [];
  const tails = new WeakMap<Backend, Tail>();
  let cases = 0;

  const addTable = async (): Promise<void> => {
    const table = `conformance-${tables.length}`;
    await createTable({ tableName: table, client });
    const onPoison = ({ reason }: { readonly reason: string }): never => {
      throw new Error(`poison in the stream: ${reason}`);
    };
    tables.push({ name: table, tail: await openTail({ table, client, streamsClient, onPoison }) });
  };

  beforeAll(async () => {
    engine = await startEngine(name);
    const { endpoint, region, credentials } = engine;
    client = new DynamoDBClient({ endpoint, region, credentials, maxAttempts: 1 });
    streamsClient = new DynamoDBStreamsClient({ endpoint, region, credentials });
  });
  afterAll(async () => {
    for (const { tail } of tables) tail.close();
    client?.destroy();
    streamsClient?.destroy();
    await engine?.stop();
  });

  describeBackend(title, {
    describe,
    test,
    create: async () => {
      if (cases++ % (engine.name === 'dynoxide' ? CASES_OF_A_TABLE : Infinity) === 0) await addTable();
      const { name: table, tail } = tables.at(-1)!;
      const backend = dynamodb({ table, client });
      tails.set(backend, tail);
      return backend;
    },
    catchUp: async (backend) => {
      await tails.get(backend)?.foldAll();
      if (engine.name === 'extenddb') await untilIndexed(client, tables.at(-1)!.name);
    },
  });
}

let marks = 0;

/** Indexes of this engine lag: once each shows a record that was written last, it shows what was written before. */
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
