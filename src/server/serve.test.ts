import { EventEmitter, once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { credentialOf, SECRET } from '../../tests/support/server/request-server.js';
import { Limit } from '../core/limit.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { Random } from '../testing/conformance/kit/random.js';
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

test('1,000 waiting clients that disconnect at random leave no slot, no hold and no timer behind', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const timersBefore = timers();
  const { limiter, server } = await start();
  const key = { entityId: 'user-1', resource: 'gpt-4' };
  const waiting = (): number => limiter.waiting().reduce((sum, line) => sum + line.depth, 0);
  let held = await limiter.acquire({ ...key, consume: { slots: 1 } });
  const answers = new EventEmitter();
  const clients = new Set(Array.from({ length: 1_000 }, () => slotClient(server.url, answers)));
  await expect.poll(waiting).toBe(1_000);
  // The order is arbitrary but fixed, so that a failure can be repeated.
  const random = new Random(20_261_116);
  for (;;) {
    for (const client of [...clients].filter(() => random.whole(1, 5) === 1)) {
      clients.delete(client);
      client.destroy();
    }
    await expect.poll(waiting).toBe(clients.size);
    if (clients.size === 0) break;
    // The slot goes to a client that still waits, and after it to the next.
    const answered = once(answers, 'answer') as Promise<[ClientRequest, IncomingMessage]>;
    await held.commit();
    const [client, response] = await answered;
    clients.delete(client);
    expect(response.statusCode).toBe(200);
    const { lease } = (await json(response)) as { readonly lease: { readonly token: string } };
    held = await limiter.leases.resume(lease.token);
  }
  await held.commit();
  expect(await limiter.available(key)).toMatchObject({ slots: 1 });
  expect((await limiter.leases.list()).items).toEqual([]);
  running.pop();
  await server.close();
  await limiter.close();
  await expect.poll(timers).toBe(timersBefore);
});

/** A request for one slot over a connection of its own. */
function slotClient(url: string, answers: EventEmitter): ClientRequest {
  const client = httpRequest(`${url}/v1/acquire`, { method: 'POST', agent: false });
  client.on('error', () => {});
  client.on('response', (response) => answers.emit('answer', client, response));
  const wait = { timeoutMs: 60_000 };
  client.end(JSON.stringify({ entityId: 'user-1', resource: 'gpt-4', consume: { slots: 1 }, wait }));
  return client;
}
