import { serve as listen } from '@hono/node-server';
import { Hono } from 'hono';
import type { AddressInfo } from 'node:net';
import { createDynamoDBBackend } from '../src/backends/dynamodb/dynamodb.js';
import { Limit, memory, RateLimiter } from '../src/index.js';
import { OPERATIONS } from '../src/server/operations/index.js';
import { parse } from '../src/server/request/parse.js';
import { serve } from '../src/server/serve.js';
import { TABLE } from './dynamodb-peers.js';

/** What a server process serves. */
export type ServedStore =
  | { readonly kind: 'memory' }
  | { readonly kind: 'dynamodb'; readonly endpoint: string; readonly region: string }
  | { readonly kind: 'constant' };

/** Sent to the parent when it listens, and in answer to every message. */
export interface ServerNews {
  readonly url: string;
  /** The CPU time of this process so far, in microseconds. */
  readonly cpuUs: number;
}

/** Large enough that nothing is denied. */
const LIMITS = [Limit.perHour('rph', 1_000_000_000), Limit.perHour('tph', 100_000_000_000)];
const PATIENCE_MS = 30_000;
const SECRET = 'a-secret-of-the-bench-that-is-long-enough';

/** A process with one server, which tells its CPU time when it is asked. */
export async function serveForBench(order: string): Promise<void> {
  const served = JSON.parse(order) as ServedStore;
  const url = served.kind === 'constant' ? await serveConstant() : await serveHeadgate(served);
  const tell = (): void => {
    const { user, system } = process.cpuUsage();
    process.send?.({ url, cpuUs: user + system } satisfies ServerNews);
  };
  process.on('message', tell);
  process.on('disconnect', () => process.exit());
  tell();
}

async function serveHeadgate(served: Exclude<ServedStore, { kind: 'constant' }>): Promise<string> {
  const store = served.kind === 'memory' ? memory() : createDynamoDBBackend({ table: TABLE, ...served }, {});
  const timeouts = { callMs: PATIENCE_MS, acquireMs: PATIENCE_MS };
  const limiter = await RateLimiter.open(store, { limits: LIMITS, timeouts, leaseSecrets: [SECRET] });
  return (await serve(limiter, { port: 0 })).url;
}

/** The same stack and the same validation as the operation `acquire`. Its answer is that of a grant. */
async function serveConstant(): Promise<string> {
  const schema = OPERATIONS.find(({ id }) => id === 'acquire')?.body;
  if (schema === undefined || schema === null) throw new Error('Expected the operation acquire to have a body');
  const answer = {
    granted: true,
    lease: { id: '0QCON500Wlf', token: null, expiresAt: null, consumed: { rph: 1, tph: 100 } },
    statuses: LIMITS.map(statusOf),
    decidedBy: 'store',
  };
  const app = new Hono();
  app.post('/v1/acquire', async (context) => {
    parse('body', schema, await context.req.json());
    return context.json(answer);
  });
  return new Promise((resolve) => {
    const server = listen({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}

function statusOf(limit: Limit) {
  const { name, kind, capacity, refillAmount, refillPeriodMs } = limit;
  const view = { name, text: String(limit), kind, capacity, refillAmount, refillPeriodMs };
  const key = { entityId: 'user-1', resource: 'gpt-4' };
  return { ...key, available: 999_999_999, requested: 1, exceeded: false, retryAfterMs: 0, limit: view };
}
