import { describe, expect, test } from 'vitest';
import { credentialOf, requestServer, SECRET } from '../../tests/support/server/request-server.js';
import { memory } from '../backends/embedded/memory.js';
import { AccessDenied, BackendUnavailable, InfrastructureError, SchemaMismatch } from '../core/errors.js';
import { Limit } from '../core/limit.js';
import type { LimiterEvent } from '../limiter/events/limiter-event.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { outage } from '../testing/outage.js';
import type { AccessEntry } from './answer/access-log.js';
import { EventHub } from './live/event-hub.js';
import { createServer } from './server.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

describe('errors in a batch', () => {
  test('a limit that cannot be parsed refuses its ask only', async () => {
    const { send } = await requestServer();
    const response = await send('POST /v1/acquire/batch', { body: { asks: [ASK, { ...ASK, limits: ['rpm:100'] }] } });
    expect(await response.json()).toMatchObject({ results: [{ granted: true }, { granted: false, status: 400 }] });
  });

  test('a namespace that was deleted and registered again is reached by the next batch', async () => {
    const { send, limiter } = await requestServer();
    await limiter.namespaces.register('acme');
    const statuses = async (): Promise<unknown> => {
      const response = await send('POST /v1/acquire/batch', { namespace: 'acme', body: { asks: [ASK] } });
      return response.json();
    };
    expect(await statuses()).toMatchObject({ results: [{ granted: true }] });
    await limiter.namespaces.delete('acme');
    expect(await statuses()).toMatchObject({ results: [{ granted: false, status: 404 }] });
    await limiter.namespaces.register('acme');
    expect(await statuses()).toMatchObject({ results: [{ granted: true }] });
  });

  test('an error that the client did not cause is reported', async () => {
    const reported: string[] = [];
    const { send, limiter } = await requestServer({ onError: (_, where) => reported.push(where) });
    const broken = Object.create(limiter, {
      tryAcquire: { value: () => Promise.reject(new TypeError('broken')) },
    }) as RateLimiter;
    limiter.inUnopened = () => broken;
    const response = await send('POST /v1/acquire/batch', { body: { asks: [ASK] } });
    expect(await response.json()).toMatchObject({ results: [{ granted: false, code: 'server.error' }] });
    expect(reported).toEqual(['acquireBatch']);
  });
});

test('a client that disconnects while one ask of its batch waits leaves no slot of the other asks behind', async () => {
  const { send, limiter } = await requestServer();
  await limiter.acquire({ ...ASK, consume: { slots: 2 } });
  const client = new AbortController();
  const waits = { ...ASK, consume: { slots: 1 }, wait: { timeoutMs: 60_000 } };
  const asks = [{ ...ASK, entityId: 'user-2', consume: { slots: 1 } }, waits];
  const batch = send('POST /v1/acquire/batch', { body: { asks }, signal: client.signal });
  const slotsLeft = async () => (await limiter.available({ entityId: 'user-2', resource: 'gpt-4' }))['slots'];
  await expect.poll(() => limiter.waiting()).toHaveLength(1);
  await expect.poll(slotsLeft).toBe(1);
  client.abort();
  await batch;
  expect(await slotsLeft()).toBe(2);
});

test.each([0, 1, 2, 3, 4, 5, 8, 13])(
  'a client that disconnects %i steps after its slot was taken leaves no slot behind',
  async (steps) => {
    const client = new AbortController();
    const abortLater = async (): Promise<void> => {
      for (let step = 0; step < steps; step++) await Promise.resolve();
      client.abort();
    };
    let isAnswered = false;
    const limiter = await RateLimiter.open('memory:', {
      limits: [Limit.concurrent('slots', 2)],
      leaseSecrets: [SECRET],
      onDecision: () => void abortLater().then(() => expect(isAnswered).toBe(false)),
    });
    const body = JSON.stringify({ ...ASK, consume: { slots: 1 } });
    const { fetch } = createServer(limiter);
    await fetch(new Request('http://headgate.test/v1/acquire', { method: 'POST', body, signal: client.signal }));
    isAnswered = true;
    expect(await limiter.available({ entityId: 'user-1', resource: 'gpt-4' })).toEqual({ slots: 2 });
  },
);

test('a client that disconnects while it waits is not reported as an error of the server', async () => {
  const reported: unknown[] = [];
  const { send, limiter } = await requestServer({ onError: (error) => reported.push(error) });
  await limiter.acquire({ ...ASK, consume: { slots: 2 } });
  const client = new AbortController();
  const body = { ...ASK, consume: { slots: 1 }, wait: { timeoutMs: 60_000 } };
  const waiting = send('POST /v1/acquire', { body, signal: client.signal });
  await expect.poll(() => limiter.waiting()).toHaveLength(1);
  client.abort();
  await waiting;
  expect(reported).toEqual([]);
});

test.each([
  ['with a declared length', { 'content-length': '600' }],
  ['in chunks', {}],
])(
  'a client that disconnects while it sends a body %s has sent a bad request: no failure of the server',
  async (_, headers) => {
    const [reported, logged]: [unknown[], AccessEntry[]] = [[], []];
    const { server } = await requestServer({
      onError: (error) => reported.push(error),
      onAccess: (entry) => logged.push(entry),
    });
    const cut = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"entityId":')),
      pull: (controller) => controller.error(new Error('aborted')),
    });
    const init = { method: 'POST', headers, body: cut, duplex: 'half' } as const;
    const response = await server.fetch(new Request('http://headgate.test/v1/acquire', init));
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { code: 'input.invalid', field: 'body', expected: 'sent to its end' },
    ]);
    expect(logged).toMatchObject([{ operation: 'acquire', status: 400 }]);
    expect(reported).toEqual([]);
  },
);

test('a wait that ends with its server says so, also to a tenant: the store has not failed', async () => {
  const tenant = credentialOf({ entityPrefix: 'user-' });
  const { send, server, limiter } = await requestServer({ tokens: [tenant.token] });
  await limiter.acquire({ ...ASK, consume: { slots: 2 } });
  const ask = { ...ASK, consume: { slots: 1 }, wait: { timeoutMs: 60_000 } };
  const answers = [
    send('POST /v1/acquire', { as: tenant, body: ask }),
    send('POST /v1/acquire/batch', { as: tenant, body: { asks: [ask] } }),
  ];
  await expect.poll(() => limiter.waiting().reduce((sum, { depth }) => sum + depth, 0)).toBe(2);
  server.endWaits();
  const [one, batch] = await Promise.all(answers.map(async (answer) => (await answer).json()));
  const problem = {
    type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
    title: 'The server ends',
    status: 503,
    detail: 'The server ends; another one may answer',
    code: 'backend.unavailable',
    retryable: true,
  };
  expect(one).toEqual(problem);
  expect(batch).toEqual({ results: [{ ...problem, granted: false }] });
});

test('on memory, an ask for rates is answered a few promise steps after its body, and makes no signal', async () => {
  const { server, send } = await requestServer();
  await send('POST /v1/acquire', { body: ASK });
  const body = JSON.stringify(ASK);
  const headers = { 'content-length': String(body.length) };
  const request = new Request('http://headgate.test/v1/acquire', { method: 'POST', body, headers });
  Object.defineProperty(request, 'text', { value: async () => body });
  Object.defineProperty(request, 'signal', { get: () => expect.unreachable('the signal was read') });
  const answers: Response[] = [];
  void server.fetch(request).then((response) => answers.push(response));
  let steps = 0;
  for (; answers.length === 0 && steps < 100; steps++) await Promise.resolve();
  expect(answers[0]?.status).toBe(200);
  // The body, the decision, the handler of the operation, and what hono awaits.
  expect(steps).toBeLessThanOrEqual(8);
});

test('HEAD of the event stream subscribes to nothing', async () => {
  const events = new EventHub();
  const { send } = await requestServer({ events });
  const response = await send('HEAD /v1/events');
  expect(response.status).toBe(200);
  expect(events.isHeard).toBe(false);
});

test('a namespace with a space is not taken for the namespace and the name of another token', async () => {
  const [one, two] = [
    credentialOf({ role: 'admin', namespace: '*', name: 'b c' }),
    credentialOf({ role: 'admin', namespace: '*', name: 'c' }),
  ];
  const { send, limiter } = await requestServer({ tokens: [one.token, two.token] });
  await limiter.namespaces.register('a');
  expect((await send('POST /v1/entities', { as: one, namespace: 'a', body: { id: 'proj-1' } })).status).toBe(201);
  const spoofed = await send('POST /v1/entities', { as: two, namespace: 'a b', body: { id: 'proj-2' } });
  expect(spoofed.status).toBe(400);
});

test('the first ask after the start follows the outage policy', async () => {
  const store = outage(memory());
  const { token, secret } = credentialOf();
  const limits = [Limit.perMinute('rpm', 10)];
  const options = { limits, leaseSecrets: [SECRET], onUnavailable: 'allow' } as const;
  const server = createServer(await RateLimiter.open(store.backend, options), { tokens: [token] });
  store.start();
  const headers = { authorization: `Bearer ${secret}` };
  const request = new Request('http://headgate.test/v1/acquire', {
    method: 'POST',
    headers,
    body: JSON.stringify(ASK),
  });
  expect(await (await server.fetch(request)).json()).toMatchObject({ granted: true, decidedBy: 'open' });
});

test.each(['DELETE', 'PUT', 'GET'])(
  '%s of limits with a misspelt level is refused, and the limits above stay',
  async (method) => {
    const { send, limiter } = await requestServer();
    await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 5)] });
    await limiter.config.setResource('gpt-4', { limits: [Limit.perMinute('rpm', 6)] });
    const body = method === 'PUT' ? { body: { limits: ['rpm:1/min'] } } : {};
    for (const query of ['entityid=user-1', 'entity=user-1&resource=gpt-4', 'entityId=user-1&resource=gpt-4&level=x']) {
      const response = await send(`${method} /v1/config?${query}`, body);
      expect([response.status, await response.json()]).toMatchObject([400, { code: 'input.invalid' }]);
    }
    const levels = (await limiter.config.all()).items.flatMap(({ limits }) => limits.map(String));
    expect(levels.toSorted()).toEqual(['rpm:5/min', 'rpm:6/min']);
  },
);

describe('a store that refuses the server', () => {
  const SECRETIVE = 'role arn:aws:iam::123456789012:role/limits may not write the table limits at 10.0.0.7';
  const CAUSES = [
    ['backend.denied', new AccessDenied(SECRETIVE), 1],
    ['infrastructure.dynamodb', new InfrastructureError('infrastructure.dynamodb', SECRETIVE), 1],
    ['schema.mismatch', new SchemaMismatch(SECRETIVE, 'headgate deploy'), 1],
    ['backend.unavailable', new BackendUnavailable(SECRETIVE, 'connection'), 0],
  ] as const;

  test.each(CAUSES)('%s: operators learn why, and tenants do not', async (code, error, reports) => {
    const tenant = credentialOf({ entityPrefix: 'user-' });
    const admin = credentialOf({ role: 'admin' });
    const store = outage(memory());
    const limiter = await RateLimiter.open(store.backend, {
      limits: [Limit.perMinute('rpm', 10)],
      leaseSecrets: [SECRET],
    });
    const reported: unknown[] = [];
    const { fetch } = createServer(limiter, {
      tokens: [tenant.token, admin.token],
      onError: (one) => void reported.push(one),
    });
    const ask = async (secret: string, path: string, body: object): Promise<string> => {
      const headers = { authorization: `Bearer ${secret}` };
      const asked = new Request(`http://headgate.test${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      return (await fetch(asked)).text();
    };
    store.start({ error });
    const told = await ask(tenant.secret, '/v1/acquire', ASK);
    expect(JSON.parse(told)).toMatchObject({ code, status: error.httpStatus });
    expect(told + (await ask(tenant.secret, '/v1/acquire/batch', { asks: [ASK] }))).not.toMatch(/arn|10\.0/);
    expect(reported).toEqual(Array.from({ length: 2 * reports }, () => error));
    expect(await ask(admin.secret, '/v1/acquire', ASK)).toContain(SECRETIVE);
  });
});

test.each(['commit', 'rollback'])('a %s that is sent again is counted once', async (end) => {
  const ends: LimiterEvent[] = [];
  const limiter = await RateLimiter.open('memory:', {
    limits: [Limit.perMinute('rpm', 10)],
    leaseSecrets: [SECRET],
    onEvent: (event) => void (event.type === 'lease-end' && ends.push(event)),
  });
  const { fetch } = createServer(limiter);
  const lease = await limiter.acquire({ ...ASK, portable: true });
  const body = JSON.stringify({ token: await lease.token() });
  for (let at = 0; at < 3; at++) {
    const sent = new Request(`http://headgate.test/v1/leases/${end}`, { method: 'POST', body });
    expect((await fetch(sent)).status).toBe(200);
  }
  expect(ends).toMatchObject([{ leaseId: lease.id, tokens: { rpm: 1 } }]);
});

test.each([
  'GET /v1/usage?resource=gpt-4&window=hourly&entity=user-1',
  'GET /v1/usage/summary?resource=gpt-4&window=hourly&entityid=user-1',
  'GET /v1/leases?entity=user-1',
  'DELETE /v1/leases/0QCON500Tlq?entity=user-1',
  'GET /v1/audit?entity=user-1',
  'GET /v1/entities?parent=user-1',
  'GET /v1/events?ns=default',
])('%s has a misspelt field, and is refused instead of answered for everybody', async (route) => {
  const { send } = await requestServer();
  const response = await send(route);
  expect([response.status, await response.json()]).toMatchObject([400, { code: 'input.invalid' }]);
});
