import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Limit, memory, RateLimiter } from '../../../src/index.js';
import type { AppServer } from '../../support/http/app-server.js';
import { type Framework, frameworks, type SharedOptions } from '../../support/http/frameworks.js';

const SLOTS = [Limit.concurrent('slots', 3)];
const NEVER = { until: new Promise<void>(() => {}) };

let limiter: RateLimiter;
let server: AppServer | undefined;

beforeEach(() => {
  limiter = new RateLimiter(memory());
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  await limiter.close();
});

const slotsInUse = async (): Promise<number> => (await limiter.leases.list({ entityId: 'client' })).items.length;

async function startSilent(framework: Framework, more: Partial<SharedOptions> = {}): Promise<string> {
  server = await framework.start([{ limiter, limits: SLOTS, key: () => 'client', ...more }], () => NEVER, 0);
  return server.url;
}

/** The adapters that are told when a client leaves. */
const notified = frameworks.filter(({ name }) => !name.startsWith('Lambda'));

describe.each(notified.map((framework) => [framework.name, framework] as const))('%s', (_, framework) => {
  test('a handler that never answers holds no slot after its client has left', async () => {
    const client = httpRequest(await startSilent(framework)).on('error', () => {});
    client.end();
    await expect.poll(slotsInUse).toBe(1);
    client.destroy();
    await expect.poll(slotsInUse).toBe(0);
  });
});

/** The adapters that see the connection. HTTP/2 tells the end of each stream. */
const onConnections = frameworks.filter(({ name }) => /^(?:express|koa|fastify|hono) \d$|^fetch handlers$/.test(name));

describe.each(onConnections.map((framework) => [framework.name, framework] as const))('%s', (_, framework) => {
  test.each([
    ['held', {}],
    ['held, of limiters that let requests wait', { wait: { timeoutMs: 60_000 } }],
  ])('requests that a client has pipelined leave no slot %s, when its connection closes', async (_how, more) => {
    const { port } = new URL(await startSilent(framework, more));
    // Node answers the requests of a connection in their order: it does not tell the others that the connection has closed.
    const client = connect(Number(port), '127.0.0.1').on('error', () => {});
    client.write('GET / HTTP/1.1\r\nhost: app.test\r\n\r\n'.repeat(3));
    await expect.poll(slotsInUse).toBe(3);
    client.destroy();
    await expect.poll(slotsInUse).toBe(0);
  });
});
