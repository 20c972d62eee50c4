import type { AttributeValue, DynamoDB } from '@aws-sdk/client-dynamodb';
import { findEngine, type RequestLog, startEngine, startFaultProxy } from 'headgate/testing/dynamodb';
import { MILLI } from '../src/core/units.js';
import { clientOf, createTables, leanReach, TABLE } from './dynamodb-peers.js';
import { type Granted, HttpLoad } from './http-load.js';
import { BenchServer } from './http-process.js';
import { sized } from './settings.js';
import { spreadOf } from './spread.js';
import { type Row, within } from './table.js';
import { unitsOf } from './write-units.js';

/** How long the bucket is watched, in seconds. The goal is about two minutes: HEADGATE_SOAK_MS=120000. */
const SECONDS = Math.ceil(sized(Number(process.env['HEADGATE_SOAK_MS'] ?? 20_000)) / 1_000);
const WARM_UP_MS = 2_000;
const GOAL_PER_SECOND = 10_000;
const KB = 1_024;
const ENTITY = 'hot';

type Item = Record<string, AttributeValue>;

/** One second of the soak. */
interface Sample {
  readonly perSecond: number;
  readonly unitsPerGrant: number;
  readonly largestBytes: number;
}

/**
 * One server, one bucket, as many plain acquires as the machine allows. Throws if the store has not counted exactly what
 * was answered, or if the item of the bucket reaches 1 KB, from where on each write costs two units.
 */
export async function* soakRows(): AsyncGenerator<Row> {
  if (findEngine('dynoxide').status === 'unavailable') return;
  await using engine = await startEngine('dynoxide');
  await using proxy = await startFaultProxy(engine.endpoint, { record: true, askForCapacity: true });
  const client = clientOf(engine, engine.endpoint);
  const { region } = leanReach(engine);
  await createTables(client);
  await using server = await BenchServer.start({ kind: 'dynamodb', endpoint: proxy.endpoint, region });
  const load = new HttpLoad(server.url, ENTITY);
  try {
    await load.runFor(sized(WARM_UP_MS));
    proxy.requests.clear();
    const samples: Sample[] = [];
    const cpuBefore = await server.cpuUs();
    const grantsBefore = load.granted.grants;
    for (let second = 0; second < SECONDS; second++) samples.push(await watch(load, client, proxy.requests));
    const cpuUs = ((await server.cpuUs()) - cpuBefore) / (load.granted.grants - grantsBefore);
    await checkCounted(client, await load.stop());
    console.log(`The server used ${cpuUs.toFixed(0)} us of CPU per grant`);
    yield* rowsOf(samples, engine.name);
  } finally {
    client.destroy();
  }
}

/** Watches one second of the load. */
async function watch(load: HttpLoad, client: DynamoDB, requests: RequestLog): Promise<Sample> {
  const startMs = performance.now();
  const { grants: before } = load.granted;
  await load.runFor(1_000);
  const grants = load.granted.grants - before;
  const perSecond = (grants / (performance.now() - startMs)) * 1_000;
  const unitsPerGrant = unitsOf(requests) / grants;
  const largestBytes = Math.max(...(await readBuckets(client)).map(bytesOf));
  requests.clear();
  return { perSecond, unitsPerGrant, largestBytes };
}

function* rowsOf(samples: readonly Sample[], engine: string): Generator<Row> {
  const measured = (name: keyof Sample): readonly number[] => samples.map((sample) => sample[name]);
  const rates = measured('perSecond');
  yield {
    name: `grants per second over HTTP, 1 server, 1 bucket, ${SECONDS} s (${engine})`,
    unit: '/s',
    ours: spreadOf(rates).median,
    theirs: GOAL_PER_SECOND,
    ratio: spreadOf(rates.map((rate) => rate / GOAL_PER_SECOND)),
    goal: 1,
    goalIs: 'least',
  };
  const bytes = measured('largestBytes');
  const largest = Math.max(...bytes);
  yield within(`item of that bucket, at most ${largest} bytes`, 'bytes', bytes, KB);
  yield within('write units per grant of that bucket', 'units', measured('unitsPerGrant'), 0.02);
  if (!(largest < KB)) throw new Error(`Expected an item of less than ${KB} bytes, got ${largest}`);
}

/** A grant that the store has not counted is lost. One that it has counted twice is taken from the next callers. */
async function checkCounted(client: DynamoDB, { grants, tokens }: Granted): Promise<void> {
  const items = await readBuckets(client);
  const counted = (limit: string): number =>
    items.reduce((sum, item) => sum + Number(item[`b_${limit}_tc`]?.N ?? 0), 0) / MILLI;
  console.log(`${grants} grants of ${tokens} tokens; the store has counted ${counted('rph')} and ${counted('tph')}`);
  if (counted('rph') !== grants || counted('tph') !== tokens)
    throw new Error('Expected the store to count every grant once');
}

/** The shards of the bucket. */
async function readBuckets(client: DynamoDB): Promise<readonly Item[]> {
  const { Items: items = [] } = await client.scan({ TableName: TABLE });
  return items.filter(({ PK }) => PK?.S?.includes(`/BUCKET#${ENTITY}#`));
}

/** As DynamoDB counts: the names and the values of all attributes. */
function bytesOf(item: Item): number {
  return Object.entries(item).reduce((sum, [name, value]) => sum + name.length + sizeOf(value), 0);
}

function sizeOf(value: object): number {
  const [inner] = Object.values(value) as unknown[];
  return typeof inner === 'string' ? Buffer.byteLength(inner) : JSON.stringify(inner).length;
}
