import { describe, expect, test } from 'vitest';
import { credentialOf, requestServer } from '../../tests/support/server/request-server.js';
import { LimiterMetrics } from '../integrations/telemetry/limiter-metrics.js';
import { Limit } from '../core/limit.js';
import type { AccessEntry } from './answer/access-log.js';
import { parseTokens } from './access/access-token.js';

const KEY = { entityId: 'user-1', resource: 'gpt-4' };

describe('the access log', () => {
  test('has a line with its time for every request: operations, pages, probes and refusals', async () => {
    const lines: AccessEntry[] = [];
    const { token, secret } = credentialOf({ name: 'web' });
    const { send, server } = await requestServer({ tokens: [token], onAccess: (entry) => lines.push(entry) });
    await send('POST /v1/acquire', { as: { token, secret }, body: { ...KEY, consume: { rpm: 1 } } });
    for (const route of ['GET /docs', 'GET /healthz', 'GET /nothing', 'PUT /docs', 'HEAD /v1/status?x=1'])
      await send(route);
    await server.fetch(
      new Request('http://headgate.test/v1/usage', { headers: { authorization: `Bearer ${secret}` } }),
    );
    expect(lines.map(({ operation, path, status, token: name }) => [operation, path, status, name])).toEqual([
      ['acquire', '/v1/acquire', 200, 'web'],
      [null, '/docs', 200, null],
      [null, '/healthz', 200, null],
      [null, '/nothing', 404, null],
      [null, '/docs', 405, null],
      ['status', '/v1/status', 401, null],
      ['usage', '/v1/usage', 400, 'web'],
    ]);
    for (const { at } of lines) expect(at).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  test('has a line for the request of another web page, which a server without tokens refuses', async () => {
    const lines: AccessEntry[] = [];
    const { server } = await requestServer({ onAccess: (entry) => lines.push(entry) });
    await server.fetch(new Request('http://headgate.test/v1/usage', { headers: { origin: 'http://example.com' } }));
    expect(lines).toMatchObject([{ operation: null, path: '/v1/usage', status: 403 }]);
  });
});

test('a wrong method is answered with 405 and the methods of the path', async () => {
  const { send } = await requestServer();
  const wrong = await send('GET /v1/acquire');
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
  expect(await wrong.json()).toMatchObject({ code: 'route.method' });
  const entity = await send('PUT /v1/entities/user-1');
  expect(entity.headers.get('allow')).toBe('DELETE, GET, HEAD, PATCH');
  expect((await send('GET /v1/acquire/none')).status).toBe(404);
});

test('an answer repeats no more than 200 characters of a name that a client sends', async () => {
  const { send } = await requestServer();
  const long = 'x'.repeat(60_000);
  for (const [route, body] of [
    [`GET /${long}`, undefined],
    ['POST /v1/acquire', { ...KEY, [long]: 1 }],
    ['POST /v1/acquire', { ...KEY, consume: { [long]: 1 } }],
    ['POST /v1/limits/apply', { namespace: 'default', entities: { 'user-1': { [long]: 1 } } }],
  ] as const) {
    const response = await send(route, body === undefined ? {} : { body });
    expect(response.status, route.slice(0, 30)).toBeGreaterThanOrEqual(400);
    expect((await response.text()).length, route.slice(0, 30)).toBeLessThan(1_500);
  }
});

test('the detail of missing limits names what a client of the API can do', async () => {
  const { send } = await requestServer({}, []);
  const response = await send('POST /v1/acquire', { body: { ...KEY, consume: { rpm: 1 } } });
  expect(await response.json()).toMatchObject({ status: 409, detail: expect.stringContaining('PUT /v1/config') });
});

test('an ask of an entity that is paused without an end is no exceeded quota', async () => {
  const { send, limiter } = await requestServer();
  await limiter.pause({ entityId: 'user-1', untilMs: 'forever', reason: 'a revoked key' });
  const response = await send('POST /v1/acquire', { body: { ...KEY, consume: { rpm: 1 } } });
  expect(await response.json()).toMatchObject({ status: 403, code: 'entity.paused', type: 'about:blank' });
});

test('a day that the calendar does not have is refused', async () => {
  const { send } = await requestServer();
  const from = async (day: string): Promise<number> => {
    return (await send(`GET /v1/usage?resource=gpt-4&window=hourly&from=${day}T00:00:00Z`)).status;
  };
  expect([await from('2026-02-31'), await from('2026-02-28'), await from('2028-02-29')]).toEqual([400, 200, 200]);
});

test.each(['.', '..'])('an entity cannot be named %s, which no URL can name', async (id) => {
  const { send } = await requestServer();
  expect((await send('POST /v1/entities', { body: { id } })).status).toBe(400);
});

test.each(['/docs', '/openapi.json', '/metrics'])('%s has a type that a browser must not guess', async (path) => {
  const { send } = await requestServer({ metrics: new LimiterMetrics() });
  expect((await send(`GET ${path}`)).headers.get('x-content-type-options')).toBe('nosniff');
});

test('probes that follow each other cause one request to the store', async () => {
  const { send, limiter } = await requestServer();
  const ping = limiter.ping.bind(limiter);
  let pings = 0;
  limiter.ping = (options) => {
    pings += 1;
    return ping(options);
  };
  const statuses = await Promise.all(Array.from({ length: 5 }, async () => (await send('GET /readyz')).status));
  expect([...new Set(statuses), pings]).toEqual([200, 1]);
});

test.each([
  [{ name: 'two\nlines' }, 'in one line'],
  [{ name: 'x'.repeat(65) }, '1 to 64 characters'],
  [{ entityPrefix: '' }, 'text that is not empty'],
  [{ role: 'admin', entityPrefix: 'acme/' }, 'left out: a token of the role admin reaches every entity'],
])('a token with %j is refused in words that tell what is wrong', (change, expected) => {
  const { token } = credentialOf();
  expect(() => parseTokens(JSON.stringify([{ ...token, ...change }]), 'tokens')).toThrow(expected);
});

test('the longest token of a lease that the server makes is one that it accepts', async () => {
  const names = Array.from({ length: 32 }, (_, at) => `l${at}`.padEnd(64, 'x'));
  const { send, limiter } = await requestServer({}, []);
  await limiter.config.setSystem({ limits: names.map((name) => Limit.concurrent(name, 5)) });
  const chain = Array.from({ length: 8 }, (_, at) => `e${at}`.padEnd(256, 'y'));
  for (const [at, id] of chain.entries()) {
    const parentId = chain[at - 1];
    await limiter.entities.create({ id, ...(parentId === undefined ? {} : { parentId, cascade: true }) });
  }
  const consume = Object.fromEntries(names.map((name) => [name, 1]));
  const body = { entityId: chain.at(-1), resource: 'r'.repeat(128), consume };
  const { lease } = (await (await send('POST /v1/acquire', { body })).json()) as {
    readonly lease: { readonly token: string };
  };
  expect(lease.token.length).toBeGreaterThan(55_000);
  expect((await send('POST /v1/leases/commit', { body: { token: lease.token } })).status).toBe(200);
});
