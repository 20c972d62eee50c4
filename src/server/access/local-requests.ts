import { serverProblem } from '../answer/problem.js';
import { respond } from '../answer/respond.js';

/**
 * The refusal of a request that a web page of another site makes to a server without tokens; null: the request is allowed.
 * A browser reaches this machine and its network for every page that it shows. It always sends `Origin` with a POST of
 * another site. The schemes are not compared: a proxy may end TLS.
 */
export function refuseOtherOrigins(request: Request): Response | null {
  const origin = request.headers.get('origin');
  if (origin === null || (URL.canParse(origin) && new URL(origin).host === new URL(request.url).host)) return null;
  return respond(serverProblem('access.denied', 'A server without tokens answers no requests of other web pages'));
}

/** Clients send the same host with every request. */
let lastAllowed: string | null = null;

/**
 * The refusal of a request to another host name than that of this machine; null: the request is allowed. A page whose name
 * was rebound to 127.0.0.1 is of the same origin as the server, but sends its own name as `Host`.
 */
export function refuseOtherHosts(host: string): Response | null {
  if (host === lastAllowed) return null;
  if (isLoopback(hostnameOf(`http://${host}`))) {
    lastAllowed = host;
    return null;
  }
  return respond(serverProblem('access.denied', 'A server without tokens answers requests to localhost only'));
}

/** Whether a name or an address reaches this machine only. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '::1' || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

/** Without port and brackets; empty if the URL is not valid. */
function hostnameOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.replaceAll(/[[\]]/g, '') : '';
}
