import type { Backend } from '../../../src/backend.js';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type AccessToken, createSecret, hashSecret } from '../../../src/server/access/access-token.js';
import type { ServerOptions } from '../../../src/server/server.js';
import { createServer } from '../../../src/server/server.js';

export const SECRET = 'a-secret-of-tests-that-is-long-enough';

/** A token and the secret that finds it. */
export interface Credential {
  readonly secret: string;
  readonly token: AccessToken;
}

export function credentialOf(change: Partial<AccessToken> = {}): Credential {
  const secret = createSecret();
  const token = { name: `token-${secret.slice(3, 9)}`, role: 'app', namespace: 'default', ...change } as const;
  return { secret, token: { ...token, sha256: hashSecret(secret) } };
}

export interface Sent {
  readonly as?: Credential;
  readonly namespace?: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** A server on memory or another store, called without a socket. */
export async function requestServer(
  options: ServerOptions = {},
  limits: readonly Limit[] = [Limit.perMinute('rpm', 10), Limit.concurrent('slots', 2)],
  store: string | Backend = 'memory:',
) {
  const limiter = await RateLimiter.open(store, { limits, leaseSecrets: [SECRET] });
  const server = createServer(limiter, options);
  const send = (route: string, { as, namespace, body, signal }: Sent = {}): Promise<Response> => {
    const [method = 'GET', path = '/'] = route.split(' ');
    const headers = new Headers();
    if (as !== undefined) headers.set('authorization', `Bearer ${as.secret}`);
    if (namespace !== undefined) headers.set('headgate-namespace', namespace);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return server.fetch(
      new Request(`http://headgate.test${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: text }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
  };
  return { limiter, server, send };
}
