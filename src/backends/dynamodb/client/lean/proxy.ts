import { isIPv6 } from 'node:net';
import { HeadgateError } from '../../../../core/errors.js';
import { type Environment, isLoopback } from '../loopback.js';

const PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/**
 * The proxy that the environment names for an endpoint: `HTTPS_PROXY` or `HTTP_PROXY` by the endpoint's scheme, in
 * capitals or not, unless `NO_PROXY` names the host. null: none. An endpoint on this machine has none.
 */
export function proxyOf(endpoint: URL, env: Environment): URL | null {
  const name = endpoint.protocol === 'https:' ? 'https_proxy' : 'http_proxy';
  const given = env[name] || env[name.toUpperCase()] || '';
  const exceptions = env['no_proxy'] || env['NO_PROXY'] || '';
  if (given === '' || isLoopback(endpoint.hostname) || isExcepted(endpoint, exceptions)) return null;
  const text = given.includes('://') ? given : `http://${given}`;
  const proxy = URL.canParse(text) ? new URL(text) : null;
  if (proxy === null || PORTS[proxy.protocol] === undefined || !canDecode(proxy)) {
    // Without the value, which may contain a password.
    const expected = 'a URL like http://proxy:3128, with user and password percent-encoded';
    throw new HeadgateError('input.invalid', `Expected ${name.toUpperCase()} to be ${expected}`);
  }
  return proxy;
}

/** Whether each `%` in the name of the user and in the password is followed by the number of a character. */
function canDecode(proxy: URL): boolean {
  try {
    proxyAuthorization(proxy);
    return true;
  } catch {
    return false;
  }
}

/** An entry is `*`, or a domain with everything below it, with or without a leading dot and a port, or an address. */
function isExcepted({ hostname, port, protocol }: URL, exceptions: string): boolean {
  return exceptions
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true;
      const name = isIPv6(entry) ? new URL(`http://[${entry}]`).hostname : entry.replace(/^\*?\./, '');
      const [, domain = '', onPort] = /^(.*?)(?::(\d+))?$/.exec(name) ?? [];
      if (onPort !== undefined && onPort !== (port || PORTS[protocol])) return false;
      return hostname === domain || hostname.endsWith(`.${domain}`);
    });
}

/** The value of `Proxy-Authorization`. undefined: the proxy's URL has no user. Throws unless the user can be decoded. */
export function proxyAuthorization({ username, password }: URL): string | undefined {
  if (username === '') return undefined;
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}
