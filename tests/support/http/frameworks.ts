import { serve } from '@hono/node-server';
import express5, { type Request, type Response } from 'express';
// @ts-expect-error express 4 has no types under this name; those of express 5 are near enough.
import express4Untyped from 'express4';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { type Context, Hono } from 'hono';
import Koa from 'koa';
import type { AddressInfo } from 'node:net';
import type { Limit } from '../../../src/index.js';
import * as forExpress from '../../../src/integrations/http/express.js';
import * as forFastify from '../../../src/integrations/http/fastify.js';
import * as forFetch from '../../../src/integrations/http/fetch.js';
import * as forHono from '../../../src/integrations/http/hono.js';
import type { HttpLimitOptions } from '../../../src/integrations/http/admission/admission.js';
import * as forLambda from '../../../src/integrations/http/lambda.js';
import * as forKoa from '../../../src/integrations/http/koa.js';
import { type AppServer, serveApp } from './app-server.js';
import { behindGateway, serveHttp2 } from './http2-gateway.js';

/** How the route under test behaves. */
export interface Route {
  readonly status?: number;
  readonly reached?: () => void;
  /** Answers once this resolves. */
  readonly until?: Promise<unknown>;
  /** Fails instead of answering. */
  readonly throws?: Error;
}

type ReadField = (name: string) => string | undefined;
type Maybe<T> = T | Promise<T>;
type OfRequest<T> = (field: ReadField) => Maybe<T>;
type Cost = number | Readonly<Record<string, number>>;

/** The options that make sense in every framework: functions of the header fields of the request only. */
export type SharedOptions = Omit<HttpLimitOptions<never>, 'key' | 'skip' | 'cost' | 'limits' | 'resource'> & {
  readonly limits?: readonly Limit[] | OfRequest<readonly Limit[]>;
  readonly cost?: Cost | OfRequest<Cost>;
  readonly resource?: string | OfRequest<string>;
  readonly key?: OfRequest<string>;
  readonly skip?: OfRequest<boolean>;
};

export interface Framework {
  readonly name: string;
  /** Serves one route behind the limiters, in their order. `proxies`: how many of them are before the app, none or one. */
  start(options: readonly SharedOptions[], route: () => Route, proxies: 0 | 1): Promise<AppServer>;
}

type ReadHeader<R> = (request: R) => ReadField;

/** The functions among the options, as functions of the request of the framework. */
function optionsFor<R>(options: SharedOptions, read: ReadHeader<R>): HttpLimitOptions<R> {
  const ofRequest = (given: unknown): unknown =>
    typeof given === 'function' ? (request: R) => (given as OfRequest<unknown>)(read(request)) : given;
  const { key, skip, cost, limits, resource } = options;
  const functional = Object.entries({ key, skip, cost, limits, resource }).filter(([, given]) => given !== undefined);
  const own = Object.fromEntries(functional.map(([name, given]) => [name, ofRequest(given)]));
  return { ...options, ...own } as HttpLimitOptions<R>;
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

const koaFramework = (name: string, serveKoa: (app: Koa) => Promise<AppServer>): Framework => ({
  name,
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
    return serveKoa(app);
  },
});

const koa = koaFramework('koa 3', async (app) => {
  const handle = app.callback();
  return serveApp((request, response) => void handle(request, response));
});

const koaOverHttp2 = koaFramework('koa 3 over HTTP/2', async (app) => {
  const handle = app.callback();
  return serveHttp2((request, response) => void handle(request, response));
});

const fastifyFramework = (name: string, isHttp2: boolean): Framework => ({
  name,
  async start(limiters, route, proxies) {
    const trustProxy = (_address: string, hop: number): boolean => hop < proxies;
    // The types of fastify tell its two servers apart. For the limiter they are the same.
    const app = isHttp2 ? (Fastify({ trustProxy, http2: true }) as never as FastifyInstance) : Fastify({ trustProxy });
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
    const { port } = app.server.address() as AddressInfo;
    const stop = (): Promise<void> => app.close();
    return isHttp2 ? behindGateway(port, stop) : { url: `http://127.0.0.1:${port}`, stop };
  },
});

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

type LambdaHandler = (event: forLambda.LambdaHttpEvent) => Promise<forLambda.LambdaHttpResult>;
type LambdaOptions = forLambda.LambdaLimitOptions<forLambda.LambdaHttpEvent>;

/** A function behind a gateway that makes events as API Gateway does: of version 1 (REST), or of version 2, as function URLs. */
function lambda(name: string, eventOf: (request: GatewayRequest) => forLambda.LambdaHttpEvent): Framework {
  return {
    name,
    async start(limiters, route, proxies) {
      let handler: LambdaHandler = async () => ({
        statusCode: await answer(route()),
        body: 'ok',
      });
      for (const options of limiters.toReversed()) {
        const own = optionsFor<forLambda.LambdaHttpEvent>(
          options,
          ({ headers }) =>
            (field) =>
              headers?.[field],
        );
        const limited: LambdaOptions = { ...own, trustedProxies: proxies };
        handler = forLambda.withRateLimit(handler, limited);
      }
      return serveApp((request, response) => {
        const sourceIp = request.socket.remoteAddress ?? '';
        const forwarded = [header(request.headers['x-forwarded-for']), sourceIp].filter((one) => one !== undefined);
        const received = Object.entries(request.headers).map(([field, value]) => [field, header(value)] as const);
        const headers = { ...Object.fromEntries(received), 'x-forwarded-for': forwarded.join(', ') };
        void invoke(handler, eventOf({ sourceIp, headers })).then(({ statusCode, headers: fields = {}, body }) => {
          for (const [field, value] of Object.entries(fields)) response.setHeader(field, String(value));
          return response.writeHead(statusCode ?? 200).end(body);
        });
      });
    },
  };
}

async function invoke(handler: LambdaHandler, event: forLambda.LambdaHttpEvent): Promise<forLambda.LambdaHttpResult> {
  try {
    return await handler(event);
  } catch (error) {
    return { statusCode: 500, body: (error as Error).message };
  }
}

interface GatewayRequest {
  readonly sourceIp: string;
  readonly headers: NonNullable<forLambda.LambdaHttpEvent['headers']>;
}

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
    return serveFetch(async (request, ...rest) => {
      try {
        return await handler(request, ...rest);
      } catch (error) {
        return new globalThis.Response((error as Error).message, { status: 500 });
      }
    });
  },
};

async function serveFetch(fetch: (request: globalThis.Request, ...rest: never[]) => unknown): Promise<AppServer> {
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

async function answer({ status = 200, reached, until, throws }: Route): Promise<number> {
  reached?.();
  await until;
  if (throws !== undefined) throw throws;
  return status;
}

function header(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}

export const frameworks: readonly Framework[] = [
  expressFramework('express 4', express4Untyped),
  expressFramework('express 5', express5),
  fastifyFramework('fastify 5', false),
  fastifyFramework('fastify 5 over HTTP/2', true),
  koa,
  koaOverHttp2,
  hono,
  fetchHandlers,
  lambda('Lambda, event of version 1', ({ sourceIp, headers }) => ({
    headers,
    requestContext: { identity: { sourceIp } },
  })),
  lambda('Lambda, event of version 2', ({ sourceIp, headers }) => ({
    headers,
    requestContext: { http: { sourceIp } },
  })),
];
