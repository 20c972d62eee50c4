import { CreateTableCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTable } from '../../../../src/backends/dynamodb/index.js';
import { deadlineIn } from '../../../../src/machine-time.js';
import type { Table } from '../../../../src/backends/dynamodb/client/requests.js';
import { checkSchema } from '../../../../src/backends/dynamodb/schema/schema.js';
import { tableDefinition } from '../../../../src/backends/dynamodb/table/table-definition.js';
import { findEngine } from '../../../../src/testing/dynamodb/index.js';
import {
  allPages,
  change,
  enter,
  openStores,
  startTable,
  TABLE_NAME,
  type TestTable,
} from '../../../support/dynamodb/stores.js';

const found = findEngine();
const suite = found.status === 'available' ? describe : describe.skip;
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

suite(`the table${reason}`, () => {
  let table: TestTable;

  beforeAll(async () => {
    table = await startTable();
  });
  afterAll(async () => table[Symbol.asyncDispose]());

  const named = (name: string): Table => ({ name, transport: table.transport, random: Math.random });
  const version = async (tableName: string, fields: Record<string, { N: string } | { S: string }>) => {
    const Item = { PK: { S: '_/SYSTEM#' }, SK: { S: '#VERSION' }, ...fields };
    await table.client.send(new PutItemCommand({ TableName: tableName, Item }));
  };
  const check = async (name: string) => checkSchema(named(name), deadlineIn(5_000));

  test('a table that several callers create concurrently has the namespace `default` once', async () => {
    const tableName = 'made-at-once';
    const { client } = table;
    await Promise.all(Array.from({ length: 4 }, async () => createTable({ tableName, client })));
    await check(tableName);
    const { namespaces } = openStores({
      ...table.transport,
      send: (operation, input, deadline) =>
        table.transport.send(operation, { ...input, TableName: tableName }, deadline),
    });
    const names = await allPages<{ name: string }>((page) => namespaces.list(change(), page));
    expect(names.map(({ name }) => name)).toEqual(['default']);
  });

  test('creating a table that is ready changes nothing', async () => {
    const { client } = table;
    const stores = openStores(table.transport);
    const before = await stores.namespaces.read(change(), 'default');
    await enter(stores);
    await createTable({ tableName: TABLE_NAME, client });
    expect(await stores.namespaces.read(change(), 'default')).toEqual(before);
    await stores.namespaces.delete(change(), 'default');
    await createTable({ tableName: TABLE_NAME, client });
    expect(await stores.namespaces.read(change(), 'default')).toBeUndefined();
  });

  test('creating a table completes an unfinished one', async () => {
    const tableName = 'half-made';
    await table.client.send(new CreateTableCommand(tableDefinition(tableName)));
    await expect(check(tableName)).rejects.toMatchObject({
      code: 'schema.mismatch',
      command: `headgate deploy --table ${tableName}`,
    });
    await createTable({ tableName, client: table.client });
    await check(tableName);
  });

  test('a table of another product is refused, and nothing is written to it', async () => {
    const tableName = 'of-another-product';
    const definition = tableDefinition(tableName);
    await table.client.send(
      new CreateTableCommand({
        ...definition,
        GlobalSecondaryIndexes: definition.GlobalSecondaryIndexes?.slice(1),
        AttributeDefinitions: definition.AttributeDefinitions?.filter(
          ({ AttributeName }) => !AttributeName?.startsWith('GSI1'),
        ),
      }),
    );
    await expect(createTable({ tableName, client: table.client })).rejects.toMatchObject({ code: 'schema.mismatch' });
    await expect(check(tableName)).rejects.toMatchObject({ code: 'schema.mismatch' });
  });

  test('a missing table is reported with the command that creates it', async () => {
    await expect(check('nowhere')).rejects.toMatchObject({
      code: 'schema.mismatch',
      message: 'DynamoDB has no table nowhere. Run: headgate deploy --table nowhere',
    });
  });

  test('a table of another version is reported with the command that helps', async () => {
    const tableName = 'versions';
    await createTable({ tableName, client: table.client });
    const migrate = { code: 'schema.mismatch', command: 'headgate migrate --store dynamodb://versions' };
    const upgrade = { code: 'schema.mismatch', command: 'npm install headgate@latest' };
    await version(tableName, { schema_version: { N: '0' }, min_client_version: { N: '0' } });
    await expect(check(tableName)).rejects.toMatchObject(migrate);
    await version(tableName, { schema_version: { S: '0.8.0' } });
    await expect(check(tableName)).rejects.toMatchObject(migrate);
    await version(tableName, { schema_version: { N: '4' }, min_client_version: { N: '3' } });
    await expect(check(tableName)).rejects.toMatchObject(upgrade);
    await version(tableName, { schema_version: { N: '4' }, min_client_version: { N: '2' } });
    expect(await check(tableName)).toEqual({ version: 4, raisedAtMs: null });
    await version(tableName, { schema_version: { N: '1' }, min_client_version: { N: '1' } });
    expect(await check(tableName)).toEqual({ version: 1, raisedAtMs: null });
  });
});
