import { serve } from '@hono/node-server';
import express5, { type Request, type Response } from 'express';
// @ts-expect-error express 4 has no types under this name; those of express 5 are near enough.
import express4Untyped from 'express4';
import Fastify, { type FastifyRequest } from 'fastify';
import { type Context, Hono } from 'hono';
import Koa from 'koa';
import type { AddressInfo } from 'node:net';
import * as forExpress from '../../../src/integrations/http/express.js';
import * as forFastify from '../../../src/integrations/http/fastify.js';
import * as forFetch from '../../../src/integrations/http/fetch.js';
import * as forHono from '../../../src/integrations/http/hono.js';
import type { HttpLimitOptions } from '../../../src/integrations/http/admission.js';
import * as forKoa from '../../../src/integrations/http/koa.js';
import { type AppServer, serveApp } from './app-server.js';

/** How the route under test behaves. */
export interface Route {
  readonly status?: number;
  /** Answers once this resolves. */
  readonly until?: Promise<unknown>;
  /** Fails instead of answering. */
  readonly throws?: boolean;
}

/** The options that make sense in every framework: none depends on the request but by its header fields. */
export type SharedOptions = Omit<HttpLimitOptions<never>, 'key' | 'skip' | 'cost' | 'limits' | 'resource'> & {
  readonly limits?: HttpLimitOptions<never>['limits'] & readonly unknown[];
  readonly cost?: number;
  readonly resource?: string;
  readonly key?: (header: (name: string) => string | undefined) => string;
  readonly skip?: (header: (name: string) => string | undefined) => boolean;
};

export interface Framework {
  readonly name: string;
  /** Serves one route behind the limiters, in their order. `proxies`: how many of them are before the app, none or one. */
  start(options: readonly SharedOptions[], route: () => Route, proxies: 0 | 1): Promise<AppServer>;
}

type ReadHeader<R> = (request: R) => (name: string) => string | undefined;

function optionsFor<R>({ key, skip, ...rest }: SharedOptions, read: ReadHeader<R>): HttpLimitOptions<R> {
  return {
    ...(rest as Omit<HttpLimitOptions<R>, 'key' | 'skip'>),
    ...(key === undefined ? {} : { key: (request: R) => key(read(request)) }),
    ...(skip === undefined ? {} : { skip: (request: R) => skip(read(request)) }),
  };
}

function expressFramework(name: string, express: typeof express5): Framework {
  return {
    name,
    async start(limiters, route, proxies) {
      const app = express();
      app.set('env', 'test');
      app.set('trust proxy', proxies);
      for (const options of limiters) {
        app.use(
          forExpress.rateLimit<Request, Response>(optionsFor(options, (request) => (field) => request.get(field))),
        );
      }
      app.get('/', (_, response, next) => {
        void answer(route()).then((status) => response.status(status).send('ok'), next);
      });
      // The fourth parameter tells express that this handles errors.
      app.use((error: Error, _request: Request, response: Response, _next: unknown) => {
        response.status(500).send(error.message);
      });
      return serveApp(app);
    },
  };
}

const koa: Framework = {
  name: 'koa 3',
  async start(limiters, route, proxies) {
    const app = new Koa({ proxy: proxies > 0, maxIpsCount: proxies });
    app.silent = true;
    for (const options of limiters) {
      app.use(
        forKoa.rateLimit<Koa.Context>(
          optionsFor(
            options,
            ({ req }) =>
              (field) =>
                header(req.headers[field]),
          ),
        ),
      );
    }
    app.use(async (context) => {
      context.status = await answer(route());
      context.body = 'ok';
    });
    const handle = app.callback();
    return serveApp((request, response) => void handle(request, response));
  },
};

const fastify: Framework = {
  name: 'fastify 5',
  async start(limiters, route, proxies) {
    const app = Fastify({ trustProxy: (_address: string, hop: number) => hop < proxies });
    for (const options of limiters) {
      const read =
        ({ raw }: forFastify.FastifyRequestLike) =>
        (field: string) =>
          header(raw.headers[field]);
      await app.register(forFastify.rateLimit, optionsFor(options, read));
    }
    app.get('/', async (_: FastifyRequest, reply) => {
      await reply.code(await answer(route())).send('ok');
    });
    await app.listen({ host: '127.0.0.1', port: 0 });
    return { url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`, stop: () => app.close() };
  },
};

const hono: Framework = {
  name: 'hono 4',
  async start(limiters, route, proxies) {
    const app = new Hono();
    for (const options of limiters) {
      const own = optionsFor<Context>(options, (context) => (field) => context.req.header(field));
      app.use(forHono.rateLimit({ ...own, trustedProxies: proxies }));
    }
    app.get('/', async (context) => context.text('ok', (await answer(route())) as 200));
    app.onError((error, context) => context.text(error.message, 500));
    return serveFetch(app.fetch);
  },
};

/** Handlers of the fetch kind, as Next.js, Deno, Bun and workers have them, on a real socket. */
const fetchHandlers: Framework = {
  name: 'fetch handlers',
  async start(limiters, route, proxies) {
    type Handler = (request: Request_, ...rest: never[]) => Promise<globalThis.Response>;
    type Request_ = globalThis.Request;
    let handler: Handler = async () => new globalThis.Response('ok', { status: await answer(route()) });
    for (const options of limiters.toReversed()) {
      const read = (request: Request_) => (field: string) => request.headers.get(field) ?? undefined;
      const key = proxies > 0 ? {} : { key: () => 'client' };
      handler = forFetch.withRateLimit(handler, { ...key, trustedProxies: proxies, ...optionsFor(options, read) });
    }
    return serveFetch(async (request) => {
      try {
        return await handler(request);
      } catch (error) {
        return new globalThis.Response((error as Error).message, { status: 500 });
      }
    });
  },
};

async function serveFetch(fetch: (request: globalThis.Request, env?: never) => unknown): Promise<AppServer> {
  const server = serve({ fetch: fetch as never, hostname: '127.0.0.1', port: 0 });
  await new Promise<void>((resolve) => {
    if (server.listening) resolve();
    else server.once('listening', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      (server as unknown as { closeAllConnections(): void }).closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer({ status = 200, until, throws = false }: Route): Promise<number> {
  await until;
  if (throws) throw new Error('the route failed');
  return status;
}

function header(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}

export const frameworks: readonly Framework[] = [
  expressFramework('express 4', express4Untyped),
  expressFramework('express 5', express5),
  fastify,
  koa,
  hono,
  fetchHandlers,
];
