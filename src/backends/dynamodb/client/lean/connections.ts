import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Deadline, timeLeftMs } from '../../../../machine-time.js';
import { Connection, type Exchange, hangUp, type HttpAnswer, noConnection } from './connection.js';
import { proxyAuthorization } from './proxy.js';

/** The longest time to make a connection: a host that does not answer must not use up the whole deadline. */
const CONNECT_MS = 500;
const MAX_CONNECTIONS = 256;
/** The longest time of a timer of Node. */
const MAX_TIMER_MS = 2_147_483_647;

export interface ConnectionOptions {
  readonly connectMs?: number;
  readonly lookup?: LookupFunction;
  /** Certificates to trust instead of those of node and `NODE_EXTRA_CA_CERTS`. */
  readonly ca?: string;
}

/** Where the connections lead to, and how. */
interface Route {
  readonly isSecure: boolean;
  readonly host: string;
  readonly port: number;
  /** A proxy that tunnels to the endpoint. */
  readonly tunnel: URL | null;
  /** The first line of every request, and the headers that all have. */
  readonly start: string;
}

/** Connections to one endpoint, kept open between requests, through a proxy if there is one. */
export class Connections {
  readonly #route: Route;
  readonly #options: Omit<ConnectionOptions, 'connectMs'>;
  readonly #connectMs: number;
  /** The last one was used most recently, and is used next. */
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  /** Exchanges that wait for a connection. */
  readonly #waiting: Exchange[] = [];
  /** Exchanges without an answer, each with its connection; null while it waits for one. */
  readonly #pending = new Map<Exchange, Connection | null>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #timerEnds: Deadline = Number.POSITIVE_INFINITY;
  /** With it a new connection over TLS needs one round trip less. */
  #tlsSession: Buffer | undefined;

  constructor(endpoint: URL, proxy: URL | null, { connectMs = CONNECT_MS, ...options }: ConnectionOptions = {}) {
    this.#connectMs = connectMs;
    this.#options = options;
    this.#route = routeTo(endpoint, proxy);
  }

  /**
   * Sends a request once, and reads its whole answer. At the deadline the connection is destroyed. `lines` are headers that
   * `headerLines` made, without the length of the body.
   */
  post(lines: string, body: string, deadline: Deadline): Promise<HttpAnswer> {
    const length = Buffer.byteLength(body);
    const text = `${this.#route.start}${lines}\r\ncontent-length: ${length}\r\n\r\n${body}`;
    // Text of ASCII has the same bytes in both encodings, and node copies it faster as Latin-1.
    const encoding = length === body.length ? 'latin1' : 'utf8';
    return new Promise((resolve, reject) => {
      const exchange: Exchange = { text, encoding, deadline, resolve, reject };
      this.#pending.set(exchange, null);
      if (deadline < this.#timerEnds) this.#setTimer(deadline);
      this.#assign(exchange);
    });
  }

  close(): void {
    for (const connection of this.#all) connection.fail(hangUp());
  }

  #assign(exchange: Exchange): void {
    const idle = this.#idle.pop();
    if (idle !== undefined) {
      this.#pending.set(exchange, idle);
      idle.send(exchange);
    } else if (this.#all.size < MAX_CONNECTIONS) this.#open(exchange);
    else this.#waiting.push(exchange);
  }

  #open(exchange: Exchange): void {
    const connection = new Connection(
      {
        free: (one) => this.#reuse(one),
        gone: (one) => this.#forget(one),
        ended: (one) => void this.#pending.delete(one),
      },
      exchange,
    );
    this.#all.add(connection);
    this.#pending.set(exchange, connection);
    try {
      this.#connect(connection);
    } catch (error) {
      // A port that does not exist, for example.
      connection.fail(error as Error);
    }
  }

  #connect(connection: Connection): void {
    const { isSecure, host, port, tunnel } = this.#route;
    const limit = (socket: Socket): Socket => limitConnecting(socket, this.#connectMs);
    if (tunnel === null) {
      const socket = isSecure ? this.#secure({ host, port }) : connectPlain({ host, port, ...this.#options });
      connection.attach(limit(socket), isSecure ? 'secureConnect' : 'connect');
      return;
    }
    const attach = (socket: Socket): void => connection.attach(this.#secure({ host, port, socket }), 'secureConnect');
    // Few processes have a proxy, and `node:http` takes long to load.
    import('./tunnel.js')
      .then(({ openTunnel }) =>
        openTunnel({ proxy: tunnel, target: `${host}:${port}`, onSocket: limit }, (error, socket) => {
          if (socket === undefined) connection.fail(error ?? new Error('no tunnel'));
          else attach(socket);
        }),
      )
      .catch((error: unknown) => connection.fail(error as Error));
  }

  #secure(to: { readonly host: string; readonly port: number; readonly socket?: Socket }): Socket {
    const socket = connectTls({
      ...this.#options,
      ...to,
      servername: isIP(to.host) === 0 ? to.host : '',
      ALPNProtocols: ['http/1.1'],
      ...(this.#tlsSession === undefined ? {} : { session: this.#tlsSession }),
    });
    socket.on('session', (session) => (this.#tlsSession = session));
    socket.on('error', () => (this.#tlsSession = undefined));
    return socket;
  }

  #reuse(connection: Connection): void {
    this.#idle.push(connection);
    const next = this.#waiting.shift();
    if (next !== undefined) this.#assign(next);
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    const next = this.#waiting.shift();
    if (next !== undefined) this.#assign(next);
  }

  /** One timer for all exchanges: most of them end long before their deadline. */
  #setTimer(ends: Deadline): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerEnds = ends;
    const delayMs = Math.min(Math.max(1, Math.ceil(timeLeftMs(ends))), MAX_TIMER_MS);
    this.#timer = setTimeout(() => this.#expire(), delayMs);
    // The connections keep the process running.
    this.#timer.unref();
  }

  #expire(): void {
    this.#timer = null;
    this.#timerEnds = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const [exchange, connection] of this.#pending) {
      if (timeLeftMs(exchange.deadline) > 0) next = Math.min(next, exchange.deadline);
      else if (connection !== null) connection.expire();
      else {
        this.#pending.delete(exchange);
        this.#waiting.splice(this.#waiting.indexOf(exchange), 1);
        exchange.reject(noConnection('before its deadline'));
      }
    }
    if (next < this.#timerEnds) this.#setTimer(next);
  }
}

/** A proxy forwards requests to an http endpoint, and has a tunnel to an https endpoint. */
function routeTo(endpoint: URL, proxy: URL | null): Route {
  const isForwarded = proxy !== null && endpoint.protocol !== 'https:';
  const first = isForwarded ? proxy : endpoint;
  const isSecure = first.protocol === 'https:';
  const authorization = isForwarded ? proxyAuthorization(proxy) : undefined;
  const path = isForwarded ? `${endpoint.origin}${endpoint.pathname}` : endpoint.pathname;
  return {
    isSecure,
    host: hostOf(first),
    port: Number(first.port || (isSecure ? 443 : 80)),
    tunnel: isForwarded ? null : proxy,
    start:
      `POST ${path} HTTP/1.1\r\nconnection: keep-alive\r\n` +
      (authorization === undefined ? '' : `proxy-authorization: ${authorization}\r\n`),
  };
}

/** Bounds only the connection itself, not TLS: a far region needs several round trips for that. */
function limitConnecting(socket: Socket, connectMs: number): Socket {
  const timer = setTimeout(() => socket.destroy(noConnection(`within ${connectMs} ms`)), connectMs);
  const stop = (): void => clearTimeout(timer);
  return socket.once('connect', stop).once('close', stop);
}

/** Without the brackets of an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replaceAll(/^\[|\]$/g, '');
}

/** A line break in a value would start another header. */
const NOT_IN_A_VALUE = /[^\t\x20-\x7e]/;

/** Throws if a header could not be sent as it is. Each name is followed by its value. */
export function headerLines(headers: readonly string[]): string {
  const lines: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    const [name = '', value = ''] = [headers[at], headers[at + 1]];
    if (NOT_IN_A_VALUE.test(value)) throw new TypeError(`Invalid character in the header ${name}`);
    lines.push(`${name}: ${value}`);
  }
  return lines.join('\r\n');
}
