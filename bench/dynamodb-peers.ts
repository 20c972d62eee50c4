import { type AttributeValue, DynamoDB, type UpdateItemInput } from '@aws-sdk/client-dynamodb';
import { Limit, RateLimiter } from 'headgate';
import { createTable, dynamodb, type DynamoDBOptions } from 'headgate/dynamodb';
import type { Engine } from 'headgate/testing/dynamodb';
import { RateLimiterDynamo } from 'rate-limiter-flexible';
import { openTransport } from '../src/backends/dynamodb/client/open-transport.js';
import { deadlineIn } from '../src/machine-time.js';
import { callEach } from './load.js';
import type { Contender } from './race.js';

export const TABLE = 'headgate-bench';
const PEER_TABLE = 'peer-bench';
/** Large enough that nothing is denied. */
const PLENTY = 1_000_000_000;
/** Longer than any answer takes while client and engine share two cores. */
const PATIENCE_MS = 30_000;
const SETUP_CONCURRENCY = 64;
const MAX_IN_BATCH = 25;
const RICH = { N: '1000000000' };
const SAMPLE = 'sample-of-a-bucket';

type Item = Record<string, AttributeValue>;

/** One client for all contenders: same connections, same signatures, no retries. */
export function clientOf({ region, credentials }: Engine, endpoint: string): DynamoDB {
  const requestHandler = { httpAgent: { keepAlive: true, maxSockets: 256 } };
  return new DynamoDB({ endpoint, region, credentials, maxAttempts: 1, requestHandler });
}

/** Where the lean client finds the engine. It reads its credentials from the environment, as in production. */
export function leanReach({ endpoint, region, credentials }: Engine): { endpoint: string; region: string } {
  process.env['AWS_ACCESS_KEY_ID'] = credentials.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = credentials.secretAccessKey;
  return { endpoint, region };
}

export async function createTables(client: DynamoDB): Promise<void> {
  await createTable({ tableName: TABLE, client });
  // dynoxide's writes become slower with every record in the stream, which would distort the measurement.
  await client.updateTable({ TableName: TABLE, StreamSpecification: { StreamEnabled: false } });
  await client.createTable({
    TableName: PEER_TABLE,
    AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
  });
}

/** One bucket with two limits for each key, and one acquire from both. */
export async function headgate(
  reach: Pick<DynamoDBOptions, 'client' | 'endpoint' | 'region'>,
  keys: readonly string[],
): Promise<Contender> {
  const limits = [Limit.perHour('rph', PLENTY), Limit.perHour('tph', 100 * PLENTY)];
  const timeouts = { callMs: PATIENCE_MS, acquireMs: PATIENCE_MS };
  // Long enough that no round reads the config again.
  const configCacheMs = 3_600_000;
  const limiter = await RateLimiter.open(dynamodb({ table: TABLE, ...reach }), { limits, timeouts, configCacheMs });
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

/** The smallest update that takes from counters and never goes below zero. */
export function takeOne(PK: string, ...counters: readonly string[]): UpdateItemInput {
  return {
    TableName: TABLE,
    Key: { PK: { S: PK }, SK: { S: '#STATE' } },
    UpdateExpression: `ADD ${counters.map((counter) => `${counter} :minus`).join(', ')}`,
    ConditionExpression: counters.map((counter) => `${counter} >= :amount`).join(' AND '),
    ExpressionAttributeValues: { ':minus': { N: '-1' }, ':amount': { N: '1' } },
    ReturnValues: 'ALL_NEW',
  };
}

/** Items with one counter and nothing else. */
export async function bareCounter(client: DynamoDB, keys: readonly string[]): Promise<Contender> {
  await putAll(
    client,
    keys.map((key) => ({ PK: { S: `counter#${key}` }, SK: { S: '#STATE' }, tk: RICH })),
  );
  return async (key) => {
    await client.updateItem(takeOne(`counter#${key}`, 'tk'));
  };
}

/** Items like Headgate's, in the same indexes. One write takes from both limits. */
export async function bareBucket(client: DynamoDB, keys: readonly string[]): Promise<Contender> {
  await headgate({ client }, [SAMPLE]);
  const sample = JSON.stringify(await readSample(client));
  const copyFor = (key: string): Item => {
    const item = JSON.parse(sample.replaceAll(SAMPLE, key)) as Item;
    return { ...item, PK: { S: `bucket#${key}` }, b_rph_tk: RICH, b_tph_tk: RICH };
  };
  await putAll(client, keys.map(copyFor));
  return async (key) => {
    await client.updateItem(takeOne(`bucket#${key}`, 'b_rph_tk', 'b_tph_tk'));
  };
}

/** A page of a scan may have no item that passes the filter, where other loads have filled the table. */
async function readSample(client: DynamoDB): Promise<Item> {
  let next: Item | undefined;
  do {
    const page = await client.scan({
      TableName: TABLE,
      FilterExpression: 'contains(PK, :sample)',
      ExpressionAttributeValues: { ':sample': { S: `/BUCKET#${SAMPLE}#` } },
      ExclusiveStartKey: next,
    });
    const [found] = page.Items ?? [];
    if (found !== undefined) return found;
    next = page.LastEvaluatedKey;
  } while (next !== undefined);
  throw new Error(`The table ${TABLE} has no bucket of ${SAMPLE}`);
}

/** The writes of `bareBucket` and `bareCounter`, on the same items, sent by the lean transport. */
export function leanWrites(reach: { readonly endpoint: string; readonly region: string }): {
  readonly bucket: Contender;
  readonly counter: Contender;
  readonly close: () => void;
} {
  const transport = openTransport(reach);
  const send = async (input: UpdateItemInput): Promise<void> => {
    await transport.send('UpdateItem', input, deadlineIn(PATIENCE_MS));
  };
  return {
    bucket: async (key) => send(takeOne(`bucket#${key}`, 'b_rph_tk', 'b_tph_tk')),
    counter: async (key) => send(takeOne(`counter#${key}`, 'tk')),
    close: () => transport.close(),
  };
}

async function putAll(client: DynamoDB, items: readonly Item[]): Promise<void> {
  for (let at = 0; at < items.length; at += MAX_IN_BATCH) {
    const requests = items.slice(at, at + MAX_IN_BATCH).map((Item) => ({ PutRequest: { Item } }));
    await client.batchWriteItem({ RequestItems: { [TABLE]: requests } });
  }
}

/** Updates a counter that does not exist. */
export function bareDenied(client: DynamoDB): Contender {
  return async (key) => {
    const refused = await client.updateItem(takeOne(`missing#${key}`, 'tk')).then(
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
