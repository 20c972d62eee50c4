import { type Http2Bindings, type HttpBindings, serve as listen, type ServerType } from '@hono/node-server';
import type { AddressInfo } from 'node:net';
import { ValidationError } from '../core/errors.js';
import type { RateLimiter } from '../limiter/rate-limiter.js';
import { PendingCalls } from '../core/pending-calls.js';
import { isLoopback, refuseOtherHosts } from './local-requests.js';
import { createServer, type ServerOptions } from './server.js';

/** Options of `serve`. */
export interface ServeOptions extends ServerOptions {
  /** Default: 8700. 0: a free port. */
  readonly port?: number;
  /** Default: 127.0.0.1. Another address needs `tokens`. */
  readonly hostname?: string;
}

/** A server that listens. */
export interface RunningServer {
  /** Such as `http://127.0.0.1:8700`. */
  readonly url: string;
  /**
   * Stops accepting requests, ends event streams, and waits until the requests in flight are answered. After `timeoutMs`
   * it answers those that wait for tokens with 503, and a second later it closes all connections. Leases stay valid: they are
   * in the store. The limiter stays open.
   */
  close(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** The port of `headgate serve`. */
export const DEFAULT_PORT = 8700;

type FetchCallback = (request: Request, env: HttpBindings | Http2Bindings) => Response | Promise<Response>;

const CLOSE_MS = 8_000;
/** For the answers to ended waits to be sent. */
const LAST_ANSWERS_MS = 1_000;

/** Listens for HTTP requests. Rejects if the address is in use, or public without tokens. */
export async function serve(limiter: RateLimiter, options: ServeOptions = {}): Promise<RunningServer> {
  const { port = DEFAULT_PORT, hostname = '127.0.0.1', tokens = [], ...rest } = options;
  if (tokens.length === 0 && !isLoopback(hostname)) {
    throw new ValidationError(
      'hostname',
      'a loopback address such as 127.0.0.1 while the server has no tokens',
      hostname,
    );
  }
  const server = createServer(limiter, { ...rest, tokens });
  const isOpen = tokens.length === 0;
  const inFlight = new PendingCalls();
  let isClosing = false;
  const end = (response: Response): Response => {
    inFlight.end();
    // A client that keeps its connection would send its next request to a server that ends.
    if (isClosing) response.headers.set('connection', 'close');
    return response;
  };
  const fail = (error: unknown): never => {
    inFlight.end();
    throw error;
  };
  const answer: FetchCallback = (request, { incoming }) => {
    const refused = isOpen ? refuseOtherHosts(incoming.headers.host ?? '') : null;
    const answering = refused === null ? server.fetch(request) : Promise.resolve(refused);
    inFlight.begin();
    return answering.then(end, fail);
  };
  const node = await new Promise<ServerType>((resolve, reject) => {
    const starting = listen({ fetch: answer, port, hostname }, () => {
      starting.off('error', reject);
      resolve(starting);
    });
    starting.once('error', reject);
  });
  return {
    url: urlOf(node.address() as AddressInfo),
    async close({ timeoutMs = CLOSE_MS } = {}) {
      isClosing = true;
      const closed = new Promise<void>((resolve) => node.close(() => resolve()));
      server.close();
      // A connection that is kept alive has no request, and would otherwise hold the server open.
      if ('closeIdleConnections' in node) node.closeIdleConnections();
      const timers = [
        setTimeout(() => server.endWaits(), timeoutMs),
        setTimeout(() => 'closeAllConnections' in node && node.closeAllConnections(), timeoutMs + LAST_ANSWERS_MS),
      ];
      await closed;
      for (const timer of timers) clearTimeout(timer);
      // A request whose connection was closed may still give back what it took. The store must be open for that.
      await inFlight.idle();
    },
  };
}

function urlOf({ address, port, family }: AddressInfo): string {
  return family === 'IPv6' ? `http://[${address}]:${port}` : `http://${address}:${port}`;
}
