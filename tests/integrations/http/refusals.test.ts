import express from 'express';
import Fastify, { type FastifyInstance } from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Limit, memory, RateLimiter } from '../../../src/index.js';
import { rateLimit as forExpress } from '../../../src/integrations/http/express.js';
import { rateLimit as forFastify, rateLimitHook } from '../../../src/integrations/http/fastify.js';
import { withRateLimit } from '../../../src/integrations/http/fetch.js';
import { rateLimit as forHono } from '../../../src/integrations/http/hono.js';
import { rateLimit as forKoa } from '../../../src/integrations/http/koa.js';
import { outage } from '../../../src/testing/index.js';
import { type AppServer, serveApp } from '../../support/http/app-server.js';

let limiter: RateLimiter;
const stops: (() => Promise<void>)[] = [];

beforeEach(() => {
  limiter = new RateLimiter(memory());
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  await limiter.close();
});

const serve = async (app: Parameters<typeof serveApp>[0]): Promise<string> => {
  const server: AppServer = await serveApp(app);
  stops.push(() => server.stop());
  return server.url;
};
const listen = async (app: FastifyInstance): Promise<string> => {
  stops.push(() => app.close());
  return app.listen({ host: '127.0.0.1', port: 0 });
};
const koaListener = (app: Koa): Parameters<typeof serveApp>[0] => {
  const handle = app.callback();
  return (request, response) => void handle(request, response);
};

const optionsOf = () => ({ limiter, limits: [Limit.perDay('requests', 1)], key: () => 'client' });
const second = async (url: string): Promise<Response> => {
  await (await fetch(url)).text();
  return fetch(url);
};

describe('a refusal that the app answers itself', () => {
  test('has the status and the header fields in express, and may go on to the next handler', async () => {
    const app = express();
    app.use(
      forExpress({
        ...optionsOf(),
        handler: (_, response, next, denial) => {
          response.setHeader('x-reason', denial?.reason ?? 'none');
          next();
        },
      }),
    );
    app.get('/', (_, response) => void response.send('the route'));
    const refused = await second(await serve(app));
    expect([refused.status, await refused.text(), refused.headers.get('x-reason')]).toEqual([
      429,
      'the route',
      'exhausted',
    ]);
    expect(refused.headers.get('retry-after')).not.toBeNull();
  });

  test('may fail in express, also later, as its other handlers', async () => {
    const app = express();
    app.use(forExpress({ ...optionsOf(), handler: async () => Promise.reject(new Error('own fault')) }));
    app.get('/', (_, response) => void response.send('ok'));
    app.use((error: Error, _request: express.Request, response: express.Response, _next: unknown) => {
      response.status(500).send(error.message);
    });
    const refused = await second(await serve(app));
    expect([refused.status, await refused.text()]).toEqual([500, 'own fault']);
  });

  test('has the status and the header fields in koa', async () => {
    const app = new Koa();
    const handler = async (context: Koa.Context, denial: { readonly reason: string } | null): Promise<void> => {
      context.body = { reason: denial?.reason };
    };
    app.use(forKoa<Koa.Context>({ ...optionsOf(), handler }));
    app.use((context) => void (context.body = 'ok'));
    const refused = await second(await serve(koaListener(app)));
    expect([refused.status, await refused.json()]).toEqual([429, { reason: 'exhausted' }]);
    expect(refused.headers.get('retry-after')).not.toBeNull();
  });

  test.each(['at once', 'later'])('has a body that fastify sends, which may be made %s', async (when) => {
    const app = Fastify();
    const body = { reason: 'own' };
    const refusal = (): unknown => (when === 'later' ? Promise.resolve(body) : body);
    await app.register(forFastify, { ...optionsOf(), refusal });
    app.get('/', async () => 'ok');
    const refused = await second(await listen(app));
    expect([refused.status, await refused.json()]).toEqual([429, body]);
    expect(refused.headers.get('content-type')).toContain('application/json');
  });

  test('gets null instead of a denial while the store does not answer', async () => {
    const out = outage(memory());
    const broken = new RateLimiter(out.backend, { onError: () => {} });
    const app = Fastify();
    const refusal = (_: unknown, denial: unknown) => ({ denial });
    await app.register(forFastify, { ...optionsOf(), limiter: broken, onUnavailable: 'block', refusal });
    app.get('/', async () => 'ok');
    const url = await listen(app);
    out.start();
    const refused = await fetch(url);
    expect([refused.status, await refused.json()]).toEqual([503, { denial: null }]);
    out.end();
    await broken.close();
  });

  test.each(['fetch', 'hono'])('may be a network error in %s, and so may be the answer of a route', async (name) => {
    const options = { ...optionsOf(), handler: () => Response.error() };
    const app = new Hono();
    app.use(forHono(options));
    app.get('/', () => Response.error());
    const handler = name === 'hono' ? app.fetch : withRateLimit(async () => Response.error(), options);
    for (let at = 0; at < 2; at++) expect((await handler(new Request('http://app.test/'))).type).toBe('error');
  });

  test.each(['fetch', 'hono'])('may switch protocols in %s, and so may the answer of a route', async (name) => {
    const options = { ...optionsOf(), handler: () => switching() };
    const app = new Hono();
    app.use(forHono(options));
    app.get('/', () => switching());
    const handler = name === 'hono' ? app.fetch : withRateLimit(async () => switching(), options);
    for (let at = 0; at < 2; at++) {
      const response = await handler(new Request('http://app.test/'));
      expect([response.status, 'webSocket' in response]).toEqual([101, true]);
    }
  });
});

/** As Deno and workers answer a request for a WebSocket. Node can make none. */
function switching(): Response {
  return Object.defineProperty(Object.assign(new Response(null), { webSocket: {} }), 'status', { value: 101 });
}

test.each(['fetch', 'hono'])('a slot of %s is given back when its route switches protocols', async (name) => {
  const options = { ...optionsOf(), limits: [Limit.concurrent('slots', 1)] };
  const app = new Hono();
  app.use(forHono(options));
  app.get('/', () => switching());
  const handler = name === 'hono' ? app.fetch : withRateLimit(async () => switching(), options);
  expect((await handler(new Request('http://app.test/'))).status).toBe(101);
  expect((await limiter.leases.list()).items).toEqual([]);
});

test('a hook of fastify limits one route, after its body was parsed', async () => {
  const app = Fastify();
  const key = ({ body }: { readonly body?: unknown }): string => (body as { readonly user: string }).user;
  const preHandler = rateLimitHook({ ...optionsOf(), key: key as never });
  app.post('/limited', { preHandler }, async () => 'ok');
  app.post('/free', async () => 'ok');
  const url = await listen(app);
  const post = async (path: string, user: string): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(url + path, { method: 'POST', headers, body: JSON.stringify({ user }) })).status;
  };
  expect([await post('/limited', 'ada'), await post('/limited', 'ada')]).toEqual([200, 429]);
  expect([await post('/limited', 'bob'), await post('/free', 'ada')]).toEqual([200, 200]);
});

describe('a client that leaves while its request waits', () => {
  const slots = [Limit.concurrent('slots', 1)];
  const wait = { timeoutMs: 3_600_000 };
  const apps: Readonly<Record<string, (errors: unknown[]) => Promise<string>>> = {
    express: async (errors) => {
      const app = express();
      app.use(forExpress({ ...optionsOf(), limits: slots, wait }));
      app.use((error: Error, _request: unknown, _response: unknown, _next: unknown) => void errors.push(error));
      return serve(app);
    },
    koa: async (errors) => {
      const app = new Koa();
      app.on('error', (error) => errors.push(error));
      app.use(forKoa<Koa.Context>({ ...optionsOf(), limits: slots, wait }));
      app.use((context) => void (context.body = 'ok'));
      return serve(koaListener(app));
    },
    fastify: async (errors) => {
      const app = Fastify();
      app.setErrorHandler((error) => void errors.push(error));
      await app.register(forFastify, { ...optionsOf(), limits: slots, wait });
      app.get('/', async () => 'ok');
      return listen(app);
    },
  };

  test.each(Object.keys(apps))('is no error of an app of %s', async (name) => {
    const errors: unknown[] = [];
    const url = await apps[name]!(errors);
    const held = await limiter.acquire({ entityId: 'client', resource: 'http', limits: slots, consume: { slots: 1 } });
    const client = httpRequest(url).on('error', () => {});
    client.end();
    await vi.waitFor(() => expect(limiter.waiting()).toHaveLength(1));
    client.destroy();
    await vi.waitFor(() => expect(limiter.waiting()).toEqual([]));
    await held.commit();
    await (await fetch(url)).text();
    expect(errors).toEqual([]);
  });
});
