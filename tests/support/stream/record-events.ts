/**
 * Records the streams of the engines as events of Lambda: `npm run record:stream [engine...]`. Creates and writes one
 * bucket, creates and deletes an audit record, and lets one expire if the engine removes expired items.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { DescribeTableCommand, DynamoDBClient, DeleteItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { createTable, dynamodb } from '../../../src/backends/dynamodb/index.js';
import { encodeAudit } from '../../../src/backends/dynamodb/table/records.js';
import { sdkTransport } from '../../../src/backends/dynamodb/client/sdk-transport.js';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { openSdkStream } from '../../../src/backends/dynamodb/stream/worker/sdk-stream.js';
import { type EngineName, startEngine } from '../../../src/testing/dynamodb/index.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';

const TABLE = 'recorded';
const EXPIRES: readonly EngineName[] = ['extenddb'];
const TIMEOUT_MS = 150_000;
const START_SEC = 1_800_000_000;
const PLAIN = ':123456789012:$1/2027-01-15T08:00:00.000';

interface Raw {
  readonly userIdentity?: unknown;
  readonly dynamodb?: { readonly ApproximateCreationDateTime?: Date };
}

async function record(name: EngineName): Promise<void> {
  const engine = await startEngine(name);
  const { endpoint, region, credentials } = engine;
  process.env['AWS_ACCESS_KEY_ID'] = credentials.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = credentials.secretAccessKey;
  const client = new DynamoDBClient({ endpoint, region, credentials });
  try {
    await createTable({ tableName: TABLE, client });
    const clock = fakeClock();
    const limiter = await RateLimiter.open(dynamodb({ table: TABLE, client }), {
      limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 6_000)],
      clock,
    });
    const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 250 } };
    await limiter.acquire(ask);
    await clock.advance(1_000);
    await limiter.acquire(ask);
    const ns = (await limiter.namespaces.get('default'))?.id ?? '';
    const audit = { principal: 'ops', action: 'entity.create', before: null, after: { id: 'user-1' } } as const;
    const common = { ...audit, subject: 'user-1', atMs: 1_600_000_000_000 };
    const [deleted, expires] = ['01DELETED', '01EXPIRED'].map((id) => encodeAudit(ns, { ...common, id }));
    const { ttl: _, ...lasting } = deleted!;
    await client.send(new PutItemCommand({ TableName: TABLE, Item: lasting }));
    await client.send(new DeleteItemCommand({ TableName: TABLE, Key: { PK: lasting['PK']!, SK: lasting['SK']! } }));
    if (EXPIRES.includes(name)) await client.send(new PutItemCommand({ TableName: TABLE, Item: expires! }));
    const { Table } = await client.send(new DescribeTableCommand({ TableName: TABLE }));
    const arn = Table?.LatestStreamArn ?? '';
    const table = { name: TABLE, transport: sdkTransport({ client }), random: Math.random };
    const stream = await openSdkStream(table, { endpoint, region });
    const Records: unknown[] = [];
    const places = new Map<string, string | null>();
    const sawExpiry = (): boolean => Records.some((one) => (one as Raw).userIdentity !== undefined);
    for (const until = Date.now() + TIMEOUT_MS; ;) {
      for (const { id } of await stream.listShards()) {
        const place = places.get(id) ?? (await stream.locate(id, null));
        const page = await stream.read(place);
        places.set(id, page?.next ?? null);
        for (const one of (page?.records ?? []) as Raw[]) {
          // Values that differ in each recording and have no meaning: times and the account.
          const changed = { ...one.dynamodb, ApproximateCreationDateTime: START_SEC + Records.length };
          Records.push({ ...one, dynamodb: changed, eventSourceARN: arn.replace(/:\d{12}:(.*)\/[^/]+$/, PLAIN) });
        }
      }
      if (!EXPIRES.includes(name) || sawExpiry() || Date.now() > until) break;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    mkdirSync('tests/fixtures/stream', { recursive: true });
    writeFileSync(`tests/fixtures/stream/${name}.json`, `${JSON.stringify({ Records }, null, 2)}\n`);
    process.stdout.write(`${name}: ${Records.length} records, expiry ${sawExpiry() ? 'seen' : 'not seen'}\n`);
    stream.close();
    await limiter.close();
  } finally {
    client.destroy();
    await engine.stop();
  }
}

const named = process.argv.slice(2) as EngineName[];
for (const name of named.length > 0 ? named : (['dynoxide', 'extenddb', 'dynamodb-local'] as const)) await record(name);
