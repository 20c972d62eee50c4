import { afterEach, expect, test } from 'vitest';
import { HttpLoad } from '../../bench/http-load.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type RunningServer, serve } from '../../src/server/serve.js';
import { SECRET } from '../support/server/request-server.js';

const running: { readonly server: RunningServer; readonly limiter: RateLimiter }[] = [];

afterEach(async () => {
  for (const { server, limiter } of running.splice(0)) {
    await server.close();
    await limiter.close();
  }
});

/** The clock does not move, so that nothing is refilled. */
async function start(requests: number) {
  const limits = [Limit.perHour('rph', requests), Limit.perHour('tph', 1_000_000_000)];
  const limiter = await RateLimiter.open('memory:', { limits, leaseSecrets: [SECRET], clock: { now: () => 0 } });
  const server = await serve(limiter, { port: 0 });
  running.push({ server, limiter });
  return { limiter, load: new HttpLoad(server.url, 'hot') };
}

test('the server answers pipelined requests in their order, and the store counts each grant once', async () => {
  const { limiter, load } = await start(1_000_000);
  while (load.granted.grants < 600) await load.runFor(1);
  const { grants, tokens } = await load.stop();
  expect(await limiter.available({ entityId: 'hot', resource: 'gpt-4' })).toEqual({
    rph: 1_000_000 - grants,
    tph: 1_000_000_000 - tokens,
  });
});

test('the load fails at the first answer that is no grant', async () => {
  const { load } = await start(600);
  const run = async (): Promise<void> => {
    for (;;) await load.runFor(10);
  };
  await expect(run()).rejects.toThrow('Expected a grant');
  await expect(load.stop()).rejects.toThrow('Expected a grant');
  // The last grants may still be on their way on other connections.
  expect(load.granted.grants).toBeGreaterThan(0);
  expect(load.granted.grants).toBeLessThanOrEqual(600);
});
