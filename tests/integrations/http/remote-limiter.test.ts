import { describe, expect, test } from 'vitest';
import { HeadgateClient } from '../../../src/client/client.js';
import { Limit, memory, RateLimiter } from '../../../src/index.js';
import { withRateLimit } from '../../../src/integrations/http/fetch.js';
import { createServer } from '../../../src/server/server.js';
import { SECRET } from '../../support/server/request-server.js';

/** A limiter behind a server, and a client of it. `cut` ends the network between them. */
async function connected() {
  const limiter = await RateLimiter.open(memory(), { leaseSecrets: [SECRET] });
  const server = createServer(limiter);
  let isCut = false;
  const client = new HeadgateClient('http://headgate.test', {
    fetch: async (input, init) => {
      if (isCut) throw new TypeError('fetch failed');
      return server.fetch(new Request(input, init));
    },
  });
  const cut = (): void => {
    isCut = true;
  };
  return { client, limiter, cut };
}

const REQUEST = new Request('http://app.test/');
const TWO_A_DAY = [Limit.perDay('requests', 2)];
const options = { limits: TWO_A_DAY, key: () => 'client' };

describe('a middleware whose limiter is a client', () => {
  test.each([
    ['failed', { skipFailedRequests: true }, 500],
    ['succeeded', { skipSuccessfulRequests: true }, 200],
  ])('gives back what a request took that has %s', async (_, skips, status) => {
    const { client } = await connected();
    const errors: unknown[] = [];
    const GET = withRateLimit(async () => new Response('', { status }), {
      ...options,
      ...skips,
      limiter: client,
      onError: (error) => void errors.push(error),
    });
    for (let at = 0; at < 5; at++) {
      const answer = await GET(REQUEST);
      expect([answer.status, await answer.text()]).toEqual([status, '']);
    }
    expect(errors).toEqual([]);
  });

  test('leaves no holder behind where every request counts', async () => {
    const { client, limiter } = await connected();
    await withRateLimit(async () => new Response(), { ...options, limiter: client })(REQUEST);
    expect((await limiter.leases.list()).items).toEqual([]);
  });

  test.each([
    ['allow', 200],
    ['block', 503],
    [undefined, 503],
  ] as const)('with the policy %s answers %i while its server cannot be reached', async (onUnavailable, status) => {
    const { client, cut } = await connected();
    const policy = onUnavailable === undefined ? {} : { onUnavailable };
    const GET = withRateLimit(async () => new Response('ok'), { ...options, ...policy, limiter: client });
    cut();
    expect((await GET(REQUEST)).status).toBe(status);
  });
});
