import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AppServer } from '../support/http/app-server.js';
import { type NextApp, writeNextApp } from '../support/http/next-app.js';

const modules = process.env['HEADGATE_NEXT'];
const why = modules === undefined ? ' (skipped: HEADGATE_NEXT names no folder in which Next.js is installed)' : '';

describe.skipIf(modules === undefined)(`an app of Next.js that is built and started${why}`, () => {
  let app: NextApp | undefined;
  let server: AppServer | undefined;

  beforeAll(async () => {
    app = await writeNextApp(modules!);
    await app.build();
    server = await app.start();
  }, 300_000);
  afterAll(async () => {
    await server?.stop();
    app?.remove();
  });

  const get = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    fetch(`${server?.url}/${path}`, { headers, redirect: 'manual' });
  const statuses = async (count: number, path: string, headers: Readonly<Record<string, string>> = {}) => {
    const found: number[] = [];
    for (let at = 0; at < count; at++) {
      const answer = await get(path, headers);
      await answer.text();
      found.push(answer.status);
    }
    return found;
  };

  test('a route answers within its limit with the header fields of draft 10, and refuses the next request with its wait', async () => {
    const first = await get('api/users', { 'x-user': 'ada' });
    expect([first.status, await first.text()]).toEqual([200, 'ok']);
    expect(first.headers.get('ratelimit-policy')).toBe('"requests";q=2;w=86400');
    expect(first.headers.get('ratelimit')).toBe('"requests";r=1;t=43200');
    await get('api/users', { 'x-user': 'ada' });
    const refused = await get('api/users', { 'x-user': 'ada' });
    expect([refused.status, refused.headers.get('content-type')]).toEqual([429, 'application/problem+json']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(40_000);
    expect(Number(refused.headers.get('retry-after-ms'))).toBeGreaterThan(40_000_000);
    expect(await refused.json()).toMatchObject({ code: 'limit.exceeded', 'violated-policies': ['requests'] });
  });

  test('a key of the request separates users, and skipped requests take nothing', async () => {
    expect(await statuses(3, 'api/users', { 'x-user': 'bob', 'x-health': 'yes' })).toEqual([200, 200, 200]);
    expect(await statuses(3, 'api/users', { 'x-user': 'bob' })).toEqual([200, 200, 429]);
    expect(await statuses(1, 'api/users', { 'x-user': 'eve' })).toEqual([200]);
  });

  test('clients are distinguished by the address that the proxy has written, IPv6 by its /56 network', async () => {
    const from = async (address: string) => statuses(1, 'api/addresses', { 'x-forwarded-for': address });
    const sameNetwork = ['2001:db8:1:ff00::1', '6.6.6.6, 2001:db8:1:ff42::2', '2001:db8:1:ffff::3'];
    expect([await from(sameNetwork[0]!), await from(sameNetwork[1]!)]).toEqual([[200], [200]]);
    expect(await from(sameNetwork[2]!)).toEqual([429]);
    expect([await from('2001:db8:1:fe00::1'), await from('203.0.113.7')]).toEqual([[200], [200]]);
  });

  test('requests that fail take nothing where failed requests are skipped, also if the route throws', async () => {
    const user = { 'x-user': 'ada' };
    expect(await statuses(3, 'api/failures?status=404', user)).toEqual([404, 404, 404]);
    expect(await statuses(3, 'api/failures?status=throw', user)).toEqual([500, 500, 500]);
    expect(await statuses(3, 'api/failures', user)).toEqual([200, 200, 429]);
  });

  test('two limiters of a route join their header fields, and the stricter one refuses', async () => {
    const { headers } = await get('api/several', { 'x-user': 'ada' });
    expect(headers.get('ratelimit-policy')?.split(', ').toSorted()).toEqual(['"day";q=5;w=86400', '"hour";q=3;w=3600']);
    expect(await statuses(3, 'api/several', { 'x-user': 'ada' })).toEqual([200, 200, 429]);
    const refused = await get('api/several', { 'x-user': 'ada' });
    expect(await refused.json()).toMatchObject({ 'violated-policies': ['hour'] });
  });

  test('a route with a parameter in its path gets it, and its redirect gets the header fields', async () => {
    const { status, headers } = await get('api/items/7', { 'x-user': 'ada' });
    expect([status, headers.get('ratelimit')]).toEqual([307, '"requests";r=1;t=43200']);
    expect(headers.get('location')).toContain('/api/users?item=7');
  });

  test('a slot is held until a streamed answer has been read, and a client that disconnects gives it back', async () => {
    const user = { 'x-user': 'ada' };
    expect(await (await get('api/streams', user)).text()).toBe('piece piece piece ');
    const open = httpRequest(`${server?.url}/api/streams?endless`, { headers: user });
    open.on('error', () => {});
    await new Promise((resolve) => open.on('response', (answer) => answer.once('data', resolve)).end());
    expect(await statuses(1, 'api/streams', user)).toEqual([429]);
    open.destroy();
    await expect.poll(() => statuses(1, 'api/streams', user)).toEqual([200]);
  });

  test.each(['text', 'stream'])(
    'clients that leave before the route answers with a %s hold no slot',
    async (answer) => {
      const user = { 'x-user': answer };
      const clients = [0, 1].map(() =>
        httpRequest(`${server?.url}/api/late?${answer}`, { headers: user }).on('error', () => {}),
      );
      for (const client of clients) client.end();
      await expect.poll(() => statuses(1, 'api/late?now', user)).toEqual([429]);
      for (const client of clients) client.destroy();
      await expect.poll(() => statuses(2, 'api/late?now', user), { timeout: 10_000 }).toEqual([200, 200]);
    },
  );

  test('a redirect that a route throws has not failed, and a page that it does not find has', async () => {
    const user = { 'x-user': 'ada' };
    expect(await statuses(3, 'api/thrown?missing', user)).toEqual([404, 404, 404]);
    expect(await statuses(3, 'api/thrown', user)).toEqual([307, 307, 429]);
  });

  test('while the store is out, a blocking route answers 503 and an open one lets requests pass', async () => {
    const refused = await get('api/blocked');
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'backend.unavailable' }]);
    expect(await statuses(3, 'api/allowed')).toEqual([200, 200, 200]);
  });

  test('a proxy of the app limits requests before they reach their route, and its header fields reach the client', async () => {
    const first = await get('proxied');
    expect([first.status, await first.text()]).toEqual([200, 'behind the proxy']);
    expect(first.headers.get('ratelimit')).toBe('"requests";r=1;t=43200');
    expect(await statuses(2, 'proxied')).toEqual([200, 429]);
  });
});
