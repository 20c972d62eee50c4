import express, { type Response as ExpressResponse } from 'express';
import { Hono } from 'hono';
import Koa from 'koa';
import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Limit, memory, RateLimiter } from '../../../src/index.js';
import { admit } from '../../../src/integrations/http/admission/admission.js';
import { withRateLimit } from '../../../src/integrations/http/fetch.js';
import { rateLimit as forExpress } from '../../../src/integrations/http/express.js';
import { rateLimit as forHono } from '../../../src/integrations/http/hono.js';
import { rateLimit as forKoa } from '../../../src/integrations/http/koa.js';
import { outage } from '../../../src/testing/index.js';
import { type AppServer, serveApp } from '../../support/http/app-server.js';

const ONE_SLOT = [Limit.concurrent('slots', 1)];

let limiter: RateLimiter;
let app: AppServer | undefined;

beforeEach(() => {
  limiter = new RateLimiter(memory());
});
afterEach(async () => {
  await app?.stop();
  app = undefined;
  await limiter.close();
});

const optionsOf = () => ({ limiter, limits: ONE_SLOT, key: () => 'client' });
const slotsInUse = async (): Promise<number> => (await limiter.leases.list({ entityId: 'client' })).items.length;

describe('an app that answers by itself while the limiter decides, as timeouts do', () => {
  test('keeps no slot in express', async () => {
    const server = express();
    server.use((_, response, next) => {
      next();
      response.status(503).send('too late');
    });
    server.use(forExpress(optionsOf()));
    server.use((_request, _response) => {});
    app = await serveApp(server);
    expect((await fetch(app.url)).status).toBe(503);
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(0));
  });

  test('keeps no slot in koa', async () => {
    const server = new Koa();
    server.silent = true;
    server.use(async (context, next) => {
      const rest = next();
      context.respond = false;
      context.res.writeHead(503).end('too late');
      await rest;
    });
    server.use(forKoa<Koa.Context>(optionsOf()));
    server.use(async () => {});
    const handle = server.callback();
    app = await serveApp((request, response) => void handle(request, response));
    expect((await fetch(app.url)).status).toBe(503);
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(0));
  });

  test('is not answered a second time by a refusal, which would cut its answer off', async () => {
    await limiter.acquire({ entityId: 'client', resource: 'http', limits: ONE_SLOT, consume: { slots: 1 } });
    const server = express();
    const errors: unknown[] = [];
    let early: ExpressResponse | undefined;
    server.use((_, response, next) => {
      early = response;
      response.write('begun, ');
      next();
    });
    server.use(async (...args) => {
      await forExpress(optionsOf())(...args);
      early?.end('and ended');
    });
    server.use((error: Error, _request: unknown, _response: unknown, _next: unknown) => void errors.push(error));
    app = await serveApp(server);
    expect(await (await fetch(app.url)).text()).toBe('begun, and ended');
    expect(errors).toEqual([]);
  });
});

test('a client that left before the limiter was reached does not wait for a slot', async () => {
  const held = await limiter.acquire({ entityId: 'client', resource: 'http', limits: ONE_SLOT, consume: { slots: 1 } });
  const server = express();
  const reached = vi.fn<() => void>();
  let limited: Promise<void> | undefined;
  const limit = forExpress({ ...optionsOf(), wait: { timeoutMs: 3_600_000 } });
  server.use((request, response, next) => {
    reached();
    response.once('close', () => {
      limited = limit(request, response, next);
    });
  });
  app = await serveApp(server);
  const client = httpRequest(app.url).on('error', () => {});
  client.end();
  await vi.waitFor(() => expect(reached).toHaveBeenCalled());
  client.destroy();
  await vi.waitFor(() => expect(limited).toBeDefined());
  await limited;
  expect(limiter.waiting()).toEqual([]);
  await held.commit();
});

test('a body that a client leaves is cancelled at its source, also while the store does not answer', async () => {
  const out = outage(memory());
  const hanging = new RateLimiter(out.backend, { onError: () => {} });
  const cancelled = vi.fn<(reason: unknown) => void>();
  const GET = withRateLimit(async () => new Response(new ReadableStream({ cancel: cancelled })), {
    ...optionsOf(),
    limiter: hanging,
    onError: () => {},
  });
  const { body } = await GET(new Request('http://app.test/'));
  out.start({ mode: 'hang' });
  void body?.cancel('gone').catch(() => {});
  expect(cancelled).toHaveBeenCalledWith('gone');
  out.end();
  await hanging.close();
});

test('an answer of hono that was read already ends its lease', async () => {
  const server = new Hono();
  server.use(forHono(optionsOf()));
  server.get('/', async () => {
    const response = new Response('read by the app itself');
    await response.text();
    return response;
  });
  expect((await server.request('/')).status).toBe(200);
  expect(await slotsInUse()).toBe(0);
});

test('an isSuccessful that throws is reported, and is no rejection that would end the process', async () => {
  const errors: unknown[] = [];
  const error = new Error('a mistake of the app');
  const isSuccessful = (): boolean => {
    throw error;
  };
  const options = { ...optionsOf(), isSuccessful, onError: (one: unknown) => void errors.push(one) };
  const admission = await admit(options, { request: null, addresses: () => [] });
  if (admission.kind === 'admitted') await admission.end(200);
  expect(errors).toEqual([error]);
});

test('a slot is kept by a machine whose clock is behind that of the store', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
  try {
    const ahead = new RateLimiter(memory(), { clock: { now: () => Date.now() + 600_000 } });
    const call = { request: null, addresses: () => [] };
    const admission = await admit({ ...optionsOf(), limiter: ahead }, call);
    for (let second = 0; second < 300; second++) await vi.advanceTimersByTimeAsync(1_000);
    expect((await admit({ ...optionsOf(), limiter: ahead }, call)).kind).toBe('refused');
    if (admission.kind === 'admitted') await admission.end(200);
    await ahead.close();
  } finally {
    vi.useRealTimers();
  }
});
