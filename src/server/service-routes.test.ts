import { describe, expect, test } from 'vitest';
import { credentialOf, requestServer } from '../../tests/support/server/request-server.js';
import { LimiterMetrics } from '../integrations/telemetry/limiter-metrics.js';
import type { HeaderFormat } from '../integrations/http/admission/headers.js';

const SERVICE = ['/metrics', '/docs', '/openapi.json'] as const;
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

describe('the routes of the service', () => {
  const app = credentialOf();
  const admin = credentialOf({ role: 'admin' });
  const root = credentialOf({ role: 'admin', namespace: '*' });
  const tokens = [app.token, admin.token, root.token];
  const metrics = new LimiterMetrics();

  test.each(SERVICE)('%s is open by default, also on a server with tokens', async (path) => {
    const { send } = await requestServer({ tokens, metrics });
    expect((await send(`GET ${path}`)).status).toBe(200);
  });

  test.each(SERVICE)('%s needs an admin token if the service is protected', async (path) => {
    const { send } = await requestServer({ tokens, metrics, protectService: true });
    const without = await send(`GET ${path}`);
    expect(without.status).toBe(401);
    expect(without.headers.get('www-authenticate')).toBe('Bearer');
    expect(await without.json()).toMatchObject({ code: 'access.missing' });
    const denied = await send(`GET ${path}`, { as: app });
    expect(denied.status).toBe(403);
    expect(await denied.json()).toMatchObject({ code: 'access.denied' });
    expect((await send(`HEAD ${path}`)).status).toBe(401);
    expect((await send(`GET ${path}`, { as: root })).status).toBe(200);
  });

  test('the metrics of a protected service need a token for every namespace, because they count all of them', async () => {
    const { send } = await requestServer({ tokens, metrics, protectService: true });
    expect((await send('GET /metrics', { as: admin })).status).toBe(403);
    expect((await send('GET /docs', { as: admin })).status).toBe(200);
  });

  test.each(['/healthz', '/readyz'])('%s stays open for probes', async (path) => {
    const { send } = await requestServer({ tokens, protectService: true });
    expect((await send(`GET ${path}`)).status).toBe(200);
  });

  test('a server without tokens cannot protect its service', async () => {
    await expect(requestServer({ protectService: true })).rejects.toThrow('protectService');
  });
});

describe('the rate-limit fields of decisions', () => {
  const NAMES = ['ratelimit', 'ratelimit-policy', 'ratelimit-limit', 'x-ratelimit-limit'] as const;

  test.each<[HeaderFormat | undefined, readonly string[]]>([
    [undefined, ['ratelimit', 'ratelimit-policy']],
    ['draft-10', ['ratelimit', 'ratelimit-policy']],
    ['draft-6', ['ratelimit-limit']],
    ['x-ratelimit', ['x-ratelimit-limit']],
    ['none', []],
  ])('the option headers: %s gives the fields %j, on grants and denials', async (headers, expected) => {
    const { send } = await requestServer(headers === undefined ? {} : { headers });
    const granted = await send('POST /v1/acquire', { body: { ...ASK, consume: { rpm: 10 } } });
    const denied = await send('POST /v1/acquire', { body: ASK });
    expect([granted.status, denied.status]).toEqual([200, 429]);
    for (const response of [granted, denied]) {
      expect(NAMES.filter((name) => response.headers.has(name))).toEqual(expected);
    }
    // The wait is told in every format.
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('an unknown format is refused when the server is made', async () => {
    const headers = 'draft-99' as HeaderFormat;
    await expect(requestServer({ headers })).rejects.toThrow("one of 'draft-10', 'draft-6', 'x-ratelimit', 'none'");
  });
});
