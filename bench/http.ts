import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { type Engine, findEngine, startEngine, startFaultProxy } from 'headgate/testing/dynamodb';
import { clientOf, createTables, leanReach, TABLE } from './dynamodb-peers.js';
import type { ClientNews, ClientOrder } from './http-client.js';
import type { ServedStore, ServerNews } from './http-server.js';
import { compare } from './interleave.js';
import { callEach } from './load.js';
import { FLAGS, PAIRS, sized } from './settings.js';
import { type Row, within } from './table.js';
import { unitsOf } from './write-units.js';

const REQUESTS = 4_000;
const CONNECTIONS = 32;
const CLIENTS = 8;
const CALLERS = 64;
const HOT_MS = 2_000;
/** How long the item of a busy bucket is watched. The goal is about two minutes: HEADGATE_SOAK_MS=120000. */
const SOAK_MS = Number(process.env['HEADGATE_SOAK_MS'] ?? 10_000);
const KB = 1_024;
const BODY = JSON.stringify({ entityId: 'user-1', resource: 'gpt-4', consume: { rph: 1, tph: 100 } });

/** What a server adds to an app that answers a constant, and what a hot bucket costs behind one server. */
export async function* httpRows(): AsyncGenerator<Row> {
  yield await cpuRow();
  if (findEngine('dynoxide').status === 'available') yield* hotBucketRows();
}

/** The CPU of the server process. The clients are in this process. */
async function cpuRow(): Promise<Row> {
  await using ours = await BenchServer.start({ kind: 'memory' });
  await using theirs = await BenchServer.start({ kind: 'constant' });
  const comparison = await compare(
    () => cpuUs(ours),
    () => cpuUs(theirs),
  );
  const name = 'CPU of an acquire over HTTP on memory / a constant';
  return { name, unit: 'us', ...comparison, goal: 1.5, goalIs: 'most' };
}

async function cpuUs(server: BenchServer): Promise<number> {
  const requests = Array.from({ length: sized(REQUESTS) }, () => server.url);
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const before = await server.cpuUs();
  await callEach(requests, CONNECTIONS, (url) => post(url, agent));
  const after = await server.cpuUs();
  agent.destroy();
  return (after - before) / requests.length;
}

async function post(url: string, agent: Agent): Promise<void> {
  const headers = { 'content-type': 'application/json', 'content-length': BODY.length };
  const asked = request(`${url}/v1/acquire`, { method: 'POST', agent, headers });
  asked.end(BODY);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== 200) throw new Error(`Expected 200, got ${response.statusCode}`);
}

/** Eight client processes, 512 calls in flight, one server, one bucket. */
async function* hotBucketRows(): AsyncGenerator<Row> {
  await using engine = await startEngine('dynoxide');
  await using proxy = await startFaultProxy(engine.endpoint, { record: true, askForCapacity: true });
  const client = clientOf(engine, engine.endpoint);
  const { region } = leanReach(engine);
  await createTables(client);
  await using server = await BenchServer.start({ kind: 'dynamodb', endpoint: proxy.endpoint, region });
  const children = Array.from({ length: CLIENTS }, () => fork(process.argv[1] ?? '', ['http-client', ...FLAGS]));
  const load = async (forMs: number): Promise<number> => {
    const order: ClientOrder = { url: server.url, callers: CALLERS, forMs };
    const all = await Promise.all(children.map((child) => tell<ClientNews>(child, order)));
    return all.reduce((sum, { grants }) => sum + grants, 0);
  };
  try {
    await load(sized(HOT_MS));
    const perGrant: number[] = [];
    for (let round = 0; round < PAIRS; round++) {
      proxy.requests.clear();
      const grants = await load(sized(HOT_MS));
      perGrant.push(unitsOf(proxy.requests) / grants);
    }
    const name = `write units per grant, 1 server, ${CLIENTS} clients, ${CLIENTS * CALLERS} calls in flight`;
    yield within(name, 'units', perGrant, 0.02);
    yield await soakRow(engine, client, load, () => proxy.requests.clear());
  } finally {
    for (const child of children) child.kill();
    client.destroy();
  }
}

/** The largest item of the bucket while the clients take from it as fast as the machine allows. */
async function soakRow(
  engine: Engine,
  client: DynamoDB,
  load: (forMs: number) => Promise<number>,
  forget: () => void,
): Promise<Row> {
  const seconds = Math.ceil(sized(SOAK_MS) / 1_000);
  const largest: number[] = [];
  const startMs = performance.now();
  let grants = 0;
  for (let second = 0; second < seconds; second++) {
    grants += await load(1_000);
    largest.push(await largestItem(client));
    forget();
  }
  const perSecond = Math.round((grants / (performance.now() - startMs)) * 1_000);
  const name = `largest item of the bucket in ${seconds} s of ${perSecond} grants/s (${engine.name})`;
  return within(name, 'bytes', largest, KB);
}

/** As DynamoDB counts: the names and the values of all attributes. */
async function largestItem(client: DynamoDB): Promise<number> {
  const { Items: items = [] } = await client.scan({ TableName: TABLE });
  const buckets = items.filter(({ PK }) => PK?.S?.includes('/BUCKET#hot#'));
  return Math.max(
    ...buckets.map((item) => Object.entries(item).reduce((sum, [name, value]) => sum + name.length + sizeOf(value), 0)),
  );
}

function sizeOf(value: object): number {
  const [inner] = Object.values(value) as unknown[];
  return typeof inner === 'string' ? Buffer.byteLength(inner) : JSON.stringify(inner).length;
}

/** A process that runs `serveForBench`. */
class BenchServer implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async start(served: ServedStore): Promise<BenchServer> {
    const child = fork(process.argv[1] ?? '', ['http-server', JSON.stringify(served), ...FLAGS]);
    const [news] = (await once(child, 'message')) as [ServerNews];
    return new BenchServer(child, news.url);
  }

  async cpuUs(): Promise<number> {
    return (await tell<ServerNews>(this.#child, {})).cpuUs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }
}

async function tell<T>(child: ChildProcess, order: object): Promise<T> {
  const answer = once(child, 'message');
  child.send(order);
  const [news] = await answer;
  return news as T;
}
