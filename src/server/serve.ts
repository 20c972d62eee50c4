import type { HttpBindings } from '@hono/node-server';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isHeadgateError, ValidationError } from '../core/errors.js';
import type { RateLimiter } from '../limiter/rate-limiter.js';
import { warnOfError } from '../limiter/warn-of-error.js';
import { PendingCalls } from '../core/pending-calls.js';
import { logAnswer } from './answer/access-log.js';
import { isLoopback, refuseOtherHosts } from './access/local-requests.js';
import { requestListener } from './request/request-listener.js';
import { createServer, type ServerOptions } from './server.js';
import { type GiveBack, giveBackOf } from './answer/undelivered.js';
import { confirmDelivery, watchDelivery } from './answer/watch-delivery.js';

/** Options of `serve`. */
export interface ServeOptions extends ServerOptions {
  /** The port to listen on. 0: a free one. Default: 8700. */
  readonly port?: number;
  /** The address to listen on. One that is not of this machine alone needs `tokens`. Default: 127.0.0.1. */
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

const EVENTS_PATH = '/v1/events';
const CLOSE_MS = 8_000;
/**
 * Longer than load balancers keep a connection without a request, which is 60 s for most: one that sends a request while the
 * server closes the connection answers 502.
 */
const KEEP_ALIVE_MS = 65_000;
/** For the answers to ended waits to be sent. */
const LAST_ANSWERS_MS = 1_000;

/** Listens for HTTP requests. Rejects if the address is in use, or public without tokens. */
export async function serve(limiter: RateLimiter, options: ServeOptions = {}): Promise<RunningServer> {
  const { port = DEFAULT_PORT, hostname = '127.0.0.1', tokens = [], onError = warnOfError, ...rest } = options;
  const { onAccess } = rest;
  if (tokens.length === 0 && !isLoopback(hostname)) {
    throw new ValidationError(
      'hostname',
      'a loopback address such as 127.0.0.1 while the server has no tokens',
      hostname,
    );
  }
  const server = createServer(limiter, { ...rest, onError, tokens });
  const isOpen = tokens.length === 0;
  const inFlight = new PendingCalls();
  let isClosing = false;
  const giveBack = async (what: GiveBack): Promise<void> => {
    inFlight.begin();
    await what().catch((error: unknown) => {
      // The client did read the answer, and has ended its lease.
      if (!isHeadgateError(error, 'lease.closed')) onError(error, 'an answer that was not delivered');
    });
    inFlight.end();
  };
  const end = (response: Response, exchange: HttpBindings): Response => {
    const what = giveBackOf(response);
    if (what !== undefined) watchDelivery(exchange, () => void giveBack(what));
    inFlight.end();
    // A client that keeps its connection would send its next request to a server that ends. An event stream may end with the
    // server, long after its head was sent: its connection ends with it.
    const isLast = isClosing || exchange.incoming.url?.startsWith(EVENTS_PATH) === true;
    if (isLast) response.headers.set('connection', 'close');
    return response;
  };
  const fail = (error: unknown): never => {
    inFlight.end();
    throw error;
  };
  const refuse = (request: Request, refused: Response): Promise<Response> => {
    return onAccess === undefined ? Promise.resolve(refused) : logAnswer(request, onAccess, () => refused);
  };
  const answer = (request: Request, exchange: HttpBindings): Promise<Response> => {
    confirmDelivery(exchange);
    const refused = isOpen ? refuseOtherHosts(hostOf(exchange.incoming.rawHeaders)) : null;
    const answering = refused === null ? server.fetch(request) : refuse(request, refused);
    inFlight.begin();
    return answering.then((response) => end(response, exchange), fail);
  };
  const node = createHttpServer(requestListener(answer, { hostname, onError, onAccess }));
  node.keepAliveTimeout = KEEP_ALIVE_MS;
  await new Promise<void>((resolve, reject) => {
    node.once('error', reject);
    node.listen(port, hostname, () => {
      node.off('error', reject);
      resolve();
    });
  });
  return {
    url: urlOf(node.address() as AddressInfo),
    async close({ timeoutMs = CLOSE_MS } = {}) {
      isClosing = true;
      // A connection that is kept alive would hold the server open. Node closes those that are idle now, and the others after
      // their answers. Another `closeIdleConnections` would cut an answer that a client reads slowly.
      Object.assign(node, { keepAliveTimeout: 1, keepAliveTimeoutBuffer: 0 });
      const closed = new Promise<void>((resolve) => node.close(() => resolve()));
      server.close();
      const timers = [
        setTimeout(() => server.endWaits(), timeoutMs),
        setTimeout(() => node.closeAllConnections(), timeoutMs + LAST_ANSWERS_MS),
      ];
      await closed;
      for (const timer of timers) clearTimeout(timer);
      // A request whose connection was closed may still give back what it took. The store must be open for that.
      await inFlight.idle();
    },
  };
}

/** Empty if there is none, or more than one: Node keeps the first, and another server may keep the last. */
function hostOf(rawHeaders: readonly string[]): string {
  let host = '';
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== 'host') continue;
    if (host !== '') return '';
    host = rawHeaders[at + 1] ?? '';
  }
  return host;
}

function urlOf({ address, port, family }: AddressInfo): string {
  return family === 'IPv6' ? `http://[${address}]:${port}` : `http://${address}:${port}`;
}
