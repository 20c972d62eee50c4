import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, type LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { stopTimers, until } from '../../../../../tests/support/models/hand-time.js';
import { deadlineIn } from '../../../../machine-time.js';
import { failureOf } from '../failures.js';
import type { Transport } from '../transport.js';
import { leanTransport } from './lean-transport.js';

const FOUND_NOTHING = '{"ConsumedCapacity":{"TableName":"table","CapacityUnits":0.5}}';
const GET = { TableName: 'table', Key: { PK: { S: 'a' }, SK: { S: 'b' } } };
const FIXTURES = new URL('../../../../../tests/fixtures/tls/', import.meta.url);
const [cert, key] = ['cert.pem', 'key.pem'].map((name) => readFileSync(new URL(name, FIXTURES), 'utf8')) as [
  string,
  string,
];
const KEYS = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
const missing = async (): Promise<never> => Promise.reject(new Error('Cannot find package'));
/** Every host is this machine. */
const lookup: LookupFunction = (_, options, done) =>
  options.all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);

/** A store, and a proxy that tunnels to the store whatever host it is asked for. */
let store: Server;
let storePort: number;
let proxy: Server;
let proxyUrl: string;
let asked: { readonly target: string | undefined; readonly authorization: string | undefined }[];
let tunnelStatus: number;
/** The open connections of tunnels that the proxy does not make. */
const waiting = new Set<Duplex>();
const transports: Transport[] = [];

beforeEach(async () => {
  asked = [];
  tunnelStatus = 200;
  store = createHttpsServer({ cert, key }, (request, answer) => {
    request.resume().on('end', () => answer.end(FOUND_NOTHING));
  });
  storePort = await listen(store);
  proxy = createHttpServer((request, answer) => {
    note(request);
    request.resume().on('end', () => answer.end(FOUND_NOTHING));
  });
  proxy.on('connect', (request: IncomingMessage, socket) => {
    note(request);
    socket.on('error', () => {});
    if (tunnelStatus === 0) return void socket.destroy();
    if (tunnelStatus === 1) return held(socket);
    if (tunnelStatus !== 200) return void socket.end(`HTTP/1.1 ${tunnelStatus} No\r\n\r\n`);
    const upstream = connect(storePort, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    upstream.on('error', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
  });
  proxyUrl = `http://127.0.0.1:${await listen(proxy)}`;
});

afterEach(() => {
  for (const transport of transports.splice(0)) transport.close();
  for (const server of [store, proxy]) server.close().closeAllConnections();
});

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function held(socket: Duplex): void {
  waiting.add(socket.resume());
  // The server's half stays open until it is ended.
  socket.on('end', () => void socket.end()).on('close', () => waiting.delete(socket));
}

function note({ url: target, headers }: IncomingMessage): void {
  asked.push({ target, authorization: headers['proxy-authorization'] });
}

function transportTo(endpoint: string, env: Record<string, string>, ca: string | undefined = cert): Transport {
  const transport = leanTransport(
    { endpoint, region: 'us-east-1' },
    {
      packages: { providers: missing, client: missing },
      env: { ...KEYS, ...env },
      lookup,
      ...(ca === '' ? {} : { ca }),
    },
  );
  transports.push(transport);
  return transport;
}

const get = async (transport: Transport) => transport.send('GetItem', GET, deadlineIn(20_000));
const failureBy = async (transport: Transport) =>
  failureOf(await get(transport).catch((error: unknown) => error), 'GetItem', 'table');
const found = { ConsumedCapacity: { CapacityUnits: 0.5 } };

test('an https endpoint is reached over TLS without a proxy', async () => {
  expect(await get(transportTo(`https://dynamodb.test:${storePort}`, {}))).toMatchObject(found);
  expect(asked).toEqual([]);
});

test('a connection over TLS is kept longer than it may take to connect, with a proxy and without one', async () => {
  using time = stopTimers();
  let connections = 0;
  store.on('secureConnection', () => (connections += 1));
  for (const env of [{}, { HTTPS_PROXY: proxyUrl }]) {
    const transport = transportTo(`https://dynamodb.test:${storePort}`, env);
    for (let sent = 0; sent < 3; sent++) {
      expect(await get(transport)).toMatchObject(found);
      time.pass(10_000);
    }
  }
  expect(connections).toBe(2);
});

test('a certificate that is not trusted, or of another host, is fatal, because no retry would help', async () => {
  for (const transport of [
    transportTo(`https://dynamodb.test:${storePort}`, {}, ''),
    transportTo(`https://other.test:${storePort}`, {}),
  ]) {
    expect(await failureBy(transport)).toMatchObject({ kind: 'fatal', error: { code: 'infrastructure.dynamodb' } });
  }
});

test('requests to an https endpoint share one tunnel through the proxy, which gets its password and no other header', async () => {
  const env = { HTTPS_PROXY: proxyUrl.replace('//', '//ann:secret@') };
  const transport = transportTo(`https://dynamodb.test:${storePort}`, env);
  for (let sent = 0; sent < 3; sent++) expect(await get(transport)).toMatchObject(found);
  const authorization = `Basic ${Buffer.from('ann:secret').toString('base64')}`;
  expect(asked).toEqual([{ target: `dynamodb.test:${storePort}`, authorization }]);
});

test('a tunnel to an IPv6 address has the address in brackets, without which its end would be taken for the port', async () => {
  const transport = transportTo(`https://[2001:db8::1]:${storePort}`, { HTTPS_PROXY: proxyUrl });
  // The certificate is of another host.
  expect(await failureBy(transport)).toMatchObject({ kind: 'fatal' });
  expect(asked).toEqual([{ target: `[2001:db8::1]:${storePort}` }]);
});

test('requests to an http endpoint are forwarded by the proxy', async () => {
  const transport = transportTo('http://dynamodb.test:8000', { HTTP_PROXY: proxyUrl.replace('//', '//ann:secret@') });
  expect(await get(transport)).toMatchObject(found);
  const authorization = `Basic ${Buffer.from('ann:secret').toString('base64')}`;
  expect(asked).toEqual([{ target: 'http://dynamodb.test:8000/', authorization }]);
});

test('a host that NO_PROXY names is reached without the proxy', async () => {
  const env = { HTTPS_PROXY: proxyUrl, NO_PROXY: '.test' };
  expect(await get(transportTo(`https://dynamodb.test:${storePort}`, env))).toMatchObject(found);
  expect(asked).toEqual([]);
});

test.each([407, 502])('a proxy that refuses a tunnel with status %d leaves the store unreached', async (status) => {
  tunnelStatus = status;
  const transport = transportTo(`https://dynamodb.test:${storePort}`, {
    HTTPS_PROXY: proxyUrl.replace('//', '//a:secret@'),
  });
  const failure = await failureBy(transport);
  expect(failure).toMatchObject({ kind: 'unreached', error: { kind: 'connection' } });
  expect(JSON.stringify(failure)).not.toContain('secret');
  tunnelStatus = 200;
  expect(await get(transport)).toMatchObject(found);
});

test('a proxy that is not there leaves the store unreached', async () => {
  const transport = transportTo(`https://dynamodb.test:${storePort}`, { HTTPS_PROXY: proxyUrl });
  proxy.close().closeAllConnections();
  await once(proxy, 'close');
  expect(await failureBy(transport)).toMatchObject({ kind: 'unreached', error: { kind: 'connection' } });
});

test('a proxy that closes the connection instead of making a tunnel leaves the store unreached', async () => {
  tunnelStatus = 0;
  const transport = transportTo(`https://dynamodb.test:${storePort}`, { HTTPS_PROXY: proxyUrl });
  expect(await failureBy(transport)).toMatchObject({ kind: 'unreached', error: { kind: 'connection' } });
});

test('a request to a proxy that does not answer ends at the deadline of its request, which was not sent', async () => {
  using time = stopTimers();
  tunnelStatus = 1;
  const transport = transportTo(`https://dynamodb.test:${storePort}`, { HTTPS_PROXY: proxyUrl });
  const failing = Array.from({ length: 3 }, async () =>
    failureOf(
      await transport.send('GetItem', GET, deadlineIn(200)).catch((error: unknown) => error),
      'GetItem',
      'table',
    ),
  );
  await until(() => waiting.size === 3);
  time.pass(200);
  for (const failure of failing) expect(await failure).toMatchObject({ kind: 'lost', unsent: true });
  await until(() => waiting.size === 0);
});

test('closing a transport ends the requests to a proxy that does not answer', async () => {
  tunnelStatus = 1;
  const transport = transportTo(`https://dynamodb.test:${storePort}`, { HTTPS_PROXY: proxyUrl });
  const failing = failureBy(transport);
  await until(() => waiting.size === 1);
  transport.close();
  expect(await failing).toMatchObject({ kind: 'lost', unsent: true });
  await until(() => waiting.size === 0);
});
