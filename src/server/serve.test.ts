import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { credentialOf, SECRET } from '../../tests/support/server/request-server.js';
import { Limit } from '../core/limit.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import type { AccessEntry } from './answer/access-log.js';
import { type RunningServer, serve, type ServeOptions } from './serve.js';

const running: { readonly server: RunningServer; readonly limiter: RateLimiter }[] = [];

afterEach(async () => {
  for (const { server, limiter } of running.splice(0)) {
    await server.close();
    await limiter.close();
  }
});

async function start(options: ServeOptions = {}) {
  const limiter = await RateLimiter.open('memory:', {
    limits: [Limit.perMinute('rpm', 1_000), Limit.concurrent('slots', 1)],
    leaseSecrets: [SECRET],
  });
  const server = await serve(limiter, { port: 0, ...options });
  running.push({ server, limiter });
  const acquire = (consume: object, more: object = {}, signal?: AbortSignal): Promise<Response> =>
    fetch(`${server.url}/v1/acquire`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ entityId: 'user-1', resource: 'gpt-4', consume, ...more }),
      ...(signal === undefined ? {} : { signal }),
    });
  return { limiter, server, acquire };
}

describe('a listening server', () => {
  test('answers over a socket', async () => {
    const { acquire } = await start();
    const response = await acquire({ rpm: 1 });
    expect(response.status).toBe(200);
  });

  test.each(['0.0.0.0', '::', '192.0.2.1', 'example.com'])(
    'refuses to listen on %s without tokens, and says what is missing',
    async (hostname) => {
      await expect(start({ hostname })).rejects.toThrow('while the server has no tokens');
    },
  );

  test('listens on every address with tokens', async () => {
    const { server } = await start({ hostname: '0.0.0.0', tokens: [credentialOf().token] });
    expect((await fetch(`${server.url.replace('0.0.0.0', '127.0.0.1')}/healthz`)).status).toBe(200);
  });

  test('rejects if the port is taken', async () => {
    const { server } = await start();
    await expect(start({ port: Number(new URL(server.url).port) })).rejects.toThrow('EADDRINUSE');
  });

  test('ends event streams when it closes, and keeps leases', async () => {
    const { server, limiter, acquire } = await start();
    expect((await acquire({ slots: 1 })).status).toBe(200);
    const events = await fetch(`${server.url}/v1/events`);
    await server.close();
    running.pop();
    expect(await events.text()).toContain(': connected');
    expect((await limiter.leases.list({ entityId: 'user-1', resource: 'gpt-4' })).items).toHaveLength(1);
    await limiter.close();
  });
});

test('a connection is kept longer than load balancers keep it, and does not hold up a server that closes', async () => {
  const { server, limiter } = await start();
  const port = Number(new URL(server.url).port);
  const [kept, events] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
  kept.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect(String((await once(kept, 'data'))[0])).toContain('Keep-Alive: timeout=65');
  events.write('GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect(String((await once(events, 'data'))[0])).toMatch(/connection: close/i);
  running.pop();
  await server.close({ timeoutMs: 3_600_000 });
  await limiter.close();
});

test('a server that closes sends a large answer to its end, also to a client that reads it slowly', async () => {
  const body = new ArrayBuffer(48 * 2 ** 20);
  const file = { contentType: 'text/javascript', body, gzipped: body };
  const files = new Map(['main-A.js', 'style-A.css', 'icon-A.svg'].map((name) => [name, file]));
  const { server, limiter } = await start({ dashboard: files });
  const client = connect(Number(new URL(server.url).port), '127.0.0.1');
  // The answer to the first request shows that the server has read the beginning of the second one.
  const head = 'HTTP/1.1\r\nHost: localhost\r\n';
  client.write(`GET /healthz ${head}\r\nGET /dashboard/assets/main-A.js ${head}`);
  await once(client, 'data');
  running.pop();
  const closing = server.close({ timeoutMs: 3_600_000 });
  client.write('\r\n');
  await once(client, 'readable');
  client.pause();
  // A slow client: the answer is correct after any time, and was cut after 50 ms.
  await setTimeout(200);
  let length = 0;
  for await (const piece of client) length += (piece as Buffer).length;
  expect(length).toBeGreaterThan(body.byteLength);
  await closing;
  await limiter.close();
});

describe('a server that closes while a client waits', () => {
  async function waitingClient() {
    const started = await start();
    const { limiter, acquire } = started;
    const held = await limiter.acquire({ entityId: 'user-1', resource: 'gpt-4', consume: { slots: 1 } });
    const answer = acquire({ slots: 1 }, { wait: { timeoutMs: 60_000 } });
    await expect.poll(() => limiter.waiting()).toHaveLength(1);
    return { ...started, held, answer };
  }

  test('answers the client, and ends its connection', async () => {
    const { server, held, answer } = await waitingClient();
    const closing = server.close({ timeoutMs: 60_000 });
    await held.commit();
    const response = await answer;
    expect(response.status).toBe(200);
    expect(response.headers.get('connection')).toBe('close');
    await closing;
  });

  test('answers the client with 503 when the time for closing is over, and has ended its wait', async () => {
    const { server, limiter, answer } = await waitingClient();
    await server.close({ timeoutMs: 0 });
    expect(limiter.waiting()).toEqual([]);
    const response = await answer;
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code: 'backend.unavailable', retryable: true });
  });
});

describe('a request that cannot be one', () => {
  test.each([
    ['a target that is no path', 'OPTIONS * HTTP/1.1\r\nHost: localhost', '*'],
    ['a path with a backslash', 'GET /a\\b HTTP/1.1\r\nHost: localhost', '/a\\b'],
    ['a host that is no name', 'GET /v1/status HTTP/1.1\r\nHost: a b/c', '/v1/status'],
    ['a host with user information', 'POST /v1/acquire HTTP/1.1\r\nHost: a@localhost', '/v1/acquire'],
    ['an absolute target that is no URL', 'GET http://[ HTTP/1.1\r\nHost: localhost', 'http://['],
  ])('gets a problem, and a line of the access log: %s', async (_what, head, path) => {
    const entries: AccessEntry[] = [];
    const { server } = await start({ onAccess: (entry) => entries.push(entry) });
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.end(`${head}\r\nConnection: close\r\n\r\n`);
    const [answerHead = '', body = ''] = (await text(socket)).split('\r\n\r\n');
    expect(answerHead).toMatch(/^HTTP\/1\.1 400 /);
    expect(answerHead).toMatch(/content-type: application\/problem\+json/i);
    expect(JSON.parse(body)).toMatchObject({ status: 400, code: 'input.invalid', field: 'path or Host' });
    expect(entries).toMatchObject([{ path, status: 400, operation: null, token: null }]);
  });
});

describe('a server without tokens', () => {
  /** The status of an acquire with these headers. `fetch` cannot set `Host` and `Origin`. */
  async function statusWith(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
    const body = JSON.stringify({ entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } });
    return new Promise((resolve, reject) => {
      const asked = httpRequest(`${url}/v1/acquire`, { method: 'POST', headers }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      asked.on('error', reject);
      asked.end(body);
    });
  }

  test.each([
    ['a page of another site', { origin: 'https://example.com', 'content-type': 'text/plain' }],
    ['a page in a sandbox', { origin: 'null' }],
    ['a page of another server of this machine', { origin: 'http://127.0.0.1:3000' }],
    ['a page whose name was rebound to this machine', { host: 'example.com:8700', origin: 'http://example.com:8700' }],
    ['a page whose name begins like an address', { host: '127.0.0.1.example.com' }],
    ['a name with user information', { host: '127.0.0.1@example.com' }],
  ])('refuses a request of %s, and takes nothing', async (_, headers) => {
    const { server, limiter } = await start();
    expect(await statusWith(server.url, headers)).toBeGreaterThanOrEqual(400);
    expect((await limiter.buckets.list({ resource: 'gpt-4' })).items).toEqual([]);
  });

  test('refuses a request with two names of the host, whichever comes first', async () => {
    const { server, limiter } = await start();
    const body = JSON.stringify({ entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } });
    for (const hosts of ['Host: localhost\r\nHost: example.com', 'Host: example.com\r\nHost: localhost']) {
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
      socket.end(`POST /v1/acquire HTTP/1.1\r\n${hosts}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 40[03] /);
    }
    expect((await limiter.buckets.list({ resource: 'gpt-4' })).items).toEqual([]);
  });

  test.each(['localhost', 'localhost:1', '127.0.0.1', '[::1]:8700'])(
    'answers requests to the host %s',
    async (host) => {
      const { server } = await start();
      expect(await statusWith(server.url, { host })).toBe(200);
      expect(await statusWith(server.url, { host, origin: `http://${host}` })).toBe(200);
    },
  );

  test('a server with tokens answers requests to every host', async () => {
    const { secret, token } = credentialOf();
    const { server } = await start({ tokens: [token] });
    expect(await statusWith(server.url, { host: 'limits.example.com', authorization: `Bearer ${secret}` })).toBe(200);
  });
});
