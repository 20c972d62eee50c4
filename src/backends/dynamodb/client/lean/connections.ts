import * as http from 'node:http';
import * as https from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Deadline, timeLeftMs } from '../deadline.js';
import { proxyAuthorization } from './proxy.js';
import { openTunnel, type Tunnel } from './tunnel.js';

/** The longest time to make a connection: a host that does not answer must not use up the whole deadline. */
const CONNECT_MS = 500;
const MAX_SOCKETS = 256;

export interface ConnectionOptions {
  readonly connectMs?: number;
  readonly lookup?: LookupFunction;
  /** Certificates to trust instead of those of node and `NODE_EXTRA_CA_CERTS`. */
  readonly ca?: string;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  readonly body: Buffer;
}

/** Connections to one endpoint, kept open between requests, through a proxy if there is one. */
export class Connections {
  readonly #request: typeof http.request;
  readonly #options: http.RequestOptions;
  readonly #agent: http.Agent;
  readonly #proxyHeaders: readonly string[];
  /** Sockets over which a request can have been sent. */
  readonly #established = new WeakSet<Duplex>();
  readonly #connectMs: number;

  constructor(endpoint: URL, proxy: URL | null, { connectMs = CONNECT_MS, ...agentOptions }: ConnectionOptions = {}) {
    this.#connectMs = connectMs;
    const isSecure = endpoint.protocol === 'https:';
    // A proxy forwards requests to an http endpoint, and has a tunnel to an https endpoint.
    const isForwarded = proxy !== null && !isSecure;
    const first = isForwarded ? proxy : endpoint;
    const { request, Agent } = first.protocol === 'https:' ? https : http;
    this.#request = request;
    this.#agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS, ...agentOptions });
    const target = `${endpoint.hostname}:${endpoint.port || 443}`;
    const tunnel = proxy === null || isForwarded ? null : { proxy, target };
    this.#watchConnections(first.protocol === 'https:' ? 'secureConnect' : 'connect', tunnel);
    const authorization = isForwarded ? proxyAuthorization(proxy) : undefined;
    this.#proxyHeaders = authorization === undefined ? [] : ['proxy-authorization', authorization];
    this.#options = {
      agent: this.#agent,
      method: 'POST',
      host: first.hostname.replaceAll(/^\[|\]$/g, ''),
      port: first.port || (first.protocol === 'https:' ? 443 : 80),
      path: isForwarded ? `${endpoint.origin}${endpoint.pathname}` : endpoint.pathname,
    };
  }

  /**
   * Sends a request once, and reads its whole answer. At the deadline the connection is destroyed. Names and values of the
   * headers alternate, which saves node a copy of each.
   */
  post(headers: readonly string[], body: string, deadline: Deadline): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const request = this.start(headers);
      const timer = setTimeout(
        () => {
          reject(this.#canHaveSent(request) ? requestEnded() : noConnection('before its deadline'));
          request.destroy();
        },
        Math.max(1, Math.ceil(timeLeftMs(deadline))),
      );
      const fail = (error: NodeJS.ErrnoException): void => {
        clearTimeout(timer);
        const isKnownLoss = error.code === 'ETIMEDOUT';
        reject(this.#canHaveSent(request) && !isKnownLoss ? brokenOff(error) : error);
      };
      request.on('error', fail);
      request.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', fail);
        response.on('end', () => {
          clearTimeout(timer);
          const [first] = chunks;
          const whole = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: whole });
        });
      });
      request.end(body);
    });
  }

  /** A request without its body. */
  start(headers: readonly string[]): http.ClientRequest {
    const all = this.#proxyHeaders.length === 0 ? headers : [...headers, ...this.#proxyHeaders];
    return this.#request({ ...this.#options, headers: all });
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Whether any part of the request can have reached the store. */
  #canHaveSent({ socket }: http.ClientRequest): boolean {
    return socket !== null && this.#established.has(socket);
  }

  #watchConnections(established: 'connect' | 'secureConnect', tunnel: Pick<Tunnel, 'proxy' | 'target'> | null): void {
    const agent = this.#agent;
    const connect = agent.createConnection.bind(agent);
    const watch = (socket: Socket): Socket => socket.once(established, () => this.#established.add(socket));
    agent.createConnection = (options, done) => {
      const limit = (socket: Socket): Socket => limitConnecting(socket, this.#connectMs);
      if (tunnel === null) return limit(watch(connect(options) as Socket));
      openTunnel({ ...tunnel, onSocket: limit }, (error, socket) => {
        if (error !== null) done?.(error, undefined as never);
        else done?.(null, watch(connect({ ...options, socket } as never) as Socket));
      });
      return undefined;
    };
  }
}

/** Only the connection itself is limited, not TLS: a far region needs several round trips for that. */
function limitConnecting(socket: Socket, connectMs: number): Socket {
  const timer = setTimeout(() => socket.destroy(noConnection(`within ${connectMs} ms`)), connectMs);
  const stop = (): void => clearTimeout(timer);
  return socket.once('connect', stop).once('close', stop);
}

/** The SDK's error for the same case, which `failureOf` recognises: nothing was sent. */
export function noConnection(when: string): Error {
  const error = new Error(`the request did not establish a connection with the server ${when}`);
  error.name = 'TimeoutError';
  return error;
}

/**
 * The request may have been executed, whatever the error says: a route that is lost later has the code of one that never
 * was, and a broken TLS record has a code of its own.
 */
function brokenOff(cause: Error): Error {
  return Object.assign(new Error(cause.message, { cause }), { code: 'ECONNRESET' });
}

/** The error that the SDK throws for an aborted request. */
function requestEnded(): Error {
  const error = new Error('Request aborted');
  error.name = 'AbortError';
  return error;
}
