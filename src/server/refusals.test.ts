import { describe, expect, test } from 'vitest';
import {
  type Credential,
  credentialOf,
  requestServer,
  type Sent,
  SECRET,
} from '../../tests/support/server/request-server.js';
import { memory } from '../backends/embedded/memory.js';
import { Limit } from '../core/limit.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { outage } from '../testing/outage.js';
import { OPERATIONS } from './operations/index.js';
import { createServer } from './server.js';

const app = credentialOf({ entityPrefix: 'acme/' });
const service = credentialOf();
const admin = credentialOf({ role: 'admin' });
const tokens = [app.token, service.token, admin.token];

const ASK = { entityId: 'acme/user-1', resource: 'gpt-4', consume: { rpm: 1 } };

interface Refused {
  readonly status: number;
  readonly route: string;
  readonly sent?: Sent;
  /** Sent before, and granted. */
  readonly before?: object;
  readonly body: object;
  /** Headers besides those of every refusal. */
  readonly headers?: Readonly<Record<string, string>>;
}

const plain = (title: string, code: string, more: object = {}) => ({ type: 'about:blank', title, code, ...more });

/** One request for each status of a refusal, with what its answer must say. */
const REFUSED: readonly Refused[] = [
  {
    status: 400,
    route: 'POST /v1/acquire',
    sent: { as: app, body: { ...ASK, consume: { rpm: -1 } } },
    body: plain('The request is invalid', 'input.invalid', {
      detail: 'Expected `body.consume.rpm` to be at least 0, got -1',
      field: 'body.consume.rpm',
      expected: 'at least 0',
      got: '-1',
      retryable: false,
    }),
  },
  {
    status: 401,
    route: 'POST /v1/acquire',
    sent: { body: ASK },
    body: plain('A token is required', 'access.missing', {
      detail: 'Send a valid token: Authorization: Bearer hg_...',
    }),
    headers: { 'www-authenticate': 'Bearer' },
  },
  {
    status: 403,
    route: 'GET /v1/entities',
    sent: { as: app },
    body: plain('Not allowed', 'access.denied', { detail: 'listEntities needs a token of the role admin' }),
  },
  {
    status: 404,
    route: 'GET /v1/entities/nobody',
    sent: { as: admin },
    body: plain('Not found', 'entity.missing', { retryable: false }),
  },
  {
    status: 409,
    route: 'POST /v1/entities',
    sent: { as: admin, body: { id: 'proj-1' } },
    body: plain('The request conflicts with the stored state', 'entity.exists', { retryable: false }),
  },
  {
    status: 413,
    route: 'POST /v1/acquire',
    sent: { as: app, body: { ...ASK, priority: 'x'.repeat(64 * 1024) } },
    body: plain('The body is too large', 'body.too-large', { detail: 'The body has more than 65536 bytes' }),
  },
  {
    status: 422,
    route: 'POST /v1/acquire',
    sent: { as: app, body: { ...ASK, consume: { rpm: 11 } } },
    body: {
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'The ask is larger than the limit',
      code: 'limit.impossible',
      reason: 'impossible',
      retryAfterMs: null,
      'violated-policies': ['rpm'],
      violations: [{ entityId: 'acme/user-1', resource: 'gpt-4', requested: 11, available: 10, exceeded: true }],
    },
    headers: { 'ratelimit-policy': expect.stringMatching(/^"rpm";q=10;w=60;pk=:/) as string },
  },
  {
    status: 429,
    route: 'POST /v1/acquire',
    before: { ...ASK, consume: { slots: 2 } },
    sent: { as: app, body: { ...ASK, consume: { slots: 1 } } },
    body: {
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'A limit is exceeded',
      code: 'limit.exceeded',
      reason: 'exhausted',
      'violated-policies': ['slots'],
      violations: [{ entityId: 'acme/user-1', limit: { name: 'slots' }, requested: 1, available: 0, exceeded: true }],
    },
    headers: {
      'retry-after': expect.stringMatching(/^\d+$/) as string,
      'retry-after-ms': expect.stringMatching(/^\d+$/) as string,
      ratelimit: expect.stringMatching(/^"slots";r=0/) as string,
      'ratelimit-policy': expect.stringMatching(/^"slots";q=2;/) as string,
    },
  },
];

describe('a refusal', () => {
  test.each(REFUSED)('with status $status has its body and its headers', async (refused) => {
    const { send, limiter } = await requestServer({ tokens });
    await limiter.entities.create({ id: 'proj-1' });
    if (refused.before !== undefined) await send('POST /v1/acquire', { as: app, body: refused.before });
    await expectRefusal(await send(refused.route, refused.sent), refused);
  });

  test('with status 503 has its body and its headers, and the client may repeat its request', async () => {
    const store = outage(memory());
    const limits = [Limit.perMinute('rpm', 10)];
    const { fetch } = createServer(await RateLimiter.open(store.backend, { limits, leaseSecrets: [SECRET] }));
    store.start();
    const asked = new Request('http://headgate.test/v1/acquire', { method: 'POST', body: JSON.stringify(ASK) });
    await expectRefusal(await fetch(asked), {
      status: 503,
      body: {
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        title: 'The store does not answer',
        code: 'backend.unavailable',
        retryable: true,
      },
    });
    const ready = await fetch(new Request('http://headgate.test/readyz'));
    expect([ready.status, await ready.json()]).toEqual([503, { ok: false }]);
  });
});

const CONDITIONAL = ['www-authenticate', 'retry-after', 'retry-after-ms', 'ratelimit', 'ratelimit-policy'];

async function expectRefusal(
  response: Response,
  { status, body, headers = {} }: Pick<Refused, 'status' | 'body' | 'headers'>,
): Promise<void> {
  const problem: unknown = await response.json();
  expect(response.status).toBe(status);
  expect(problem).toMatchObject({ status, detail: expect.stringMatching(/.{10}/), ...body });
  const sent = Object.fromEntries(response.headers);
  expect(sent).toMatchObject({
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  const needless = CONDITIONAL.filter((name) => !(name in headers) && name in sent);
  // An impossible ask has a policy that it exceeds, and nothing to wait for.
  expect(needless.filter((name) => name !== 'ratelimit' || status !== 422)).toEqual([]);
}

describe('limits and an outage policy in an ask', () => {
  const trusted = credentialOf({ entityPrefix: 'acme/', ownLimits: true });
  const OVERRIDES = [{ limits: ['rpm:1000000/min'] }, { onUnavailable: 'allow' }];
  const all = [...tokens, trusted.token];

  const asks = OVERRIDES.flatMap((override) => [
    ['POST /v1/acquire', { ...ASK, ...override }] as const,
    ['POST /v1/acquire/batch', { asks: [ASK, { ...ASK, ...override }] }] as const,
    ['POST /v1/peek', { ...ASK, ...override }] as const,
  ]);

  test.each(asks)(
    '%s refuses a token with an entity prefix that sends them, and takes nothing',
    async (route, body) => {
      const { send, limiter } = await requestServer({ tokens: all });
      const response = await send(route, { as: app, body });
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({
        code: 'access.denied',
        detail: expect.stringMatching(/may not send (limits|onUnavailable)/),
      });
      expect((await limiter.buckets.list({ resource: 'gpt-4' })).items).toEqual([]);
    },
  );

  test.each<[string, Credential]>([
    ['a token without a prefix', service],
    ['an admin', admin],
    ['a token with a prefix and ownLimits', trusted],
  ])('are accepted from %s', async (_, as) => {
    const { send } = await requestServer({ tokens: all });
    for (const [route, body] of asks) expect((await send(route, { as, body })).status).toBe(200);
  });
});

test('a body that is nested 4,000 deep answers 400 at every operation, also in the metadata of an entity', async () => {
  const { send, limiter } = await requestServer();
  const deep = `${'['.repeat(4_000)}${']'.repeat(4_000)}`;
  const bodies = [deep, `{"id":"a","metadata":{"a":${deep}}}`, `{"namespace":"default","system":{"limits":${deep}}}`];
  for (const one of OPERATIONS.filter(({ body }) => body !== null)) {
    for (const body of bodies) {
      const response = await send(`${one.method.toUpperCase()} ${one.path.replaceAll(/\{\w+\}/g, 'x')}`, { body });
      expect([one.id, response.status]).toEqual([one.id, 400]);
      expect(await response.json()).toMatchObject({ code: 'input.invalid', field: 'body' });
    }
  }
  expect((await limiter.entities.list()).items).toEqual([]);
});

describe('a server without tokens behind a server of the application', () => {
  const asked = (headers: Readonly<Record<string, string>>) =>
    new Request('http://limits.internal:8700/v1/acquire', { method: 'POST', headers, body: JSON.stringify(ASK) });

  test.each(['https://example.com', 'null', 'http://limits.internal:3000', 'http://limits.internal:8700.example.com'])(
    'refuses a request of a web page of %s, and takes nothing',
    async (origin) => {
      const { server, limiter } = await requestServer();
      expect((await server.fetch(asked({ origin }))).status).toBe(403);
      expect((await limiter.buckets.list({ resource: 'gpt-4' })).items).toEqual([]);
    },
  );

  test.each([{}, { origin: 'http://limits.internal:8700' }, { origin: 'https://limits.internal:8700' }])(
    'answers its own pages and programs: %j',
    async (headers) => {
      const { server } = await requestServer();
      expect((await server.fetch(asked(headers))).status).toBe(200);
    },
  );
});

describe('a forged token of a lease', () => {
  const operations = OPERATIONS.filter(({ group, role }) => group === 'leases' && role === 'app');
  const bodies: Readonly<Record<string, object>> = {
    settleLease: { amounts: { rpm: 0 } },
    adjustLease: { amounts: { rpm: -1 }, operationId: 'once' },
  };

  test.each(operations.map((one) => [one.id, one] as const))(
    'is refused by %s, and changes nothing',
    async (id, one) => {
      const { send, limiter } = await requestServer();
      const held = await limiter.acquire({ ...ASK, consume: { rpm: 3, slots: 1 }, portable: true });
      const signed = await held.token();
      const other = await RateLimiter.open('memory:', {
        limits: [Limit.perMinute('rpm', 10), Limit.concurrent('slots', 2)],
        leaseSecrets: ['another-secret-that-is-long-enough'],
      });
      const foreign = await (await other.acquire({ ...ASK, consume: { rpm: 3 }, portable: true })).token();
      const before = await limiter.buckets.list({ resource: 'gpt-4' });
      for (const token of forgeriesOf(signed, foreign)) {
        const response = await send(`POST ${one.path}`, { body: { token, ...bodies[id] } });
        expect([token, response.status]).toEqual([token, 400]);
        expect(await response.json()).toMatchObject({ code: 'lease.token-invalid' });
      }
      expect(await limiter.buckets.list({ resource: 'gpt-4' })).toEqual(before);
      expect((await limiter.leases.list()).items).toHaveLength(1);
    },
  );
});

/** Another signature, another content, a signature of another secret, and parts that are missing. */
function forgeriesOf(signed: string, foreign: string): readonly string[] {
  const [version = '', content = '', signature = ''] = signed.split('.');
  const flipped = (text: string): string => `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`;
  return [
    `${version}.${content}.${flipped(signature)}`,
    `${version}.${flipped(content)}.${signature}`,
    `${version}.${content}.${foreign.split('.')[2]}`,
    foreign,
    `${version}.${content}`,
    `${version}.${content}.`,
    `hgl2.${content}.${signature}`,
    '',
  ];
}
