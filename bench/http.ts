import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { findEngine, startEngine, startFaultProxy } from 'headgate/testing/dynamodb';
import { clientOf, createTables, leanReach } from './dynamodb-peers.js';
import type { ClientNews, ClientOrder } from './http-client.js';
import { BenchServer, tell } from './http-process.js';
import { compare } from './interleave.js';
import { callEach } from './load.js';
import { FLAGS, PAIRS, sized } from './settings.js';
import { type Row, within } from './table.js';
import { unitsOf } from './write-units.js';

const REQUESTS = 4_000;
const CONNECTIONS = 32;
const CLIENTS = 8;
const CALLERS = 64;
const WARM_UP_MS = 4_000;
const WINDOW_MS = 4_000;
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

/**
 * Eight client processes, 512 calls in flight, one server, one bucket. The clients never pause: while they start, few
 * calls are in flight, and a write carries few of them.
 */
async function* hotBucketRows(): AsyncGenerator<Row> {
  await using engine = await startEngine('dynoxide');
  await using proxy = await startFaultProxy(engine.endpoint, { record: true, askForCapacity: true });
  const client = clientOf(engine, engine.endpoint);
  const { region } = leanReach(engine);
  await createTables(client);
  await using server = await BenchServer.start({ kind: 'dynamodb', endpoint: proxy.endpoint, region });
  const children = Array.from({ length: CLIENTS }, () => fork(process.argv[1] ?? '', ['http-client', ...FLAGS]));
  const order: ClientOrder = { url: server.url, callers: CALLERS };
  const grantsSoFar = async (): Promise<number> => {
    const all = await Promise.all(children.map((child) => tell<ClientNews>(child, order)));
    return all.reduce((sum, { grants }) => sum + grants, 0);
  };
  try {
    await grantsSoFar();
    await delay(sized(WARM_UP_MS));
    const perGrant: number[] = [];
    for (let window = 0; window < PAIRS; window++) {
      const before = await grantsSoFar();
      proxy.requests.clear();
      await delay(sized(WINDOW_MS));
      const units = unitsOf(proxy.requests);
      perGrant.push(units / ((await grantsSoFar()) - before));
    }
    const name = `write units per grant, 1 server, ${CLIENTS} clients, ${CLIENTS * CALLERS} calls in flight`;
    yield within(name, 'units', perGrant, 0.02);
  } finally {
    for (const child of children) child.kill();
    client.destroy();
  }
}
