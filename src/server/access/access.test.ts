import { describe, expect, test } from 'vitest';
import { credentialOf, requestServer } from '../../../tests/support/server/request-server.js';
import type { AccessToken } from './access-token.js';
import { OPERATIONS } from '../operations/index.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

/** A path without braces: parameters get a legal value. */
const routeOf = ({ method, path }: { readonly method: string; readonly path: string }): string =>
  `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, 'x')}`;

describe('access', () => {
  const app = credentialOf({ entityPrefix: 'acme/' });
  const admin = credentialOf({ role: 'admin' });
  const root = credentialOf({ role: 'admin', namespace: '*' });
  const tokens = [app.token, admin.token, root.token];

  test.each(OPERATIONS.map((one) => [one.id, one] as const))(
    '%s refuses a missing or unknown token',
    async (_, one) => {
      const { send } = await requestServer({ tokens });
      for (const sent of [{}, { as: credentialOf() }]) {
        const response = await send(routeOf(one), sent);
        expect(response.status).toBe(401);
        expect(response.headers.get('www-authenticate')).toBe('Bearer');
        expect(await response.json()).toMatchObject({ code: 'access.missing' });
      }
    },
  );

  test.each(OPERATIONS.filter(({ role }) => role === 'admin').map((one) => [one.id, one] as const))(
    '%s refuses a token of the role app',
    async (_, one) => {
      const { send } = await requestServer({ tokens });
      expect((await send(routeOf(one), { as: app })).status).toBe(403);
    },
  );

  test.each(OPERATIONS.map((one) => [one.id, one] as const))(
    '%s refuses a token of another namespace',
    async (_, one) => {
      const { send, limiter } = await requestServer({ tokens });
      await limiter.namespaces.register('other');
      for (const as of [app, admin]) expect((await send(routeOf(one), { as, namespace: 'other' })).status).toBe(403);
    },
  );

  test('every operation that an app token may call names its entities, and others are refused', async () => {
    const bodies: Readonly<Record<string, object>> = {
      acquire: ASK,
      acquireBatch: { asks: [{ ...ASK, entityId: 'acme/user-1' }, ASK] },
      peek: ASK,
      charge: { entityId: 'user-1', resource: 'gpt-4', amounts: { rpm: 1 } },
    };
    const leaseBodies: Readonly<Record<string, object>> = {
      settleLease: { amounts: { rpm: 1 } },
      adjustLease: { amounts: { rpm: 1 }, operationId: 'once' },
    };
    const queries: Readonly<Record<string, string>> = {
      status: '?entityId=user-1&resource=gpt-4',
      available: '?entityId=user-1&resource=gpt-4',
      usage: '?resource=gpt-4&window=hourly',
      usageSummary: '?resource=gpt-4&window=hourly&entityId=user-1',
    };
    const { send, limiter } = await requestServer({ tokens });
    const held = await limiter.acquire({ ...ASK, consume: { slots: 1 }, portable: true });
    const before = await limiter.buckets.list({ resource: 'gpt-4' });
    const token = await held.token();
    const withoutEntities = new Set(['events', 'session']);
    for (const one of OPERATIONS.filter(({ id, role }) => role === 'app' && !withoutEntities.has(id))) {
      const body = one.group === 'leases' ? { token, ...leaseBodies[one.id] } : bodies[one.id];
      const route = `${routeOf(one)}${queries[one.id] ?? ''}`;
      const response = await send(route, body === undefined ? { as: app } : { as: app, body });
      expect([one.id, response.status]).toEqual([one.id, 403]);
    }
    expect(await limiter.buckets.list({ resource: 'gpt-4' })).toEqual(before);
  });

  test('an app token reaches the entities of its prefix', async () => {
    const { send } = await requestServer({ tokens });
    const response = await send('POST /v1/acquire', { as: app, body: { ...ASK, entityId: 'acme/user-1' } });
    expect(response.status).toBe(200);
  });

  test('namespaces are for tokens of every namespace only', async () => {
    const { send } = await requestServer({ tokens });
    expect((await send('GET /v1/namespaces', { as: admin })).status).toBe(403);
    expect((await send('GET /v1/namespaces', { as: root })).status).toBe(200);
  });

  test('a change is recorded under the name of its token', async () => {
    const { send, limiter } = await requestServer({ tokens });
    const created = await send('POST /v1/entities', { as: admin, body: { id: 'proj-1' } });
    expect(created.status).toBe(201);
    expect((await limiter.audit.list({ entityId: 'proj-1' })).items[0]?.principal).toBe(admin.token.name);
  });
});

describe('a server whose tokens are given in code', () => {
  const { token } = credentialOf();

  test.each([
    ['a misspelt field, which would cover every entity', { ...token, entityprefix: 'acme/' }, 'tokens[0].entityprefix'],
    ['an empty prefix', { ...token, entityPrefix: '' }, 'tokens[0].entityPrefix'],
    ['a prefix that was not set', { ...token, entityPrefix: undefined }, 'tokens[0].entityPrefix'],
    ['a hash in base64', { ...token, sha256: Buffer.from(token.sha256, 'hex').toString('base64') }, 'tokens[0].sha256'],
    ['a hash in capitals', { ...token, sha256: token.sha256.toUpperCase() }, 'tokens[0].sha256'],
    ['an unknown role', { ...token, role: 'root' }, 'tokens[0].role'],
    ['no token', null, 'tokens[0]'],
  ])('does not start with %s', async (_what, wrong, field) => {
    await expect(requestServer({ tokens: [wrong as AccessToken] })).rejects.toThrow(field);
  });

  test('does not start with two tokens of one name', async () => {
    await expect(requestServer({ tokens: [token, token] })).rejects.toThrow('different names');
  });
});
