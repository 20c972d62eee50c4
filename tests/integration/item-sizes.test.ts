import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { itemSizes, printItemSizes } from '../../bench/item-sizes.js';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { startEngine } from '../../src/testing/dynamodb/index.js';

const PAGE = new URL('../../docs/backends/dynamodb.md', import.meta.url);
const TABLE = /(?<=<!-- item-sizes -->\n\n).*?(?=\n\n<!-- \/item-sizes -->)/s;

test('the page on DynamoDB shows the item sizes of the codec; RECORD_SIZES=1 rewrites them', () => {
  const printed = printItemSizes(itemSizes());
  const page = readFileSync(PAGE, 'utf8');
  if (process.env['RECORD_SIZES'] === '1') writeFileSync(PAGE, page.replace(TABLE, printed));
  expect(TABLE.exec(readFileSync(PAGE, 'utf8'))?.[0]).toBe(printed);
});

/** The size of numbers is approximate. Within this distance of a boundary, either number of units is right. */
const CLOSE_BYTES = 24;

test('an engine bills the write units of the table of sizes', async () => {
  await using engine = await startEngine('dynoxide');
  const { endpoint, region, credentials } = engine;
  const client = new DynamoDBClient({ endpoint, region, credentials, maxAttempts: 1 });
  await createTable({ tableName: 'item-sizes', client });
  const wrong: unknown[] = [];
  let measured = 0;
  // A write is billed by the larger of the old and the new item, so the small items are written first.
  const ascending = itemSizes().toSorted((a, b) => a.bytes - b.bytes);
  for (const { item, bytes, units, limits, holders, names } of ascending) {
    if (bytes % 1_024 < CLOSE_BYTES || bytes % 1_024 > 1_024 - CLOSE_BYTES) continue;
    const write = new PutItemCommand({ TableName: 'item-sizes', Item: item, ReturnConsumedCapacity: 'INDEXES' });
    const billed = (await client.send(write)).ConsumedCapacity?.Table?.CapacityUnits;
    measured += 1;
    if (billed !== units) wrong.push({ limits, holders, names, bytes, units, billed });
  }
  expect(measured).toBeGreaterThan(10);
  expect(wrong).toEqual([]);
  client.destroy();
});
