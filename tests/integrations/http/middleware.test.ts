import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Limit, memory, RateLimiter } from '../../../src/index.js';
import { outage } from '../../../src/testing/index.js';
import type { AppServer } from '../../support/http/app-server.js';
import { type Framework, frameworks, type Route, type SharedOptions } from '../../support/http/frameworks.js';

const SHARED_ERROR = new Error('the route failed');
const TWO_A_DAY = [Limit.perDay('requests', 2)];

describe.each(frameworks.map((framework) => [framework.name, framework] as const))('%s', (_, framework: Framework) => {
  let limiter: RateLimiter;
  let route: Route;
  const servers: AppServer[] = [];
  const startBehind = async (proxies: 0 | 1, limiters: Omit<SharedOptions, 'limiter'>[]): Promise<string> => {
    const options = limiters.map((one) => ({ limiter, ...one }));
    const server = await framework.start(options, () => route, proxies);
    servers.push(server);
    return server.url;
  };
  const start = (...limiters: Omit<SharedOptions, 'limiter'>[]): Promise<string> => startBehind(0, limiters);
  const slotsInUse = async (): Promise<number> =>
    (await limiter.leases.list({ entityId: 'client', resource: 'http' })).items.length;

  beforeEach(() => {
    limiter = new RateLimiter(memory(), { onError: () => {} });
    route = {};
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
    await limiter.close();
  });

  test('a request within the limit passes with the header fields of draft 10, and the next one too many is refused', async () => {
    const url = await start({ limits: TWO_A_DAY, key: () => 'client' });
    const first = await fetch(url);
    expect([first.status, await first.text()]).toEqual([200, 'ok']);
    expect(first.headers.get('ratelimit-policy')).toBe('"requests";q=2;w=86400');
    expect(first.headers.get('ratelimit')).toBe('"requests";r=1;t=43200');
    await fetch(url);
    const third = await fetch(url);
    expect(third.status).toBe(429);
    expect(third.headers.get('content-type')).toContain('application/problem+json');
    expect(Number(third.headers.get('retry-after'))).toBeGreaterThan(40_000);
    expect(Number(third.headers.get('retry-after-ms'))).toBeGreaterThan(40_000_000);
    expect(third.headers.get('ratelimit')).toMatch(/^"requests";r=0;t=\d+$/);
    const body: unknown = await third.json();
    expect(body).toMatchObject({ status: 429, code: 'limit.exceeded', 'violated-policies': ['requests'] });
    expect(JSON.stringify(body)).not.toContain('client');
  });

  test('without a key the clients are distinguished by their address', async () => {
    if (framework.name === 'fetch handlers') return;
    const url = await start({ limits: TWO_A_DAY });
    expect((await fetch(url)).headers.get('ratelimit')).toContain('r=1');
    expect(await limiter.available({ entityId: '127.0.0.1', resource: 'http' }).catch(() => null)).toBeNull();
    const buckets = await limiter.buckets.list({ entityId: '127.0.0.1' });
    expect(buckets.items).toHaveLength(1);
  });

  test('behind a proxy the client is the last address that was forwarded, and IPv6 addresses of one /56 network are one client', async () => {
    const url = await startBehind(1, [{ limits: TWO_A_DAY }]);
    const from = async (address: string) => (await fetch(url, { headers: { 'x-forwarded-for': address } })).status;
    expect(await from('2001:db8:1:ff00::1')).toBe(200);
    expect(await from('6.6.6.6, 2001:db8:1:ff42::2')).toBe(200);
    expect(await from('203.0.113.9, 2001:db8:1:ffff::3')).toBe(429);
    expect([await from('2001:db8:1:fe00::1'), await from('6.6.6.6, 203.0.113.7')]).toEqual([200, 200]);
  });

  test('a forwarded text that is no address is no error: such clients share one key, and no key of a client with an address', async () => {
    const url = await startBehind(1, [{ limits: TWO_A_DAY }]);
    const from = async (address: string) => (await fetch(url, { headers: { 'x-forwarded-for': address } })).status;
    expect([await from('not an address'), await from('%00"<script>'), await from('_hidden')]).toEqual([200, 200, 429]);
    expect(await from('203.0.113.7')).toBe(200);
  });

  test('an address that a client claims is ignored where no proxy is trusted', async () => {
    if (framework.name === 'fetch handlers') return;
    const url = await start({ limits: TWO_A_DAY });
    const from = async (address: string) => (await fetch(url, { headers: { 'x-forwarded-for': address } })).status;
    expect([await from('203.0.113.1'), await from('203.0.113.2'), await from('203.0.113.3')]).toEqual([200, 200, 429]);
  });

  test('a key of the request separates clients, and skipped requests take nothing', async () => {
    const url = await start({
      limits: [Limit.perDay('requests', 1)],
      key: (field) => field('x-user') ?? 'nobody',
      skip: (field) => field('x-health') === 'yes',
    });
    const get = async (headers: Record<string, string>) => (await fetch(url, { headers })).status;
    expect([await get({ 'x-user': 'a' }), await get({ 'x-user': 'a' }), await get({ 'x-user': 'b' })]).toEqual([
      200, 429, 200,
    ]);
    expect([await get({ 'x-user': 'a', 'x-health': 'yes' }), await get({ 'x-user': 'a' })]).toEqual([200, 429]);
  });

  test('configured limits apply where the code has none, with their own costs', async () => {
    await limiter.config.setResource('http', { limits: [Limit.perDay('rpm', 3, { cost: 2 })] });
    const url = await start({ key: () => 'client' });
    expect([(await fetch(url)).status, (await fetch(url)).status]).toEqual([200, 429]);
  });

  test('a cost is taken from each limit', async () => {
    const url = await start({
      limits: [Limit.perDay('day', 5), Limit.perHour('hour', 9)],
      key: () => 'client',
      cost: 3,
    });
    const { headers } = await fetch(url);
    expect(headers.get('ratelimit')).toBe('"day";r=2;t=51840, "hour";r=6;t=1200');
    expect((await fetch(url)).status).toBe(429);
  });

  test('several limiters in a row join their header fields', async () => {
    const key = (): string => 'client';
    const url = await start(
      { limits: [Limit.perDay('day', 5)], resource: 'daily', key },
      { limits: [Limit.perHour('hour', 3)], resource: 'hourly', key },
    );
    const { headers } = await fetch(url);
    expect(headers.get('ratelimit-policy')?.split(', ').toSorted()).toEqual(['"day";q=5;w=86400', '"hour";q=3;w=3600']);
    expect(headers.get('ratelimit')?.split(', ')).toHaveLength(2);
  });

  test('the answer that a framework makes of an error has the header fields of all limiters', async () => {
    // The error of such a handler passes through: its server makes the answer.
    if (framework.name === 'fetch handlers' || framework.name.startsWith('Lambda')) return;
    const key = (): string => 'client';
    const limitOf = (name: string) => ({ limits: [Limit.perDay(name, 9)], resource: name, key });
    const url = await start(limitOf('one'), limitOf('two'));
    for (const left of [8, 7]) {
      route = { throws: left === 8 ? new Error('the route failed') : SHARED_ERROR };
      const failed = await fetch(url);
      expect(failed.status).toBe(500);
      const fields = failed.headers.get('ratelimit')?.split(', ').toSorted() ?? [];
      expect(fields.map((field) => field.replace(/;t=.*/, ''))).toEqual([`"one";r=${left}`, `"two";r=${left}`]);
    }
    // The same object, thrown for every request.
    expect((await fetch(url)).headers.get('ratelimit')?.split(', ')).toHaveLength(2);
    expect('headers' in SHARED_ERROR).toBe(false);
  });

  test('a request that failed takes nothing where failed requests are skipped', async () => {
    const url = await start({ limits: TWO_A_DAY, key: () => 'client', skipFailedRequests: true });
    route = { status: 400 };
    for (let at = 0; at < 3; at++) expect((await fetch(url)).status).toBe(400);
    route = { throws: new Error('the route failed') };
    expect((await fetch(url)).status).toBe(500);
    route = {};
    await vi.waitFor(async () => expect((await fetch(url)).headers.get('ratelimit')).toContain('r=1'));
  });

  test('a request that succeeded takes nothing where successful requests are skipped', async () => {
    const url = await start({
      limits: [Limit.perDay('requests', 1)],
      key: () => 'client',
      skipSuccessfulRequests: true,
    });
    expect((await fetch(url)).status).toBe(200);
    await vi.waitFor(async () => expect((await fetch(url)).status).toBe(200));
    await vi.waitFor(async () => expect((await fetch(url)).status).toBe(200));
    route = { status: 404 };
    await vi.waitFor(async () => expect((await fetch(url)).status).toBe(404));
    expect((await fetch(url)).status).toBe(429);
  });

  test('a slot is held until the answer is complete, and a client that disconnects gives it back', async () => {
    await limiter.config.setResource('http', { limits: [Limit.concurrent('slots', 1, { cost: 1 })] });
    const url = await start({ key: () => 'client' });
    let answerNow = (): void => {};
    route = { until: new Promise<void>((resolve) => (answerNow = resolve)) };
    const slow = fetch(url);
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(1));
    expect((await fetch(url)).status).toBe(429);
    answerNow();
    expect(await (await slow).text()).toBe('ok');
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(0));

    let release = (): void => {};
    route = { until: new Promise<void>((resolve) => (release = resolve)) };
    const gone = httpRequest(url);
    gone.on('error', () => {});
    gone.end();
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(1));
    gone.destroy();
    release();
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(0));
  });

  test.each([
    ['without a wait', {}],
    ['with a wait', { wait: { timeoutMs: 60_000 } }],
  ])('a client that leaves before the limiter has decided holds no slot, %s', async (_title, options) => {
    await limiter.config.setResource('http', { limits: [Limit.concurrent('slots', 4, { cost: 1 })] });
    let goOn = (): void => {};
    const until = new Promise<void>((resolve) => (goOn = resolve));
    const reached = vi.fn<() => void>();
    const hold = async (held: string | undefined, place: string): Promise<void> => {
      if (held !== place) return;
      reached();
      await until;
    };
    const skip = async (field: (name: string) => string | undefined): Promise<boolean> => {
      await hold(field('x-held'), 'by an earlier limiter');
      return true;
    };
    const key = async (field: (name: string) => string | undefined): Promise<string> => {
      await hold(field('x-held'), 'by the limiter');
      return 'client';
    };
    const url = await start({ skip, key }, { key, ...options });
    const clients = ['by an earlier limiter', 'by the limiter'].map((place) =>
      httpRequest(url, { headers: { 'x-held': place } })
        .on('error', () => {})
        .end(),
    );
    await vi.waitFor(() => expect(reached).toHaveBeenCalledTimes(2));
    for (const client of clients) client.destroy();
    // Requests that come after the end of the others: the server has noticed it when they are answered.
    for (let at = 0; at < 3; at++) expect((await fetch(url)).status).toBe(200);
    goOn();
    for (let at = 0; at < 3; at++) expect((await fetch(url)).status).toBe(200);
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(0));
  });

  test('a request whose client leaves before its answer takes nothing where failed requests are skipped', async () => {
    // API Gateway tells a function nothing of its client.
    if (framework.name.startsWith('Lambda')) return;
    const url = await start({ limits: TWO_A_DAY, key: () => 'client', skipFailedRequests: true });
    let answerNow = (): void => {};
    const reached = vi.fn<() => void>();
    route = { until: new Promise<void>((resolve) => (answerNow = resolve)), reached };
    const gone = httpRequest(url)
      .on('error', () => {})
      .end();
    await vi.waitFor(() => expect(reached).toHaveBeenCalled());
    gone.destroy();
    route = { status: 404 };
    for (let at = 0; at < 3; at++) expect((await fetch(url)).status).toBe(404);
    answerNow();
    route = {};
    await vi.waitFor(async () => {
      const bucket = (await limiter.buckets.list({ entityId: 'client' })).items[0];
      expect(bucket?.limits[0]?.consumed).toBe(0);
    });
  });

  test('the slot of a request with HEAD is free after the answer', async () => {
    await limiter.config.setResource('http', { limits: [Limit.concurrent('slots', 1, { cost: 1 })] });
    const url = await start({ key: () => 'client' });
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(0));
  });

  test('a message replaces the body of a refusal, and the older header fields can be chosen', async () => {
    const limits = [Limit.perDay('requests', 1)];
    const url = await start({ limits, key: () => 'client', message: 'Slow down.', headers: 'x-ratelimit' });
    await fetch(url);
    const refused = await fetch(url);
    expect([refused.status, await refused.text()]).toEqual([429, 'Slow down.']);
    expect(refused.headers.get('x-ratelimit-limit')).toBe('1');
    expect(refused.headers.get('ratelimit')).toBeNull();
  });

  test('the triple of draft 6 can be chosen', async () => {
    const url = await start({ limits: TWO_A_DAY, key: () => 'client', headers: 'draft-6' });
    const { headers } = await fetch(url);
    const triple = ['limit', 'remaining', 'reset'].map((name) => headers.get(`ratelimit-${name}`));
    expect([triple, headers.get('ratelimit')]).toEqual([['2', '1', '43200'], null]);
  });

  test('a request waits for its turn where a wait is allowed', async () => {
    await limiter.config.setResource('http', { limits: [Limit.concurrent('slots', 1, { cost: 1 })] });
    const url = await start({ key: () => 'client', wait: { timeoutMs: 20_000 } });
    let answerNow = (): void => {};
    route = { until: new Promise<void>((resolve) => (answerNow = resolve)) };
    const first = fetch(url);
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(1));
    const second = fetch(url);
    await vi.waitFor(() => expect(limiter.waiting()).toHaveLength(1));
    answerNow();
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
  });

  test('while the store is out, a blocking limiter answers 503, an open one lets requests pass, and a local one counts by itself', async () => {
    const out = outage(memory());
    const broken = new RateLimiter(out.backend, { onError: () => {}, limits: TWO_A_DAY });
    await broken.tryAcquire({ entityId: 'client', resource: 'http', consume: { requests: 0 } });
    out.start();
    const shared = { limits: TWO_A_DAY, key: () => 'client', limiter: broken };
    const blocking = await start({ ...shared, onUnavailable: 'block' });
    const refused = await fetch(blocking);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ status: 503, code: 'backend.unavailable' });
    const open = await start({ ...shared, onUnavailable: 'allow' });
    expect((await fetch(open)).status).toBe(200);
    const local = await start({ ...shared, onUnavailable: 'local', resource: 'local' });
    expect([(await fetch(local)).status, (await fetch(local)).status, (await fetch(local)).status]).toEqual([
      200, 200, 429,
    ]);
    out.end();
    await broken.close();
  });

  test('a key that is no name is an error of the program, and reaches its error handler', async () => {
    const url = await start({ limits: TWO_A_DAY, key: () => 'not a name' });
    expect((await fetch(url)).status).toBe(500);
  });
});
