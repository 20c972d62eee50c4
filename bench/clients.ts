import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { type Engine, startEngine } from 'headgate/testing/dynamodb';
import { deadlineIn } from '../src/backends/dynamodb/client/deadline.js';
import { openTransport } from '../src/backends/dynamodb/client/open-transport.js';
import { sdkTransport } from '../src/backends/dynamodb/client/sdk-transport.js';
import type { Transport } from '../src/backends/dynamodb/client/transport.js';
import { clientOf, createTables, headgate, TABLE } from './dynamodb-peers.js';
import { compareCpu, compareLatency, type Load } from './load.js';
import { interleave, median } from './interleave.js';
import type { Contender } from './race.js';
import type { Row } from './table.js';

const KEYS = Array.from({ length: 1_000 }, (_, index) => `client-${index}`);
const IN_FLIGHT: Load = { keys: KEYS, concurrency: 16, roundMs: 2_000 };
const COLD_STARTS = 9;
const PATIENCE_MS = 30_000;

/** The lean transport, which a store uses without a client, against the AWS SDK's client. Each request is one write. */
export async function* clientRows(): AsyncGenerator<Row> {
  await using engine = await startEngine('dynoxide');
  process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
  const client = clientOf(engine, engine.endpoint);
  const { endpoint, region } = engine;
  try {
    await createTables(client);
    const transports = [openTransport({ endpoint, region }), sdkTransport({ client })] as const;
    const [lean, sdk] = transports.map(updater);
    if (lean === undefined || sdk === undefined) throw new Error('Expected two transports');
    const most = { goalIs: 'most' } as const;
    const requests = await compareCpu(IN_FLIGHT, lean, sdk);
    yield { name: 'CPU per request / SDK, 16 in flight', unit: 'us', goal: 0.4, ...most, ...requests };
    const acquires = [await headgate({ endpoint, region }, KEYS), await headgate({ client }, KEYS)] as const;
    const cpu = await compareCpu(IN_FLIGHT, ...acquires);
    yield { name: 'CPU per acquire / SDK, 16 in flight', unit: 'us', goal: 0.4, ...most, ...cpu };
    const latency = await compareLatency(KEYS, ...acquires);
    yield { name: 'latency of an acquire / SDK, 1 caller', unit: 'us', goal: 0.6, ...most, ...latency };
    const start = await coldStartMs(engine);
    yield { name: 'CPU of a bundle to its first decision / SDK', unit: 'ms', goal: 0.5, ...most, ...start };
    for (const transport of transports) transport.close();
  } finally {
    client.destroy();
  }
}

/** Writes like an acquire: it adds to two numbers under a condition, and returns the item. */
function updater(transport: Transport): Contender {
  return async (key) => {
    const input = {
      TableName: TABLE,
      Key: { PK: { S: `client#${key}` }, SK: { S: '#STATE' } },
      UpdateExpression: 'SET w = :w ADD b_rph_tk :rph, b_tph_tk :tph',
      ConditionExpression: 'attribute_not_exists(w) OR w = :w AND b_rph_tk < :most',
      ExpressionAttributeValues: {
        ':w': { S: 'abcdefghijklmn' },
        ':rph': { N: '1' },
        ':tph': { N: '100' },
        ':most': { N: '1000000000000' },
      },
      ReturnValues: 'ALL_NEW' as const,
    };
    await transport.send('UpdateItem', input, deadlineIn(PATIENCE_MS));
  };
}

/** CPU of separate processes, from the import of a bundle, as of a Lambda function, to the answer of its first acquire. */
async function coldStartMs({ endpoint, region }: Engine): Promise<Omit<Row, 'name' | 'unit'>> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-cold-'));
  try {
    const [lean, sdk] = await Promise.all([
      bundle(folder, 'lean', '', `'dynamodb://${TABLE}?region=${region}&endpoint=${endpoint}'`),
      bundle(
        folder,
        'sdk',
        `import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
         import { dynamodb } from 'headgate/dynamodb';`,
        `dynamodb({ table: '${TABLE}', client: new DynamoDBClient({ region: '${region}', endpoint: '${endpoint}' }) })`,
      ),
    ]);
    const measure = join(folder, 'measure.cjs');
    writeFileSync(
      measure,
      `const start = process.cpuUsage();
       require(process.argv[2]).first.then(() => {
         const { user, system } = process.cpuUsage(start);
         console.log((user + system) / 1000);
         process.exit();
       });`,
    );
    const took = async (file: string): Promise<number> =>
      Number(execFileSync(process.execPath, [measure, file], { encoding: 'utf8' }));
    const rounds = await interleave(
      COLD_STARTS,
      async () => took(lean),
      async () => took(sdk),
    );
    return {
      ours: median(rounds.map(({ ours }) => ours)),
      theirs: median(rounds.map(({ theirs }) => theirs)),
      ratio: median(rounds.map(({ ours, theirs }) => ours / theirs)),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function bundle(folder: string, name: string, imports: string, store: string): Promise<string> {
  const outfile = join(folder, `${name}.cjs`);
  const contents = `${imports}
    import { Limit, RateLimiter } from 'headgate';
    const limits = [Limit.perHour('rph', 1_000_000)];
    export const first = RateLimiter.open(${store}, { limits }).then((limiter) =>
      limiter.tryAcquire({ entityId: 'cold', resource: '${name}', consume: { rph: 1 } }));`;
  await build({
    stdin: { contents, resolveDir: process.cwd() },
    bundle: true,
    minify: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20.19',
    external: ['libsql'],
    outfile,
    logLevel: 'error',
  });
  return outfile;
}
