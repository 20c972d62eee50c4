import { HeadgateClient } from '../../../src/client/client.js';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { createServer } from '../../../src/server/server.js';
import { credentialOf, SECRET } from './request-server.js';

/** A client whose requests reach a server on memory without a socket. `loseNext`: the next answer is lost. */
export async function connected() {
  const credential = credentialOf();
  const limiter = await RateLimiter.open('memory:', {
    limits: [Limit.perMinute('rpm', 10), Limit.concurrent('slots', 1)],
    leaseSecrets: [SECRET],
  });
  const server = createServer(limiter, { tokens: [credential.token] });
  const sent: string[] = [];
  let isLost = false;
  const loseNext = (): void => {
    isLost = true;
  };
  const fetching: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    sent.push(new URL(request.url).pathname);
    const response = await server.fetch(request);
    if (!isLost) return response;
    isLost = false;
    throw new TypeError('fetch failed');
  };
  const client = new HeadgateClient('http://headgate.test/', { token: credential.secret, fetch: fetching });
  const available = () => limiter.available({ entityId: 'user-1', resource: 'gpt-4' });
  return { client, limiter, sent, available, loseNext, fetching, credential };
}
