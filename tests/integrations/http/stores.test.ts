import fastifyRateLimit from '@fastify/rate-limit';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule, type ThrottlerOptions } from '@nestjs/throttler';
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import Fastify from 'fastify';
import { type Context, Hono } from 'hono';
import { rateLimiter } from 'hono-rate-limiter';
// oxlint-disable-next-line import/no-unassigned-import -- Nest needs the functions that it adds to Reflect.
import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { memory, RateLimiter } from '../../../src/index.js';
import {
  ExpressRateLimitStore,
  fastifyRateLimitStore,
  NestThrottlerStorage,
} from '../../../src/integrations/http/stores/index.js';
import { ipKey } from '../../../src/integrations/http/admission/ip-key.js';
import { fakeClock, type FakeClock, outage } from '../../../src/testing/index.js';
import { type AppServer, serveApp } from '../../support/http/app-server.js';

const MINUTE = 60_000;

let clock: FakeClock;
let limiter: RateLimiter;
const ends: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  clock = fakeClock(1_800_000_000_000);
  limiter = new RateLimiter(memory(), { clock });
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await limiter.close();
});

const statusesOf = async (url: string, count: number): Promise<number[]> => {
  const statuses: number[] = [];
  for (let at = 0; at < count; at++) statuses.push((await fetch(url)).status);
  return statuses;
};

describe('express-rate-limit', () => {
  let complaints: string[];
  beforeEach(() => {
    complaints = [];
    const note = (...said: unknown[]): void => void complaints.push(said.map(String).join(' '));
    vi.spyOn(console, 'error').mockImplementation(note);
    vi.spyOn(console, 'warn').mockImplementation(note);
  });
  /** The middleware checks how it is used, and prints what it finds. */
  afterEach(() => {
    vi.restoreAllMocks();
    expect(complaints).toEqual([]);
  });
  const start = async (options: Parameters<typeof rateLimit>[0], route: express.RequestHandler): Promise<string> => {
    const app = express();
    app.use(rateLimit({ windowMs: MINUTE, ...options }));
    app.get('/', route);
    const server: AppServer = await serveApp(app);
    ends.push(() => server.stop());
    return server.url;
  };
  const ok: express.RequestHandler = (_, response) => void response.send('ok');

  test('the limit is shared by two servers, the header fields count down, and a token comes back after its part of the window', async () => {
    const options = { limit: 3, legacyHeaders: true };
    const first = await start({ ...options, store: new ExpressRateLimitStore({ limiter }) }, ok);
    const second = await start({ ...options, store: new ExpressRateLimitStore({ limiter }) }, ok);
    expect((await fetch(first)).headers.get('x-ratelimit-remaining')).toBe('2');
    expect((await fetch(second)).headers.get('x-ratelimit-remaining')).toBe('1');
    expect((await fetch(first)).headers.get('x-ratelimit-remaining')).toBe('0');
    expect(await statusesOf(second, 2)).toEqual([429, 429]);
    await clock.advance(MINUTE / 3);
    expect(await statusesOf(second, 2)).toEqual([200, 429]);
  });

  test('failed requests take nothing where the middleware skips them', async () => {
    let status = 500;
    const store = new ExpressRateLimitStore({ limiter });
    const url = await start(
      { limit: 2, skipFailedRequests: true, store },
      (_, response) => void response.status(status).send(),
    );
    expect(await statusesOf(url, 2)).toEqual([500, 500]);
    await vi.waitFor(async () => expect((await store.get('127.0.0.1')).totalHits).toBe(0));
    status = 200;
    expect(await statusesOf(url, 3)).toEqual([200, 200, 429]);
  });

  test('a refused request gives nothing back where the middleware skips failed requests, of which it is one', async () => {
    const store = new ExpressRateLimitStore({ limiter });
    const url = await start({ limit: 2, skipFailedRequests: true, store }, ok);
    for (let at = 0; at < 6; at++) {
      expect((await fetch(url)).status).toBe(at < 2 ? 200 : 429);
      // The middleware decrements after it has answered.
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await store.get('127.0.0.1')).totalHits).toBe(2);
  });

  test('a key can be read and reset, and keys that are no names are distinguished', async () => {
    const store = new ExpressRateLimitStore({ limiter, limit: 2 });
    store.init({ windowMs: MINUTE });
    for (const key of ['a b', 'a#b', '$a', '', 'ü', '\ud800', 'x'.repeat(300), 'y'.repeat(300)]) {
      expect((await store.increment(key)).totalHits).toBe(1);
      expect((await store.increment(key)).totalHits).toBe(2);
      expect((await store.increment(key)).totalHits).toBe(3);
      expect((await store.get(key)).totalHits).toBe(2);
      await store.resetKey(key);
      expect((await store.get(key)).totalHits).toBe(0);
    }
  });

  test('a store out of order lets requests pass only if the middleware says so', async () => {
    const out = outage(memory());
    const broken = new RateLimiter(out.backend, { onError: () => {} });
    const shared = { limit: 2, store: new ExpressRateLimitStore({ limiter: broken }) };
    const strict = await start(shared, ok);
    const open = await start(
      { ...shared, passOnStoreError: true, store: new ExpressRateLimitStore({ limiter: broken }) },
      ok,
    );
    await fetch(strict);
    out.start();
    expect([(await fetch(strict)).status, (await fetch(open)).status]).toEqual([500, 200]);
    expect(complaints.splice(0).join()).toContain('BackendUnavailable');
    out.end();
    await broken.close();
  });

  test('skipped requests take nothing, and two limiters in a row count apart if their stores have other resources', async () => {
    const app = express();
    const skip: Parameters<typeof rateLimit>[0] = { skip: ({ path }) => path === '/health' };
    for (const [resource, limit] of [
      ['burst', 3],
      ['day', 2],
    ] as const) {
      const store = new ExpressRateLimitStore({ limiter, resource });
      app.use(rateLimit({ windowMs: MINUTE, limit, store, ...skip }));
    }
    app.use((_, response) => void response.send('ok'));
    const server = await serveApp(app);
    ends.push(() => server.stop());
    expect(await statusesOf(`${server.url}/health`, 5)).toEqual([200, 200, 200, 200, 200]);
    expect(await statusesOf(server.url, 4)).toEqual([200, 200, 429, 429]);
  });

  test('addresses of one IPv6 network are one client, and those of another network are another', async () => {
    const app = express();
    app.set('trust proxy', 1);
    app.use(rateLimit({ windowMs: MINUTE, limit: 1, store: new ExpressRateLimitStore({ limiter }) }));
    app.get('/', ok);
    const server = await serveApp(app);
    ends.push(() => server.stop());
    const from = async (address: string) =>
      (await fetch(server.url, { headers: { 'x-forwarded-for': address } })).status;
    expect(await from('2001:db8:0:1::1')).toBe(200);
    expect(await from('2001:db8:0:1:ffff::2')).toBe(429);
    expect(await from('2001:db9:0:1::1')).toBe(200);
  });

  test('a limit that the middleware computes needs a number in the options of the store', async () => {
    const store = new ExpressRateLimitStore({ limiter });
    store.init({ windowMs: MINUTE, limit: () => 5 });
    await expect(store.increment('client')).rejects.toThrow('limit');
  });
});

describe('hono-rate-limiter', () => {
  type Options = Parameters<typeof rateLimiter>[0];
  const appWith = (...limits: readonly (Partial<Options> & { readonly resource?: string })[]) => {
    const app = new Hono();
    for (const { resource = 'http', ...options } of limits) {
      const store = new ExpressRateLimitStore({ limiter, resource });
      const keyGenerator = (context: Context): string => context.req.header('x-client') ?? 'client';
      app.use(rateLimiter({ windowMs: MINUTE, keyGenerator, store, ...options }));
    }
    app.get('/health', (context) => context.text('ok'));
    app.get('/failed', (context) => context.text('failed', 500));
    app.get('/', (context) => context.text('ok'));
    return app;
  };
  const ask = async (app: Hono, path: string, count: number): Promise<number[]> => {
    const statuses: number[] = [];
    for (let at = 0; at < count; at++) statuses.push((await app.request(path)).status);
    return statuses;
  };

  test('requests above the limit are refused, and the header fields count down', async () => {
    const app = appWith({ limit: 2, standardHeaders: 'draft-6' });
    expect((await app.request('/')).headers.get('ratelimit-remaining')).toBe('1');
    expect(await ask(app, '/', 2)).toEqual([200, 429]);
    await clock.advance(MINUTE / 2);
    expect(await ask(app, '/', 2)).toEqual([200, 429]);
  });

  test('skipped and failed requests take nothing, clients count apart, and so do limiters in a row', async () => {
    const skipping = appWith({ limit: 1, skip: (context) => context.req.path === '/health', skipFailedRequests: true });
    expect(await ask(skipping, '/health', 3)).toEqual([200, 200, 200]);
    expect(await ask(skipping, '/failed', 2)).toEqual([500, 500]);
    expect(await ask(skipping, '/', 2)).toEqual([200, 429]);
    expect((await skipping.request('/', { headers: { 'x-client': 'other' } })).status).toBe(200);
    const inARow = appWith({ limit: 3, resource: 'burst' }, { limit: 2, resource: 'day' });
    expect(await ask(inARow, '/', 3)).toEqual([200, 200, 429]);
  });

  test('addresses of one IPv6 network are one client, and those of another network are another', async () => {
    const app = appWith({ limit: 1, keyGenerator: (context) => ipKey(context.req.header('x-forwarded-for') ?? '') });
    const from = async (address: string): Promise<number> =>
      (await app.request('/', { headers: { 'x-forwarded-for': address } })).status;
    expect([await from('2001:db8:1:ff00::1'), await from('2001:db8:1:ff42::2')]).toEqual([200, 429]);
    expect([await from('2001:db8:1:fe00::1'), await from('203.0.113.7')]).toEqual([200, 200]);
  });

  test('a refused request gives nothing back where failed requests are skipped', async () => {
    expect(await ask(appWith({ limit: 2, skipFailedRequests: true }), '/', 6)).toEqual([200, 200, 429, 429, 429, 429]);
  });

  test('a store out of order is an error of the request', async () => {
    const out = outage(memory());
    const broken = new RateLimiter(out.backend, { onError: () => {} });
    const app = appWith({ limit: 2, store: new ExpressRateLimitStore({ limiter: broken }) });
    expect(await ask(app, '/', 1)).toEqual([200]);
    out.start();
    vi.spyOn(console, 'error').mockImplementation(() => {});
    expect(await ask(app, '/', 1)).toEqual([500]);
    vi.restoreAllMocks();
    out.end();
    await broken.close();
  });
});

describe('@fastify/rate-limit', () => {
  test('every route has the limit of the plugin, and a route with its own counts apart', async () => {
    const app = Fastify();
    ends.push(() => app.close());
    await app.register(fastifyRateLimit, { max: 2, timeWindow: MINUTE, store: fastifyRateLimitStore({ limiter }) });
    app.get('/', async () => 'ok');
    app.get('/other', { config: { rateLimit: { max: 1, timeWindow: MINUTE } } }, async () => 'ok');
    const get = async (url: string) => app.inject(url);
    const first = await get('/');
    expect(first.headers['x-ratelimit-remaining']).toBe('1');
    expect([(await get('/')).statusCode, (await get('/')).statusCode]).toEqual([200, 429]);
    expect([(await get('/other')).statusCode, (await get('/other')).statusCode]).toEqual([200, 429]);
    const refused = await get('/');
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(30);
    await clock.advance(MINUTE);
    expect((await get('/')).statusCode).toBe(200);
  });

  test('limiters in a row count apart if their stores have other resources, and the stricter one refuses', async () => {
    const app = Fastify();
    ends.push(() => app.close());
    const limit = (resource: string, max: number) => ({
      max,
      timeWindow: MINUTE,
      store: fastifyRateLimitStore({ limiter, resource }),
    });
    await app.register(fastifyRateLimit, limit('burst', 3));
    await app.register(async (scope) => {
      await scope.register(fastifyRateLimit, limit('day', 2));
      scope.get('/both', async () => 'ok');
    });
    app.get('/one', async () => 'ok');
    const statuses = async (url: string, count: number): Promise<number[]> => {
      const found: number[] = [];
      for (let at = 0; at < count; at++) found.push((await app.inject(url)).statusCode);
      return found;
    };
    expect(await statuses('/both', 3)).toEqual([200, 200, 429]);
    const { items } = await limiter.buckets.list({ entityId: '127.0.0.1' });
    expect(items.map(({ resource }) => resource.replace(/~.*/, '')).toSorted()).toEqual(['burst', 'day']);
    expect(await statuses('/one', 2)).toEqual([429, 429]);
  });

  test('allowed clients take nothing, and the addresses of one IPv6 network are one client', async () => {
    const app = Fastify({ trustProxy: true });
    ends.push(() => app.close());
    const store = fastifyRateLimitStore({ limiter });
    const keyGenerator = ({ ip }: { readonly ip: string }): string => ipKey(ip);
    await app.register(fastifyRateLimit, { max: 1, timeWindow: MINUTE, store, keyGenerator, allowList: ['10.0.0.9'] });
    app.get('/', async () => 'ok');
    const from = async (address: string) =>
      (await app.inject({ url: '/', headers: { 'x-forwarded-for': address } })).statusCode;
    expect([await from('10.0.0.9'), await from('10.0.0.9')]).toEqual([200, 200]);
    expect([await from('2001:db8:0:1::1'), await from('2001:db8:0:1:ffff::2')]).toEqual([200, 429]);
    expect(await from('2001:db9:0:1::1')).toBe(200);
  });

  test('a store out of order is an error, unless the plugin skips errors', async () => {
    const out = outage(memory());
    const broken = new RateLimiter(out.backend, { onError: () => {} });
    const options = { max: 2, timeWindow: MINUTE, store: fastifyRateLimitStore({ limiter: broken }) };
    const statuses: number[] = [];
    for (const skipOnError of [false, true]) {
      const app = Fastify();
      ends.push(() => app.close());
      await app.register(fastifyRateLimit, { ...options, skipOnError });
      app.get('/', async () => 'ok');
      await app.inject('/');
      out.start();
      statuses.push((await app.inject('/')).statusCode);
      out.end();
    }
    expect(statuses).toEqual([500, 200]);
    await broken.close();
  });
});

describe('@nestjs/throttler', () => {
  const start = async (
    throttlers: ThrottlerOptions[],
    storage = new NestThrottlerStorage({ limiter }),
  ): Promise<string> => {
    class AppController {
      read(): string {
        return 'ok';
      }
    }
    Controller()(AppController);
    const read = Object.getOwnPropertyDescriptor(AppController.prototype, 'read') as PropertyDescriptor;
    Get()(AppController.prototype, 'read', read);
    class AppModule {
      readonly name = 'app';
    }
    Module({
      imports: [ThrottlerModule.forRoot({ throttlers, storage })],
      controllers: [AppController],
      providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
    })(AppModule);
    const app = await NestFactory.create(AppModule, { logger: false });
    await app.listen(0, '127.0.0.1');
    ends.push(() => app.close());
    return app.getUrl();
  };

  test('a throttler refuses beyond its limit and grants again as tokens come back', async () => {
    const url = await start([{ name: 'default', ttl: MINUTE, limit: 2 }]);
    const first = await fetch(url);
    expect([first.status, first.headers.get('x-ratelimit-remaining')]).toEqual([200, '1']);
    expect(await statusesOf(url, 2)).toEqual([200, 429]);
    await clock.advance(MINUTE / 2);
    expect(await statusesOf(url, 2)).toEqual([200, 429]);
  });

  test('throttlers with different names count apart', async () => {
    const url = await start([
      { name: 'short', ttl: 1_000, limit: 1 },
      { name: 'long', ttl: MINUTE, limit: 2 },
    ]);
    expect(await statusesOf(url, 2)).toEqual([200, 429]);
    await clock.advance(1_000);
    expect(await statusesOf(url, 1)).toEqual([200]);
    await clock.advance(1_000);
    expect(await statusesOf(url, 1)).toEqual([429]);
  });

  test('a block lasts as long as it was asked for, and refused requests do not make it longer', async () => {
    const url = await start([{ name: 'default', ttl: 1_000, limit: 1, blockDuration: MINUTE }]);
    expect(await statusesOf(url, 2)).toEqual([200, 429]);
    await clock.advance(MINUTE - 500);
    const blocked = await fetch(url);
    expect([blocked.status, blocked.headers.get('retry-after')]).toEqual([429, '1']);
    await clock.advance(500);
    expect(await statusesOf(url, 1)).toEqual([200]);
  });

  test('skipped requests take nothing, and clients count apart by the tracker', async () => {
    const url = await start([
      {
        name: 'default',
        ttl: MINUTE,
        limit: 1,
        skipIf: (context) => context.switchToHttp().getRequest<Request>().url === '/?health',
        getTracker: ({ headers }) => ipKey((headers as Record<string, string>)['x-client'] ?? '127.0.0.1'),
      },
    ]);
    expect(await statusesOf(`${url}/?health`, 3)).toEqual([200, 200, 200]);
    expect(await statusesOf(url, 2)).toEqual([200, 429]);
    const from = async (address: string) => (await fetch(url, { headers: { 'x-client': address } })).status;
    expect([await from('2001:db8:0:1::1'), await from('2001:db8:0:1:ffff::2')]).toEqual([200, 429]);
    expect(await from('2001:db9:0:1::1')).toBe(200);
  });

  test('a store out of order is an error of the request', async () => {
    const out = outage(memory());
    const broken = new RateLimiter(out.backend, { onError: () => {} });
    const storage = new NestThrottlerStorage({ limiter: broken });
    const url = await start([{ name: 'default', ttl: MINUTE, limit: 2 }], storage);
    expect(await statusesOf(url, 1)).toEqual([200]);
    out.start();
    expect(await statusesOf(url, 1)).toEqual([500]);
    out.end();
    await broken.close();
  });
});
