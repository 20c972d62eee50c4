import { describe, expect, test } from 'vitest';
import { type Credential, credentialOf, SECRET } from '../../../tests/support/server/request-server.js';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { EventHub } from '../live/event-hub.js';
import { createServer } from '../server.js';

const REASON = 'the invoice of umbrella corp is unpaid';
const ASK = { entityId: 'acme/user-1', resource: 'gpt-4', consume: { rpm: 1 } };

/** A server with an entity of the prefix `acme/`, whose parent is outside of it. */
async function withParent() {
  const [tenant, service] = [credentialOf({ entityPrefix: 'acme/' }), credentialOf()];
  const events = new EventHub();
  const limiter = await RateLimiter.open('memory:', {
    limits: [Limit.perMinute('rpm', 10)],
    leaseSecrets: [SECRET],
    onEvent: events.onEvent,
  });
  const server = createServer(limiter, { tokens: [tenant.token, service.token], events });
  await limiter.entities.create({ id: 'upstream' });
  await limiter.entities.create({ id: ASK.entityId, parentId: 'upstream', cascade: true });
  const send = async ({ secret }: Credential, path: string, body?: unknown): Promise<Response> => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const headers = { authorization: `Bearer ${secret}` };
    return server.fetch(new Request(`http://headgate.test${path}`, { headers, ...init }));
  };
  return { send, limiter, server, tenant, service };
}

describe('the reason of a pause of a parent', () => {
  test.each([
    ['an ask that a pause with an end refuses', '/v1/acquire', ASK, { forMs: 60_000 }],
    ['an ask that a pause without an end refuses', '/v1/acquire', ASK, { forMs: 'forever' }],
    ['a batch', '/v1/acquire/batch', { asks: [ASK] }, { forMs: 60_000 }],
    ['a peek', '/v1/peek', ASK, { forMs: 60_000 }],
    ['the status', `/v1/status?entityId=${ASK.entityId}&resource=gpt-4`, undefined, { forMs: 60_000 }],
  ] as const)('is hidden from a token whose prefix does not cover it: %s', async (_what, path, body, end) => {
    for (const resource of [undefined, 'gpt-4']) {
      const { send, limiter, tenant, service } = await withParent();
      const target = { entityId: 'upstream', ...(resource === undefined ? {} : { resource }) };
      await limiter.pause({ ...target, reason: REASON, ...end });
      const hidden = await (await send(tenant, path, body)).text();
      expect(hidden).not.toContain(REASON);
      expect(hidden).toContain('upstream');
      expect(await (await send(service, path, body)).text()).toContain(REASON);
    }
  });

  test('is shown with a pause of an entity that the prefix covers', async () => {
    const { send, limiter, tenant } = await withParent();
    await limiter.pause({ entityId: ASK.entityId, forMs: 60_000, reason: REASON });
    expect(await (await send(tenant, '/v1/acquire', ASK)).text()).toContain(REASON);
  });

  test('is hidden in the event of a decision, and shown to a token that covers the parent', async () => {
    const { send, limiter, server, tenant, service } = await withParent();
    const streams = await Promise.all([tenant, service].map((as) => send(as, '/v1/events')));
    const bodies = streams.map((response) => response.text());
    await limiter.pause({ entityId: 'upstream', forMs: 60_000, reason: REASON });
    await limiter.tryAcquire(ASK);
    server.close();
    const [hidden = '', shown = ''] = await Promise.all(bodies);
    expect(hidden).toContain('event: decision');
    expect(hidden).not.toContain(REASON);
    expect(shown).toContain(REASON);
  });
});
