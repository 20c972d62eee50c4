import { afterEach, describe, expect, test } from 'vitest';
import { credentialOf, requestServer, SECRET } from '../../tests/support/server/request-server.js';
import { memory } from '../backends/embedded/memory.js';
import { Limit } from '../core/limit.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { outage } from '../testing/outage.js';
import { EventHub } from './live/event-hub.js';
import { LimiterMetrics } from '../integrations/telemetry/limiter-metrics.js';
import { createServer } from './server.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

describe('POST /v1/acquire', () => {
  test('a grant answers 200 with the lease, the statuses and the headers', async () => {
    const { send } = await requestServer();
    const response = await send('POST /v1/acquire', { body: ASK });
    expect(response.status).toBe(200);
    expect(response.headers.get('ratelimit')).toMatch(/^"rpm";r=9;t=6;pk=:/);
    expect(response.headers.get('ratelimit-policy')).toMatch(/^"rpm";q=10;w=60;pk=:/);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toMatchObject({
      granted: true,
      decidedBy: 'store',
      lease: { expiresAt: null, consumed: { rpm: 1 } },
      statuses: [{ entityId: 'user-1', available: 9, limit: { name: 'rpm', text: 'rpm:10/min' } }],
    });
  });

  test('a denial answers 429 with the level, the limit and the exact wait', async () => {
    const { send } = await requestServer();
    await send('POST /v1/acquire', { body: { ...ASK, consume: { rpm: 10 } } });
    const response = await send('POST /v1/acquire', { body: ASK });
    const problem = (await response.json()) as { readonly retryAfterMs: number };
    expect(response.status).toBe(429);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(response.headers.get('retry-after')).toBe(String(Math.ceil(problem.retryAfterMs / 1000)));
    expect(response.headers.get('retry-after-ms')).toBe(String(problem.retryAfterMs));
    expect(problem).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      code: 'limit.exceeded',
      'violated-policies': ['rpm'],
      violations: [{ entityId: 'user-1', limit: { name: 'rpm' }, exceeded: true }],
    });
  });

  test('an ask above the capacity answers 422 without Retry-After', async () => {
    const { send } = await requestServer();
    const response = await send('POST /v1/acquire', { body: { ...ASK, consume: { rpm: 11 } } });
    expect(response.status).toBe(422);
    expect(response.headers.get('retry-after')).toBeNull();
    expect(await response.json()).toMatchObject({ code: 'limit.impossible', retryAfterMs: null });
  });

  test.each([
    ['no JSON', '{', 'body'],
    ['no entity', { resource: 'gpt-4' }, 'body.entityId'],
    ['a fraction', { ...ASK, consume: { rpm: 0.5 } }, 'body.consume.rpm'],
    ['an unknown field', { ...ASK, consumed: {} }, 'consumed'],
    ['an unknown limit', { ...ASK, consume: { rpn: 1 } }, 'consume.rpn'],
    ['a limit without a unit', { ...ASK, limits: ['rpm:100'] }, 'limits[0]'],
    ['an illegal entity', { ...ASK, entityId: 'a b' }, 'entityId'],
  ])('%s answers 400 with the field, and nothing is written', async (_, body, field) => {
    const { send, limiter } = await requestServer();
    const response = await send('POST /v1/acquire', { body });
    expect(response.status).toBe(400);
    const problem = (await response.json()) as { readonly code: string; readonly detail: string };
    expect(problem.code).toBe('input.invalid');
    expect(problem.detail).toContain(field);
    expect((await limiter.buckets.list({ resource: 'gpt-4' })).items).toEqual([]);
  });

  test('an ask for which no limits are configured answers 409, and says how a caller over HTTP gets them', async () => {
    const { send } = await requestServer({}, []);
    const response = await send('POST /v1/acquire', { body: ASK });
    expect(response.status).toBe(409);
    expect(await response.json()).toMatchObject({
      code: 'limits.missing',
      detail:
        'No limits for entity user-1 on resource gpt-4: an admin stores them with PUT /v1/config or `headgate resource set`, or the server starts with `--limit`',
    });
  });

  test('a body above 64 KB answers 413, also without a declared length', async () => {
    const { send } = await requestServer();
    const response = await send('POST /v1/acquire', { body: { ...ASK, entityId: 'x'.repeat(70_000) } });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ code: 'body.too-large' });
  });

  test('1,100 short calls, each ended before the next, are granted by 5 slots', async () => {
    const limiter = await RateLimiter.open(memory(), {
      limits: [Limit.concurrent('slots', 5)],
      leaseSecrets: [SECRET],
    });
    const { fetch } = createServer(limiter);
    const post = (path: string, body: object): Promise<Response> =>
      fetch(new Request(`http://headgate.test${path}`, { method: 'POST', body: JSON.stringify(body) }));
    for (let call = 0; call < 1_100; call++) {
      const granted = await post('/v1/acquire', { ...ASK, consume: { slots: 1 } });
      expect(granted.status).toBe(200);
      const { lease } = (await granted.json()) as { readonly lease: { readonly token: string } };
      expect((await post('/v1/leases/commit', { token: lease.token })).status).toBe(200);
    }
  });

  test('a store that does not answer is 503, and the degraded policy says who decided', async () => {
    const store = outage(memory());
    const limiter = await RateLimiter.open(store.backend, {
      limits: [Limit.perMinute('rpm', 10)],
      leaseSecrets: [SECRET],
    });
    const { fetch } = createServer(limiter);
    const send = (body: object): Promise<Response> =>
      fetch(new Request('http://headgate.test/v1/acquire', { method: 'POST', body: JSON.stringify(body) }));
    await send(ASK);
    store.start();
    const blocked = await send(ASK);
    expect(blocked.status).toBe(503);
    expect(await blocked.json()).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      code: 'backend.unavailable',
    });
    const allowed = await send({ ...ASK, onUnavailable: 'allow' });
    expect(await allowed.json()).toMatchObject({ granted: true, decidedBy: 'open' });
  });
});

test('a batch answers each ask on its own, in order', async () => {
  const { send } = await requestServer();
  const asks = [{ ...ASK, consume: { rpm: 10 } }, ASK, { ...ASK, entityId: 'user-2' }, { ...ASK, consume: { rpn: 1 } }];
  const response = await send('POST /v1/acquire/batch', { body: { asks } });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({
    results: [
      { granted: true },
      { granted: false, status: 429, code: 'limit.exceeded' },
      { granted: true },
      { granted: false, status: 400, code: 'input.invalid' },
    ],
  });
});

describe('routes', () => {
  test('an unknown route answers 404 as a problem', async () => {
    const { send } = await requestServer();
    const response = await send('GET /v1/nothing');
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ code: 'route.missing' });
  });

  test('an unknown entity or namespace answers 404', async () => {
    const { send } = await requestServer();
    expect(await (await send('GET /v1/entities/nobody')).json()).toMatchObject({ code: 'entity.missing', status: 404 });
    expect(await (await send('GET /v1/status?entityId=a&resource=b', { namespace: 'none' })).json()).toMatchObject({
      code: 'namespace.missing',
      status: 404,
      detail: expect.stringMatching(/POST \/v1\/namespaces or `headgate namespace register`$/),
    });
  });

  test('an entity whose id has a slash and a percent sign is reached by its encoded id', async () => {
    const { send } = await requestServer();
    const id = 'acme/50%|user';
    await send('POST /v1/entities', { body: { id } });
    const response = await send(`GET /v1/entities/${encodeURIComponent(id)}`);
    expect(await response.json()).toMatchObject({ id });
  });

  test('a namespace that was deleted and registered again is reached by its name', async () => {
    const { send, limiter } = await requestServer();
    await limiter.namespaces.register('acme');
    const acquire = () => send('POST /v1/acquire', { namespace: 'acme', body: ASK });
    expect((await acquire()).status).toBe(200);
    await limiter.namespaces.delete('acme');
    expect((await acquire()).status).toBe(404);
    await limiter.namespaces.register('acme');
    expect((await acquire()).status).toBe(200);
  });

  test('the service routes need no token', async () => {
    const { send } = await requestServer({ tokens: [credentialOf().token] });
    for (const path of ['/healthz', '/readyz', '/openapi.json', '/docs']) {
      expect((await send(`GET ${path}`)).status).toBe(200);
    }
  });
});

describe('the event stream', () => {
  const controllers: AbortController[] = [];
  afterEach(() => controllers.forEach((controller) => controller.abort()));

  test('ends when the client leaves, and when the server closes', async () => {
    const { send, server } = await requestServer();
    const controller = new AbortController();
    controllers.push(controller);
    const streams = [await send('GET /v1/events', { signal: controller.signal }), await send('GET /v1/events')];
    expect(streams[0]?.headers.get('content-type')).toBe('text/event-stream');
    controller.abort();
    expect(await streams[0]?.text()).toContain(': connected');
    server.close();
    expect(await streams[1]?.text()).toContain(': connected');
  });
});

describe('leases over HTTP', () => {
  const HOLD = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, slots: 1 } };

  async function acquired(body: object) {
    const { send, limiter } = await requestServer();
    const { lease } = (await (await send('POST /v1/acquire', { body })).json()) as {
      readonly lease: { readonly token: string | null };
    };
    const operate = (operation: string, more: object = {}): Promise<Response> =>
      send(`POST /v1/leases/${operation}`, { body: { token: lease.token, ...more } });
    const available = () => limiter.available({ entityId: 'user-1', resource: 'gpt-4' });
    return { lease, operate, available };
  }

  test('an ask for rates only has no token unless it says portable', async () => {
    expect((await acquired(ASK)).lease.token).toBeNull();
    expect((await acquired({ ...ASK, portable: true })).lease.token).toMatch(/^hgl1\./);
  });

  test('a lease that holds slots is settled and committed with its token, and a repeat gets the same answer', async () => {
    const { operate, available } = await acquired(HOLD);
    expect((await operate('settle', { amounts: { rpm: 4 } })).status).toBe(200);
    expect(await available()).toEqual({ rpm: 6, slots: 1 });
    for (let time = 0; time < 2; time++) expect((await operate('commit')).status).toBe(200);
    expect(await available()).toEqual({ rpm: 6, slots: 2 });
  });

  test('an adjust that is repeated with its id counts once', async () => {
    const { operate, available } = await acquired(HOLD);
    for (let time = 0; time < 2; time++) await operate('adjust', { amounts: { rpm: 2 }, operationId: 'one' });
    expect(await available()).toMatchObject({ rpm: 7 });
  });

  test('a commit after a rollback answers 409', async () => {
    const { operate } = await acquired(HOLD);
    expect((await operate('rollback')).status).toBe(200);
    const response = await operate('commit');
    expect(response.status).toBe(409);
    expect(await response.json()).toMatchObject({ code: 'lease.closed' });
  });

  test('a token that was altered answers 400, and changes nothing', async () => {
    const { lease, available } = await acquired(HOLD);
    const { send } = await requestServer();
    const response = await send('POST /v1/leases/rollback', { body: { token: `${lease.token}x` } });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: 'lease.token-invalid' });
    expect(await available()).toEqual({ rpm: 9, slots: 1 });
  });

  test('an operator lists the leases and ends one by its id', async () => {
    const { send, limiter } = await requestServer();
    await send('POST /v1/acquire', { body: HOLD });
    const { items } = (await (await send('GET /v1/leases')).json()) as { readonly items: readonly { id: string }[] };
    expect(items).toHaveLength(1);
    expect((await send(`DELETE /v1/leases/${items[0]?.id}`)).status).toBe(200);
    expect((await send(`DELETE /v1/leases/${items[0]?.id}`)).status).toBe(404);
    expect(await limiter.available({ entityId: 'user-1', resource: 'gpt-4' })).toMatchObject({ slots: 2 });
  });
});

describe('pauses, charges and credits over HTTP', () => {
  test('a paused entity is refused with 429 and the exact wait, a revoked one with 403', async () => {
    const { send } = await requestServer();
    await send('POST /v1/pause', { body: { entityId: 'user-1', forMs: 60_000, reason: 'the vendor asked for it' } });
    const paused = await send('POST /v1/acquire', { body: ASK });
    expect(paused.status).toBe(429);
    expect(await paused.json()).toMatchObject({ reason: 'paused', paused: { reason: 'the vendor asked for it' } });
    expect(Number(paused.headers.get('retry-after'))).toBeGreaterThan(58);
    await send('POST /v1/pause', { body: { entityId: 'user-1', reason: 'revoked' } });
    const revoked = await send('POST /v1/acquire', { body: ASK });
    expect(revoked.status).toBe(403);
    expect(await revoked.json()).toMatchObject({ code: 'entity.paused' });
    expect(await (await send('POST /v1/resume', { body: { entityId: 'user-1' } })).json()).toEqual({ resumed: true });
    expect((await send('POST /v1/acquire', { body: ASK })).status).toBe(200);
  });

  test('a charge with an id counts once, and a credit gives it back', async () => {
    const { send, limiter } = await requestServer();
    const charge = { entityId: 'user-1', resource: 'gpt-4', amounts: { rpm: 12 }, id: 'invoice-1' };
    for (let time = 0; time < 2; time++) expect((await send('POST /v1/charge', { body: charge })).status).toBe(200);
    const key = { entityId: 'user-1', resource: 'gpt-4' };
    expect(await limiter.available(key)).toMatchObject({ rpm: -2 });
    await send('POST /v1/credit', { body: { ...charge, id: 'invoice-2' } });
    expect(await limiter.available(key)).toMatchObject({ rpm: 10 });
  });
});

test('decisions reach the event stream and the metrics', async () => {
  const [events, metrics] = [new EventHub(), new LimiterMetrics()];
  const limiter = await RateLimiter.open('memory:', {
    limits: [Limit.perMinute('rpm', 10)],
    leaseSecrets: [SECRET],
    onEvent: (event) => {
      events.onEvent(event);
      metrics.onEvent(event);
    },
  });
  const server = createServer(limiter, { events, metrics });
  const get = (path: string): Promise<Response> => server.fetch(new Request(`http://headgate.test${path}`));
  const stream = await get('/v1/events');
  await server.fetch(new Request('http://headgate.test/v1/acquire', { method: 'POST', body: JSON.stringify(ASK) }));
  server.close();
  expect(await stream.text()).toMatch(/event: decision\ndata: \{.*"entityId":"user-1".*"granted":true/);
  expect(await (await get('/metrics')).text()).toContain('headgate_decisions_total{outcome="granted"');
});
