import { describe, expect, test } from 'vitest';
import { credentialOf, requestServer, SECRET } from '../../../tests/support/server/request-server.js';
import { memory } from '../../backends/embedded/memory.js';
import { HeadgateClient } from '../../client/client.js';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { outage } from '../../testing/outage.js';
import { createServer, type Server } from '../server.js';

const KEY = { entityId: 'user-1', resource: 'gpt-4' };
const LIMITS = [Limit.perMinute('rpm', 100), Limit.perMinute('tpm', 10_000), Limit.concurrent('slots', 2)];
const ASK = { ...KEY, consume: { rpm: 1, tpm: 500, slots: 1 }, portable: true };

type Lease = Awaited<ReturnType<HeadgateClient['acquire']>>;

function clientOf({ fetch }: Server): HeadgateClient {
  return new HeadgateClient('http://headgate.test', { fetch: (input, init) => fetch(new Request(input, init)) });
}

/** A server whose store does not answer, after the client has once asked. */
async function inOutage(onUnavailable: 'allow' | 'local') {
  const inner = memory();
  const store = outage(inner);
  const other = await RateLimiter.open(inner, { limits: LIMITS });
  const limiter = await RateLimiter.open(store.backend, { limits: LIMITS, leaseSecrets: [SECRET], onUnavailable });
  const server = createServer(limiter);
  const client = clientOf(server);
  await (await client.acquire(ASK)).rollback();
  store.start();
  return { server, client, store, available: () => other.available(KEY) };
}

describe.each(['allow', 'local'] as const)('over HTTP, while the store is out and the policy is %s', (policy) => {
  test('every operation of a lease succeeds', async () => {
    const { client } = await inOutage(policy);
    const operations = [
      (lease: Lease) => lease.settle({ tpm: 900 }),
      (lease: Lease) => lease.adjust({ tpm: -100 }),
      (lease: Lease) => lease.extend(),
      (lease: Lease) => lease.release(),
      (lease: Lease) => lease.rollback(),
      (lease: Lease) => lease.commit({ tpm: 900 }),
    ];
    for (const operate of operations) {
      const lease = await client.acquire(ASK);
      expect(lease.decidedBy).toBe(policy === 'allow' ? 'open' : 'fallback');
      await operate(lease);
      if (lease.state === 'open') await lease.commit();
    }
  });

  test('run settles, returns the result of its function, and reports no error', async () => {
    const { client } = await inOutage(policy);
    for (let call = 0; call < 5; call++) {
      const result = await client.run(ASK, async (lease) => {
        await lease.settle({ tpm: 900 });
        return call;
      });
      expect(result).toBe(call);
    }
    await expect(client.run(ASK, () => Promise.reject(new Error('its own')))).rejects.toThrow('its own');
  });

  test('a lease that has ended refuses what contradicts its end', async () => {
    const { client } = await inOutage(policy);
    const lease = await client.acquire(ASK);
    await lease.rollback();
    await expect(lease.commit()).rejects.toMatchObject({ code: 'lease.closed' });
  });
});

describe('a lease over HTTP that the policy local has granted', () => {
  test('holds a slot of its server until it ends', async () => {
    const { client } = await inOutage('local');
    const held = [await client.acquire(ASK), await client.acquire(ASK)];
    expect(await client.tryAcquire(ASK)).toMatchObject({ granted: false, decidedBy: 'fallback' });
    await held[0]?.commit();
    const next = await client.acquire(ASK);
    await held[1]?.release();
    await next.extend();
    expect(await client.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'fallback' });
  });

  test('can be ended after the outage, and has changed nothing in the store', async () => {
    const { client, store, available } = await inOutage('local');
    const lease = await client.acquire(ASK);
    store.end();
    await lease.settle({ tpm: 900 });
    await lease.commit();
    expect(await available()).toEqual({ rpm: 100, tpm: 10_000, slots: 2 });
  });

  test('is ended without an effect by a server that does not have it', async () => {
    const { client } = await inOutage('local');
    const { token, id, consumed } = await client.acquire(ASK);
    const { send, limiter } = await requestServer();
    const operations = [
      ['settle', { amounts: { tpm: 900 } }],
      ['commit', {}],
    ] as const;
    for (const [operation, more] of operations) {
      const response = await send(`POST /v1/leases/${operation}`, { body: { token, ...more } });
      expect([response.status, await response.json()]).toMatchObject([200, { lease: { id, token, consumed } }]);
    }
    expect(await limiter.available(KEY)).toEqual({ rpm: 10, slots: 2 });
  });

  test('is refused if its token was altered, or is sent to another namespace', async () => {
    const { client, server } = await inOutage('local');
    const { token } = await client.acquire(ASK);
    const send = (text: string, namespace = 'default'): Promise<Response> => {
      const headers = { 'headgate-namespace': namespace };
      const body = JSON.stringify({ token: text });
      return server.fetch(new Request('http://headgate.test/v1/leases/rollback', { method: 'POST', headers, body }));
    };
    const [altered, empty] = [await send(`${token}x`), await send('hgf1.x')];
    expect([altered.status, empty.status]).toEqual([400, 400]);
    expect(await altered.json()).toMatchObject({ code: 'lease.token-invalid' });
    const { send: sendTo, limiter } = await requestServer();
    await limiter.namespaces.register('acme');
    const elsewhere = await sendTo('POST /v1/leases/rollback', { namespace: 'acme', body: { token } });
    expect([elsewhere.status, await elsewhere.json()]).toMatchObject([400, { code: 'lease.token-invalid' }]);
  });
});

describe('closing the limiter of a server', () => {
  test.each([
    ['succeeded', 'settle', { amounts: { rpm: 2 } }, 200],
    ['were refused', 'settle', { amounts: { nope: 1 } }, 400],
    ['ask for a lifetime that is too short', 'extend', { ttlMs: 1 }, 400],
  ])('ends no lease whose operations %s', async (_what, operation, more, status) => {
    const backend = memory();
    const { send, limiter } = await requestServer({}, LIMITS, backend);
    const other = await RateLimiter.open(backend, { limits: LIMITS });
    const { lease } = (await (await send('POST /v1/acquire', { body: ASK })).json()) as {
      readonly lease: { readonly token: string };
    };
    const response = await send(`POST /v1/leases/${operation}`, { body: { token: lease.token, ...more } });
    expect(response.status).toBe(status);
    await limiter.close();
    expect((await other.available(KEY)).slots).toBe(1);
  });

  test('ends no lease that another caller has asked for', async () => {
    const backend = memory();
    const acme = { name: 'acme', role: 'app', namespace: 'default', entityPrefix: 'acme/' } as const;
    const [own, foreign] = [credentialOf(), credentialOf(acme)];
    const { send, limiter } = await requestServer({ tokens: [own.token, foreign.token] }, LIMITS, backend);
    const other = await RateLimiter.open(backend, { limits: LIMITS });
    const { lease } = (await (await send('POST /v1/acquire', { as: own, body: ASK })).json()) as {
      readonly lease: { readonly token: string };
    };
    const response = await send('POST /v1/leases/rollback', { as: foreign, body: { token: lease.token } });
    expect(response.status).toBe(403);
    await limiter.close();
    expect((await other.available(KEY)).slots).toBe(1);
  });
});
