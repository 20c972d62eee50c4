import { DynamoDB, type UpdateItemInput } from '@aws-sdk/client-dynamodb';
import { Limit, RateLimiter } from 'headgate';
import { createTable, dynamodb } from 'headgate/dynamodb';
import type { Engine } from 'headgate/testing/dynamodb';
import { RateLimiterDynamo } from 'rate-limiter-flexible';
import { callEach } from './load.js';
import type { Contender } from './race.js';

const TABLE = 'headgate-bench';
const PEER_TABLE = 'peer-bench';
/** So much that nothing is denied. */
const PLENTY = 1_000_000;
/** Longer than any answer takes while two cores serve client and engine. */
const PATIENCE_MS = 30_000;
const SETUP_CONCURRENCY = 64;
const MOST_IN_BATCH = 25;

/** One client for all: same connections, same signatures, no retries. */
export function clientOf({ region, credentials }: Engine, endpoint: string): DynamoDB {
  const requestHandler = { httpAgent: { keepAlive: true, maxSockets: 256 } };
  return new DynamoDB({ endpoint, region, credentials, maxAttempts: 1, requestHandler });
}

export async function createTables(client: DynamoDB): Promise<void> {
  await createTable({ tableName: TABLE, client });
  // dynoxide's writes become slower with every record that the stream has: that would measure its history, not us.
  await client.updateTable({ TableName: TABLE, StreamSpecification: { StreamEnabled: false } });
  await client.createTable({
    TableName: PEER_TABLE,
    AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
  });
}

/** A bucket of two limits for each key, and one acquire of both. */
export async function headgate(client: DynamoDB, keys: readonly string[]): Promise<Contender> {
  const limits = [Limit.perHour('rph', PLENTY), Limit.perHour('tph', 100 * PLENTY)];
  const timeouts = { callMs: PATIENCE_MS, acquireMs: PATIENCE_MS };
  const limiter = await RateLimiter.open(dynamodb({ table: TABLE, client }), { limits, timeouts });
  const acquire: Contender = async (key) => {
    const lease = await limiter.acquire({ entityId: key, resource: 'gpt-4', consume: { rph: 1, tph: 100 } });
    await lease.commit();
  };
  await callEach(keys, SETUP_CONCURRENCY, acquire);
  return acquire;
}

export async function headgateDenied(client: DynamoDB): Promise<Contender> {
  const limiter = await RateLimiter.open(dynamodb({ table: TABLE, client }), { limits: [Limit.perDay('rpd', 1)] });
  const ask = async (key: string) => limiter.tryAcquire({ entityId: key, resource: 'denied', consume: { rpd: 1 } });
  await ask('denied');
  return async (key) => {
    if ((await ask(key)).granted) throw new Error('Expected a denial');
  };
}

function counterKey(key: string) {
  return { PK: { S: `bare#${key}` }, SK: { S: '#STATE' } };
}

/** The least that takes from a counter and never goes below zero. */
function takeOne(key: string): UpdateItemInput {
  return {
    TableName: TABLE,
    Key: counterKey(key),
    UpdateExpression: 'ADD tk :minus',
    ConditionExpression: 'tk >= :amount',
    ExpressionAttributeValues: { ':minus': { N: '-1' }, ':amount': { N: '1' } },
    ReturnValues: 'ALL_NEW',
  };
}

/** One counter for each key, in the same table. */
export async function bareUpdate(client: DynamoDB, keys: readonly string[]): Promise<Contender> {
  for (let at = 0; at < keys.length; at += MOST_IN_BATCH) {
    const items = keys.slice(at, at + MOST_IN_BATCH).map((key) => ({ ...counterKey(key), tk: { N: '1000000000' } }));
    await client.batchWriteItem({ RequestItems: { [TABLE]: items.map((Item) => ({ PutRequest: { Item } })) } });
  }
  return async (key) => {
    await client.updateItem(takeOne(key));
  };
}

/** Of a counter that is not there. */
export function bareDenied(client: DynamoDB): Contender {
  return async (key) => {
    const refused = await client.updateItem(takeOne(key)).then(
      () => false,
      (error: unknown) => error instanceof Error && error.name === 'ConditionalCheckFailedException',
    );
    if (!refused) throw new Error('Expected a refusal');
  };
}

export async function flexible(storeClient: DynamoDB, keys: readonly string[]): Promise<Contender> {
  const options = { storeClient, tableName: PEER_TABLE, tableCreated: true, ttlSet: true };
  const limiter = new RateLimiterDynamo({ ...options, points: 1_000 * PLENTY, duration: 3_600 });
  const consume: Contender = async (key) => {
    await limiter.consume(key, 1);
  };
  await callEach(keys, SETUP_CONCURRENCY, consume);
  return consume;
}
