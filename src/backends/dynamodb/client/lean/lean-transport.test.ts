import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import {
  closeAll,
  closing,
  failureBy,
  FOUND_NOTHING,
  GET,
  get,
  lookupWith,
  NONE,
  serve,
  transportTo,
} from '../../../../../tests/support/dynamodb/lean-transports.js';
import { stopTimers, until } from '../../../../../tests/support/models/hand-time.js';
import { deadlineIn } from '../../../../machine-time.js';
import { leanTransport, type LeanInternals } from './lean-transport.js';

afterEach(closeAll);

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

test.each(['token ', ' token', 'token\n'])(
  'a session token with blanks around it, %j, is sent and signed without them',
  async (AWS_SESSION_TOKEN) => {
    const seen: IncomingMessage[] = [];
    const { endpoint } = await serve((request, answer) => {
      seen.push(request);
      answer.end(FOUND_NOTHING);
    });
    using _ = vi.spyOn(Date, 'now').mockImplementation(() => 1_800_000_000_000);
    const env = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
    for (const token of [AWS_SESSION_TOKEN, 'token']) {
      await get(transportTo(endpoint, { env: { ...env, AWS_SESSION_TOKEN: token } }));
    }
    const [given, trimmed] = seen.map(({ headers }) => headers);
    expect(given?.['x-amz-security-token']).toBe('token');
    expect(given?.authorization).toBe(trimmed?.authorization);
  },
);

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

test('a connection that cannot be made within 500 ms is distinguished from a lost answer', async () => {
  using time = stopTimers();
  const { endpoint } = await serve((_, answer) => void answer.end(FOUND_NOTHING));
  const lookup = lookupWith(
    () => {},
    () => time.pass(500),
  );
  const env = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
  const transport = transportTo(endpoint.replace('127.0.0.1', 'dynamodb.test'), { env, lookup });
  expect(await failureBy(get(transport))).toMatchObject({ kind: 'lost', unsent: true, error: { kind: 'timeout' } });
});

test('the time of a look-up does not count against the 500 ms of a connection, but against the deadline', async () => {
  using time = stopTimers();
  const { endpoint } = await serve((_, answer) => void answer.end(FOUND_NOTHING));
  const lookup = lookupWith(() => time.pass(700));
  const env = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
  const transport = transportTo(endpoint.replace('127.0.0.1', 'dynamodb.test'), { env, lookup });
  expect(await get(transport, 10_000)).toHaveProperty('ConsumedCapacity');
  transport.close();
  expect(await failureBy(get(transport, 600))).toMatchObject({ kind: 'lost', unsent: true });
});

test('a request of a transport that is closed before its settings are there opens no connection', async () => {
  let connections = 0;
  const { server, endpoint } = await serve((_, answer) => void answer.end(FOUND_NOTHING));
  server.on('connection', () => (connections += 1));
  const transport = transportTo(endpoint);
  const sending = failureBy(get(transport));
  transport.close();
  expect(await sending).toMatchObject({ kind: 'lost', unsent: true });
  expect(connections).toBe(0);
  expect(await get(transport)).toHaveProperty('ConsumedCapacity');
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
  expect(await failureBy(get(transport))).toMatchObject({ kind: 'lost', unsent: true, error: { kind: 'connection' } });
  expect(Buffer.concat(received).toString('latin1')).not.toContain('POST');
});

test('a TLS handshake that the server resets leaves the request unsent', async () => {
  const server = createSocketServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.resetAndDestroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close());
  const transport = transportTo(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(await failureBy(get(transport))).toMatchObject({ kind: 'lost', unsent: true, error: { kind: 'connection' } });
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
