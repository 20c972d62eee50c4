import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { stopTimers, until } from '../../../../../tests/support/models/hand-time.js';
import { deadlineIn } from '../../../../machine-time.js';
import { failureOf } from '../failures.js';
import type { Transport } from '../transport.js';
import { leanTransport, type LeanInternals } from './lean-transport.js';
import type { SettingsPackages } from './provider-chain.js';

const HOUR_MS = 3_600_000;
const FOUND_NOTHING = '{"ConsumedCapacity":{"TableName":"table","CapacityUnits":0.5}}';
const GET = { TableName: 'table', Key: { PK: { S: 'a' }, SK: { S: 'b' } } };
const missing = async (): Promise<never> => Promise.reject(new Error('Cannot find package'));
const NONE: SettingsPackages = { providers: missing, client: missing };
const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function serve(answer: RequestListener): Promise<{ readonly server: Server; readonly endpoint: string }> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close().closeAllConnections());
  return { server, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function transportTo(endpoint: string, internals: Partial<LeanInternals> = {}): Transport {
  const transport = leanTransport({ endpoint, region: 'us-east-1' }, { packages: NONE, env: {}, ...internals });
  closing.push(() => transport.close());
  return transport;
}

const get = async (transport: Transport, timeoutMs = 20_000) => transport.send('GetItem', GET, deadlineIn(timeoutMs));
const failureBy = async (sending: Promise<unknown>) =>
  failureOf(await sending.catch((error: unknown) => error), 'GetItem', 'table');

test('a request is a signed POST with the operation as its target', async () => {
  const seen: { request: IncomingMessage; body: string }[] = [];
  const { endpoint } = await serve((request, answer) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      seen.push({ request, body: Buffer.concat(chunks).toString() });
      answer.end(FOUND_NOTHING);
    });
  });
  const env = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret', AWS_SESSION_TOKEN: 'token' };
  const key = { PK: { S: 'ünï' }, SK: { S: 'b' } };
  await transportTo(`${endpoint}/some/path`, { env }).send('GetItem', { ...GET, Key: key }, deadlineIn(20_000));
  const [{ request, body } = { request: undefined, body: '' }] = seen;
  expect(JSON.parse(body)).toEqual({ ...GET, Key: key });
  expect([request?.method, request?.url]).toEqual(['POST', '/some/path']);
  expect(request?.headers).toMatchObject({
    'x-amz-target': 'DynamoDB_20120810.GetItem',
    'x-amz-security-token': 'token',
    'content-type': 'application/x-amz-json-1.0',
    host: endpoint.slice('http://'.length),
    authorization: expect.stringContaining(
      'SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, ',
    ) as string,
  });
});

test('a transaction without a token gets a new one, and a token of the caller is kept', async () => {
  const tokens: unknown[] = [];
  const { endpoint } = await serve((request, answer) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as { readonly ClientRequestToken?: unknown };
      tokens.push(body.ClientRequestToken);
      answer.end('{"ConsumedCapacity":[]}');
    });
  });
  const transport = transportTo(endpoint);
  const input = { TransactItems: [{ Put: { TableName: 'table', Item: GET.Key } }] };
  for (const given of [{}, {}, { ClientRequestToken: 'mine' }]) {
    await transport.send('TransactWriteItems', { ...input, ...given }, deadlineIn(20_000));
  }
  const uuid = expect.stringMatching(/^[\da-f-]{36}$/) as string;
  expect(tokens).toEqual([uuid, uuid, 'mine']);
  expect(tokens[0]).not.toBe(tokens[1]);
});

test('requests share connections that are kept open', async () => {
  const sockets = new Set<Socket>();
  const { endpoint } = await serve((request, answer) => {
    sockets.add(request.socket);
    answer.end(FOUND_NOTHING);
  });
  const transport = transportTo(endpoint);
  for (let sent = 0; sent < 5; sent++) await get(transport);
  expect(sockets.size).toBe(1);
});

test('a transport that was closed connects again with the next request', async () => {
  const sockets = new Set<Socket>();
  const { endpoint } = await serve((request, answer) => {
    sockets.add(request.socket);
    answer.end(FOUND_NOTHING);
  });
  const transport = transportTo(endpoint);
  await get(transport);
  transport.close();
  await get(transport);
  expect(sockets.size).toBe(2);
});

test('requests are signed with the time of the store after one answer, whatever the wall clock is set to', async () => {
  const signedAt: string[] = [];
  const trueNow = Date.now.bind(Date);
  const { endpoint } = await serve((request, answer) => {
    signedAt.push(String(request.headers['x-amz-date']));
    answer.setHeader('Date', new Date(trueNow()).toUTCString());
    answer.end(FOUND_NOTHING);
  });
  let wrongByMs = -HOUR_MS;
  const setClock = vi.spyOn(Date, 'now').mockImplementation(() => trueNow() + wrongByMs);
  const transport = transportTo(endpoint);
  await get(transport);
  expect([transport.storeTimeMs(), transport.isTimeInDoubt?.()]).toEqual([null, true]);
  await get(transport);
  expect(Math.round(Math.abs((transport.storeTimeMs() ?? 0) - trueNow()) / HOUR_MS)).toBe(0);
  wrongByMs = HOUR_MS;
  await get(transport);
  setClock.mockRestore();
  const hoursOff = signedAt.map((text) => {
    const iso = text.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5');
    return Math.round(Math.abs(Date.parse(iso) - trueNow()) / HOUR_MS);
  });
  expect(hoursOff).toEqual([1, 0, 0]);
});

test('a request that is not answered ends at its deadline, may have been written, and its connection is closed', async () => {
  using time = stopTimers();
  let closed = 0;
  const { endpoint } = await serve((request) => {
    request.socket.on('close', () => (closed += 1));
    time.pass(20);
  });
  const failure = await failureBy(get(transportTo(endpoint), 20));
  expect(failure).toMatchObject({ kind: 'lost', unsent: false, error: { kind: 'timeout' } });
  await until(() => closed === 1);
});

test('an answer that does not end before the deadline is lost, and its connection is not used again', async () => {
  using time = stopTimers();
  const ports: (number | undefined)[] = [];
  const { endpoint } = await serve((request, answer) => {
    ports.push(request.socket.remotePort);
    if (ports.length > 1) answer.end(FOUND_NOTHING);
    else answer.writeHead(200).write(FOUND_NOTHING.slice(0, 20), () => time.pass(20));
  });
  const transport = transportTo(endpoint);
  expect(await failureBy(get(transport, 20))).toMatchObject({ kind: 'lost', error: { kind: 'timeout' } });
  await get(transport);
  expect(ports[0]).not.toBe(ports[1]);
});

test('concurrent requests end at their own deadlines', async () => {
  using time = stopTimers();
  const held: ServerResponse[] = [];
  const { endpoint } = await serve((_, answer) => void held.push(answer));
  const transport = transportTo(endpoint);
  const [short, long] = [20, 20_000].map(async (ms) => get(transport, ms));
  await until(() => held.length === 2);
  time.pass(20);
  await expect(short).rejects.toMatchObject({ name: 'AbortError' });
  for (const answer of held) answer.end(FOUND_NOTHING);
  expect(await long).toMatchObject({ ConsumedCapacity: { CapacityUnits: 0.5 } });
});

test('a request is sent once: a connection that the server closes is a lost answer', async () => {
  let requests = 0;
  const { endpoint } = await serve((request, answer) => {
    requests += 1;
    if (requests === 1) answer.end(FOUND_NOTHING);
    else request.socket.destroy();
  });
  const transport = transportTo(endpoint);
  await get(transport);
  expect(await failureBy(get(transport))).toMatchObject({ kind: 'lost', error: { kind: 'connection' } });
  expect(requests).toBe(2);
});

test('a connection that cannot be made in time is told from a lost answer', async () => {
  // The host name never resolves.
  const transport = transportTo('http://host.invalid', {
    env: { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' },
    lookup: () => {},
    connectMs: 10,
  });
  expect(await failureBy(get(transport))).toMatchObject({ kind: 'lost', unsent: true, error: { kind: 'timeout' } });
});

test('a request whose deadline passes before the connection is made was not sent', async () => {
  const env = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
  const transport = transportTo('http://host.invalid', { env, lookup: () => {} });
  expect(await failureBy(get(transport, 10))).toMatchObject({ kind: 'lost', unsent: true });
});

test('a host that does not exist is unreached', async () => {
  const env = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
  const lookup: LeanInternals['lookup'] = (hostname, _, done) =>
    done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' }), '', 4);
  const transport = transportTo('http://host.invalid', { env, lookup });
  expect(await failureBy(get(transport))).toMatchObject({ kind: 'unreached', error: { kind: 'connection' } });
});

test('a TLS endpoint that does not speak TLS gets no part of the request', async () => {
  const received: Buffer[] = [];
  const server = createSocketServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received.push(chunk);
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close());
  const transport = transportTo(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(await failureBy(get(transport))).toMatchObject({ kind: 'lost', error: { kind: 'connection' } });
  expect(Buffer.concat(received).toString('latin1')).not.toContain('POST');
});

test('a TLS handshake that does not end before the deadline leaves the request unsent', async () => {
  using time = stopTimers();
  const server = createSocketServer((socket) => {
    closing.push(() => socket.destroy());
    socket.on('data', () => time.pass(20));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close());
  const transport = transportTo(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(await failureBy(get(transport, 20))).toMatchObject({ kind: 'lost', unsent: true });
});

test('credentials that DynamoDB calls expired are fetched again for the next request', async () => {
  const used: (string | undefined)[] = [];
  const { endpoint } = await serve((request, answer) => {
    const [, key] = /Credential=([^/]+)/.exec(String(request.headers.authorization)) ?? [];
    used.push(key);
    if (key === 'new') answer.end(FOUND_NOTHING);
    else answer.writeHead(400).end('{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"expired"}');
  });
  const env = { AWS_ACCESS_KEY_ID: 'old', AWS_SECRET_ACCESS_KEY: 'b' };
  const transport = transportTo(endpoint, { env });
  const expired = await failureBy(get(transport));
  expect(expired).toMatchObject({ kind: 'fatal', error: { code: 'backend.denied' } });
  env.AWS_ACCESS_KEY_ID = 'new';
  await get(transport);
  await get(transport);
  expect(used).toEqual(['old', 'new', 'new']);
});

test('credentials that are not there before the deadline leave the request unsent', async () => {
  const providers = { fromNodeProviderChain: () => async () => new Promise<never>(() => {}) };
  const transport = transportTo('http://host.invalid', { packages: { ...NONE, providers: async () => providers } });
  expect(await failureBy(get(transport, 10))).toMatchObject({ kind: 'lost', unsent: true });
});

test('a region that is missing is bad input, and a later request finds it', async () => {
  const { endpoint } = await serve((_, answer) => void answer.end(FOUND_NOTHING));
  const env: Record<string, string> = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
  const transport = leanTransport({}, { packages: NONE, env });
  closing.push(() => transport.close());
  expect(await failureBy(get(transport))).toMatchObject({ kind: 'fatal', error: { code: 'input.invalid' } });
  Object.assign(env, { AWS_REGION: 'us-east-1', AWS_ENDPOINT_URL_DYNAMODB: endpoint });
  await get(transport);
});
