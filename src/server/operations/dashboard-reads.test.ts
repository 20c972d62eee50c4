import { describe, expect, test } from 'vitest';
import { credentialOf, requestServer, SECRET } from '../../../tests/support/server/request-server.js';
import { memory } from '../../backends/embedded/memory.js';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { outage } from '../../testing/outage.js';
import type { AccessToken } from '../access/access-token.js';
import { EventHub } from '../live/event-hub.js';
import { createServer } from '../server.js';

const every = credentialOf({ role: 'admin', namespace: '*' });
const admin = credentialOf({ role: 'admin' });
const app = credentialOf({ role: 'app', entityPrefix: 'acme/' });

const json = async (response: Response): Promise<unknown> => response.json();

describe('GET /v1/session', () => {
  test('a token may read its role, its namespace and its prefix', async () => {
    const { send } = await requestServer({ tokens: [every.token, app.token] });
    expect(await json(await send('GET /v1/session', { as: app }))).toEqual({
      token: app.token.name,
      role: 'app',
      namespace: 'default',
      everyNamespace: false,
      entityPrefix: 'acme/',
    });
    expect(await json(await send('GET /v1/session', { as: every }))).toMatchObject({
      role: 'admin',
      everyNamespace: true,
    });
    expect((await send('GET /v1/session')).status).toBe(401);
  });

  test('a server without tokens allows everything', async () => {
    const { send } = await requestServer();
    expect(await json(await send('GET /v1/session'))).toMatchObject({
      token: null,
      role: 'admin',
      everyNamespace: true,
    });
  });
});

describe('GET /v1/events', () => {
  /** The entities of the events that a request gets, after one decision in each of two namespaces. */
  async function heard(path: string, credential: { readonly secret: string } | null, tokens: readonly AccessToken[]) {
    const events = new EventHub();
    const limiter = await RateLimiter.open('memory:', {
      limits: [Limit.perMinute('rpm', 10)],
      leaseSecrets: [SECRET],
      onEvent: events.onEvent,
    });
    await limiter.namespaces.register('other');
    const server = createServer(limiter, { events, tokens });
    const headers = credential === null ? {} : { authorization: `Bearer ${credential.secret}` };
    const response = await server.fetch(new Request(`http://headgate.test${path}`, { headers }));
    const other = await limiter.in('other');
    for (const entityId of ['acme/a', 'b']) await limiter.acquire({ entityId, resource: 'r', consume: { rpm: 1 } });
    await other.acquire({ entityId: 'acme/elsewhere', resource: 'r', consume: { rpm: 1 } });
    events.onEvent({ type: 'outage-begin', error: new Error('http://10.0.0.1 refused') });
    server.close();
    const text = await response.text();
    await limiter.close();
    const data = Array.from(
      text.matchAll(/^data: (.*)$/gm),
      ([, line = '']) => JSON.parse(line) as { entityId?: string },
    );
    return { status: response.status, entities: data.flatMap(({ entityId }) => entityId ?? []), text };
  }

  test('a token for every namespace gets the events of all of them, or the one that it names', async () => {
    const all = await heard('/v1/events', every, [every.token]);
    expect(all.entities).toEqual(['acme/a', 'b', 'acme/elsewhere']);
    expect(all.text).toContain('event: outage-begin');
    expect((await heard('/v1/events?namespace=other', every, [every.token])).entities).toEqual(['acme/elsewhere']);
  });

  test('a token of one namespace gets the events of that namespace only, and may not name another', async () => {
    expect((await heard('/v1/events', admin, [admin.token])).entities).toEqual(['acme/a', 'b']);
    expect((await heard('/v1/events?namespace=other', admin, [admin.token])).status).toBe(403);
  });

  test('a token of the role app gets the events of its own entities, and none about the store', async () => {
    const { entities, text } = await heard('/v1/events', app, [app.token]);
    expect(entities).toEqual(['acme/a']);
    expect(text).not.toContain('outage');
  });

  test('a stream with `forMs` ends by itself', async () => {
    const { send } = await requestServer();
    expect(await (await send('GET /v1/events?forMs=1')).text()).toBe(': connected\n\n');
    expect((await send('GET /v1/events?forMs=x')).status).toBe(400);
  });
});

describe('the lists for the dashboard', () => {
  test('entities are found by their id, or by a part of their id or name; a pause is part of them', async () => {
    const { send, limiter } = await requestServer();
    await limiter.entities.create({ id: 'acme', name: 'The Payer', bypass: true });
    await limiter.entities.create({ id: 'zeta' });
    await limiter.pause({ entityId: 'zeta', forMs: 'forever', reason: 'abuse' });
    const ids = async (query: string): Promise<unknown> => {
      const { items } = (await json(await send(`GET /v1/entities?${query}`))) as { readonly items: { id: string }[] };
      return items.map(({ id }) => id);
    };
    expect(await ids('search=pay')).toEqual(['acme']);
    expect(await ids('search=ZET')).toEqual(['zeta']);
    expect([await ids('id=acme'), await ids('id=none')]).toEqual([['acme'], []]);
    expect(await json(await send('GET /v1/entities?id=zeta'))).toMatchObject({
      items: [{ paused: { until: null, reason: 'abuse' } }],
    });
  });

  test('a bucket has its pause, and a limit its reserve and whether it is a shadow', async () => {
    const { send, limiter } = await requestServer();
    await limiter.config.setResource('r', { limits: [Limit.parse('rpm:10/min!reserve.batch=0.3!shadow')] });
    await limiter.pause({ entityId: 'a', resource: 'r', forMs: 'forever', reason: 'x' });
    expect(await json(await send('GET /v1/buckets?entityId=a'))).toMatchObject({
      items: [{ paused: { reason: 'x' } }],
    });
    expect(await json(await send('GET /v1/config?resource=r'))).toMatchObject({
      limits: [{ reserve: { batch: 0.3 }, shadow: true }],
    });
  });

  test('the audit is read from the newest change to the oldest, page by page', async () => {
    const { send, limiter } = await requestServer();
    for (let at = 1; at <= 7; at++) await limiter.config.setResource('r', { limits: [Limit.perMinute('rpm', at)] });
    const found: (string | undefined)[][] = [];
    for (let next: string | null = ''; next !== null;) {
      const page = (await json(await send(`GET /v1/audit?order=desc&limit=3&after=${next}`))) as {
        readonly items: readonly { readonly after: unknown }[];
        readonly next: string | null;
      };
      found.push(page.items.map(({ after }) => JSON.stringify(after).match(/rpm:\d+/)?.[0]));
      next = page.next;
    }
    expect(found).toEqual([['rpm:7', 'rpm:6', 'rpm:5'], ['rpm:4', 'rpm:3', 'rpm:2'], ['rpm:1']]);
    expect((await send('GET /v1/audit?order=newest')).status).toBe(400);
  });

  test('a call that waits is listed with its limit, until it ends', async () => {
    const { send, limiter } = await requestServer();
    const ask = { entityId: 'a', resource: 'r', consume: { slots: 1 } };
    const open = await limiter.in('default');
    await open.config.setResource('r', { limits: [Limit.concurrent('slots', 1)] });
    const held = await open.acquire(ask);
    const waiting = open.acquire({ ...ask, wait: { timeoutMs: 60_000 } });
    await expect
      .poll(async () => json(await send('GET /v1/waiting')))
      .toMatchObject({
        items: [{ entityId: 'a', resource: 'r', limit: 'slots', priority: null, depth: 1 }],
        next: null,
      });
    await held.commit();
    await (await waiting).commit();
    expect(await json(await send('GET /v1/waiting'))).toEqual({ items: [], next: null });
  });

  test('waiting calls are listed without the store, also to a token that has made no other call', async () => {
    const store = outage(memory());
    const tokens = [app.token, admin.token];
    const { send } = await requestServer({ tokens }, [Limit.concurrent('slots', 1)], store.backend);
    const ask = { entityId: 'acme/a', resource: 'r', consume: { slots: 1 } };
    await send('POST /v1/acquire', { as: app, body: ask });
    const left = new AbortController();
    const body = { ...ask, wait: { timeoutMs: 60_000 } };
    const waiting = send('POST /v1/acquire', { as: app, body, signal: left.signal });
    const depth = async () => json(await send('GET /v1/waiting', { as: admin }));
    await expect.poll(depth).toMatchObject({ items: [{ limit: 'slots', depth: 1 }] });
    store.start();
    expect(await depth()).toMatchObject({ items: [{ limit: 'slots', depth: 1 }] });
    store.end();
    left.abort();
    await waiting;
  });
});
