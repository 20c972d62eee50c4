import { buildSync } from 'esbuild';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Limit, RateLimiter } from '../../src/index.js';
import { serve } from '../../src/server/serve.js';
import { SECRET } from '../support/server/request-server.js';

const EDGE = new URL('../../tools/edge/', import.meta.url);
const isMissing = !existsSync(new URL('node_modules/workerd', EDGE));
const note = isMissing ? ' (skipped: npm ci --prefix tools/edge installs workerd)' : '';

/** The part of miniflare that this test uses. Its own types would make the package a dependency of every checkout. */
interface Miniflare {
  dispatchFetch(url: string): Promise<Response>;
  dispose(): Promise<void>;
}

const WORKER = `import { HeadgateClient } from './client.mjs';
export default {
  async fetch(request, env) {
    const client = new HeadgateClient(env.URL);
    const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 4, slots: 1 } };
    const settled = await client.run(ask, async (lease) => {
      await lease.settle({ rpm: 6 });
      await lease.adjust({ rpm: -1 });
      await lease.extend();
      return lease.consumed.rpm;
    });
    const denial = await client.tryAcquire({ ...ask, consume: { rpm: 9 } });
    const error = await client.acquire({ ...ask, consume: { rpm: 9 } }).catch((thrown) => thrown);
    const [{ available }] = await client.status({ entityId: 'user-1', resource: 'gpt-4' });
    const held = await client.acquire({ ...ask, consume: { slots: 1 } });
    const waiting = client.acquire({ ...ask, consume: { slots: 1 }, wait: { timeoutMs: 30000 } });
    await held.commit();
    const next = await waiting;
    await next.rollback();
    return Response.json([settled, denial.reason, error.code, available, next.state]);
  },
};`;

test.skipIf(isMissing)(
  `the client decides, settles, extends and waits in workerd, the runtime of Cloudflare${note}`,
  async () => {
    const require = createRequire(new URL('package.json', EDGE));
    const { Miniflare } = require('miniflare') as { readonly Miniflare: new (options: object) => Miniflare };
    const entryPoints = [fileURLToPath(new URL('../../src/client/index.ts', import.meta.url))];
    const built = buildSync({ entryPoints, bundle: true, format: 'esm', platform: 'neutral', write: false });
    const limits = [Limit.perMinute('rpm', 10), Limit.concurrent('slots', 1)];
    const limiter = await RateLimiter.open('memory:', { limits, leaseSecrets: [SECRET] });
    const server = await serve(limiter, { port: 0 });
    const edge = new Miniflare({
      modulesRoot: '/worker',
      modules: [
        { type: 'ESModule', path: '/worker/main.mjs', contents: WORKER },
        { type: 'ESModule', path: '/worker/client.mjs', contents: built.outputFiles[0]?.text },
      ],
      compatibilityDate: '2025-09-01',
      bindings: { URL: server.url },
    });
    const answer = await (await edge.dispatchFetch('http://worker.test/')).json();
    expect(answer).toEqual([5, 'exhausted', 'limit.exceeded', 5, 'rolled-back']);
    await edge.dispose();
    await server.close();
    await limiter.close();
  },
);
