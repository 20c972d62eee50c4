import { connect as connectPlain, isIP, isIPv6, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Connection, noConnection } from './connection.js';
import { proxyAuthorization } from './proxy.js';
import type { Tunnel } from './tunnel.js';

/** The longest time to connect to one address: a host that does not answer must not use up the whole deadline. */
const CONNECT_MS = 500;
/**
 * When Node ends the attempt to connect to an address that is not the last one of its host. Its default, 250 ms, ends every
 * attempt over a longer round trip. Shorter than `CONNECT_MS`, which ends all attempts.
 */
const NEXT_ADDRESS_MS = 400;

export interface DialOptions {
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
  readonly start: string;
}

/** Makes connections to one endpoint, through a proxy if there is one. */
export class Dialer {
  /** The first line of every request, and the headers that all have. */
  readonly start: string;
  readonly #route: Route;
  readonly #options: DialOptions & { readonly autoSelectFamilyAttemptTimeout: number };
  /** With it a new connection over TLS needs one round trip less. */
  #tlsSession: Buffer | undefined;

  constructor(endpoint: URL, proxy: URL | null, options: DialOptions) {
    this.#options = { ...options, autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS };
    this.#route = routeTo(endpoint, proxy);
    this.start = this.#route.start;
  }

  /** Throws if no attempt can be made, as for a port that does not exist. */
  dial(connection: Connection): void {
    const { isSecure, host, port, tunnel } = this.#route;
    if (tunnel === null) {
      const socket = isSecure ? this.#secure({ host, port }) : connectPlain({ host, port, ...this.#options });
      connection.attach(limitConnecting(socket, host), isSecure ? 'secureConnect' : 'connect');
      return;
    }
    const target = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
    const onSocket = (socket: Socket): Socket => limitConnecting(socket, hostOf(tunnel));
    askForTunnel(connection, { proxy: tunnel, target, onSocket }, (socket) => this.#secure({ host, port, socket }));
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
}

/** Few processes have a proxy, and `node:http`, which asks it for a tunnel, takes long to load. */
function askForTunnel(connection: Connection, tunnel: Tunnel, secure: (socket: Socket) => Socket): void {
  const done = (error: Error | null, socket?: Socket): void => {
    if (socket === undefined) connection.fail(error ?? new Error('no tunnel'));
    else connection.attach(secure(socket), 'secureConnect');
  };
  import('./tunnel.js')
    .then(({ openTunnel }) => connection.begin(openTunnel(tunnel, done)))
    .catch((error: unknown) => connection.fail(error as Error));
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

/**
 * Bounds only the connection itself, to each address of its host. TLS to a far region needs several round trips, and the
 * look-ups of a burst of new connections wait for each other: Node has four threads for them.
 */
export function limitConnecting(socket: Socket, host: string): Socket {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => clearTimeout(timer);
  const start = (): void => {
    stop();
    timer = setTimeout(() => socket.destroy(noConnection(`within ${CONNECT_MS} ms`)), CONNECT_MS);
  };
  // The socket of a proxy's address may have begun before it was handed over.
  if (isIP(host) !== 0) start();
  return socket.on('connectionAttempt', start).once('connect', stop).once('close', stop);
}

/** Without the brackets of an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replaceAll(/^\[|\]$/g, '');
}
