import * as http from 'node:http';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import { proxyAuthorization } from './proxy.js';

/** The longest time that a proxy may take to make a tunnel. */
const TUNNEL_MS = 5_000;

export interface Tunnel {
  readonly proxy: URL;
  /** A host with its port. */
  readonly target: string;
  /** Gets the connection to the proxy, which is not established yet. */
  readonly onSocket: (socket: Socket) => void;
}

/** Calls `done` once, with a connection through the proxy to the target. Returns the request, which can be destroyed before. */
export function openTunnel(
  { proxy, target, onSocket }: Tunnel,
  done: (error: Error | null, socket?: Socket) => void,
): http.ClientRequest {
  const { request } = proxy.protocol === 'https:' ? https : http;
  const authorization = proxyAuthorization(proxy);
  const asked = request({
    agent: false,
    method: 'CONNECT',
    host: proxy.hostname.replaceAll(/^\[|\]$/g, ''),
    port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
    path: target,
    headers: { host: target, ...(authorization === undefined ? {} : { 'proxy-authorization': authorization }) },
  });
  let isDone = false;
  const end = (error: Error | null, socket?: Socket): void => {
    clearTimeout(timer);
    if (!isDone) done(error, socket);
    isDone = true;
  };
  const timer = setTimeout(() => asked.destroy(new Error('no answer')), TUNNEL_MS);
  return (
    asked
      .on('socket', onSocket)
      // Whatever went wrong, the store was not asked for anything.
      .on('error', (error) => end(error.name === 'TimeoutError' ? error : refusal(proxy, `failed: ${error.message}`)))
      .on('connect', ({ statusCode }, socket) => {
        if (statusCode === 200) return end(null, socket);
        socket.destroy();
        return end(refusal(proxy, `answered with status ${statusCode}`));
      })
      .end()
  );
}

/** The store was not reached, as by a port that refuses the connection. */
function refusal({ host }: URL, why: string): Error {
  return Object.assign(new Error(`the proxy ${host} ${why}`), { code: 'ECONNREFUSED' });
}
