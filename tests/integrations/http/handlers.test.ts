import { Hono } from 'hono';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Limit, memory, RateLimiter } from '../../../src/index.js';
import { rateLimit as forExpress } from '../../../src/integrations/http/express.js';
import { rateLimit as forHono } from '../../../src/integrations/http/hono.js';
import { withRateLimit as forLambda } from '../../../src/integrations/http/lambda.js';
import { withRateLimit as forNext } from '../../../src/integrations/http/next.js';

const ONE_A_DAY = [Limit.perDay('requests', 1)];
const ONE_SLOT = [Limit.concurrent('slots', 1)];

let limiter: RateLimiter;

beforeEach(() => {
  limiter = new RateLimiter(memory());
});
afterEach(() => limiter.close());

const slotsOf = async (entityId: string): Promise<number> => (await limiter.leases.list({ entityId })).items.length;

describe('route handlers of Next.js', () => {
  test('a route handler gets its own arguments, and its redirect gets the header fields', async () => {
    const handler = async (request: Request, context: { params: { id: string } }) =>
      Response.redirect(new URL(`/${context.params.id}`, request.url), 307);
    const GET = forNext(handler, { limiter, limits: ONE_A_DAY, key: () => 'client' });
    const first = await GET(new Request('http://app.test/'), { params: { id: 'x' } });
    expect([first.status, first.headers.get('location')]).toEqual([307, 'http://app.test/x']);
    expect(first.headers.get('ratelimit')).toBe('"requests";r=0;t=86400');
    expect((await GET(new Request('http://app.test/'), { params: { id: 'x' } })).status).toBe(429);
  });

  test('the address of a client is that which the trusted proxy has seen', async () => {
    const GET = forNext(async () => new Response('ok'), { limiter, limits: ONE_A_DAY, trustedProxies: 1 });
    const from = async (forwarded: string) =>
      (await GET(new Request('http://app.test/', { headers: { 'x-forwarded-for': forwarded } }))).status;
    expect([await from('203.0.113.7'), await from('6.6.6.6, 203.0.113.7'), await from('203.0.113.8')]).toEqual([
      200, 429, 200,
    ]);
  });

  test('without a key and without trusted proxies the error says what is missing', async () => {
    const GET = forNext(async () => new Response('ok'), { limiter, limits: ONE_A_DAY });
    const asked = GET(new Request('http://app.test/', { headers: { 'x-forwarded-for': '203.0.113.7' } }));
    await expect(asked).rejects.toThrow('the address of the client is unknown');
  });

  test.each(['read to its end', 'cancelled', 'broken'])('a slot is held until a streamed body is %s', async (how) => {
    let source: ReadableStreamDefaultController<Uint8Array> | undefined;
    const GET = forNext(
      async () => new Response(new ReadableStream<Uint8Array>({ start: (made) => void (source = made) })),
      {
        limiter,
        limits: ONE_SLOT,
        key: () => 'client',
      },
    );
    const { body } = await GET(new Request('http://app.test/'));
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    source?.enqueue(new Uint8Array([1]));
    expect((await reader.read()).value).toEqual(new Uint8Array([1]));
    expect(await slotsOf('client')).toBe(1);
    if (how === 'cancelled') await reader.cancel();
    else if (how === 'broken') source?.error(new Error('broken'));
    else source?.close();
    await reader.read().catch(() => {});
    await vi.waitFor(async () => expect(await slotsOf('client')).toBe(0));
  });

  test('the slot of a request with HEAD is free without a read of the body, which Next.js drops', async () => {
    const GET = forNext(async () => new Response('ok'), { limiter, limits: ONE_SLOT, key: () => 'client' });
    await GET(new Request('http://app.test/', { method: 'HEAD' }));
    expect(await slotsOf('client')).toBe(0);
  });

  test('a handler that throws ends its lease, and its error is not changed', async () => {
    const error = new Error('the handler failed');
    const GET = forNext(
      async () => {
        throw error;
      },
      { limiter, limits: ONE_SLOT, key: () => 'client' },
    );
    await expect(GET(new Request('http://app.test/'))).rejects.toBe(error);
    expect(await slotsOf('client')).toBe(0);
  });

  test.each([
    ['redirect', 'NEXT_REDIRECT;replace;/elsewhere;a=1;307;', false],
    ['notFound', 'NEXT_HTTP_ERROR_FALLBACK;404', true],
    ['notFound of Next.js 14', 'NEXT_NOT_FOUND', true],
    ['an error of its own', '1234567890', true],
  ])('a handler that ends with %s ends its lease with its status', async (_, digest, isFree) => {
    const error = Object.assign(new Error('thrown'), { digest });
    const GET = forNext(async (): Promise<Response> => Promise.reject(error), {
      limiter,
      limits: ONE_A_DAY,
      key: () => 'client',
      skipFailedRequests: true,
    });
    await expect(GET(new Request('http://app.test/'))).rejects.toBe(error);
    const second = GET(new Request('http://app.test/'));
    if (isFree) await expect(second).rejects.toBe(error);
    else expect((await second).status).toBe(429);
  });

  test('a redirect that a handler throws is a success, which may take nothing', async () => {
    const error = Object.assign(new Error('thrown'), { digest: 'NEXT_REDIRECT;push;/elsewhere;303;' });
    const options = { limiter, limits: ONE_A_DAY, key: () => 'client', skipSuccessfulRequests: true };
    const GET = forNext(async (): Promise<Response> => Promise.reject(error), options);
    for (let at = 0; at < 3; at++) await expect(GET(new Request('http://app.test/'))).rejects.toBe(error);
  });

  test('a handler of refusals gets the denial, and its answer gets the header fields', async () => {
    const GET = forNext(async () => new Response('ok'), {
      limiter,
      limits: ONE_A_DAY,
      key: () => 'client',
      handler: (_, denial) => Response.json({ reason: denial?.reason }, { status: 420 }),
    });
    await GET(new Request('http://app.test/'));
    const refused = await GET(new Request('http://app.test/'));
    expect([refused.status, await refused.json()]).toEqual([420, { reason: 'exhausted' }]);
    expect(refused.headers.get('retry-after')).not.toBeNull();
  });
});

describe('hono without a socket', () => {
  test('header fields that the route has set stay, and ours are added', async () => {
    const app = new Hono();
    app.use(forHono({ limiter, limits: ONE_A_DAY, key: () => 'client' }));
    app.get('/', (context) => {
      context.header('RateLimit', '"origin";r=5');
      context.header('X-Own', 'kept');
      return context.text('ok');
    });
    const { headers } = await app.request('/');
    expect(headers.get('ratelimit')).toBe('"origin";r=5, "requests";r=0;t=86400');
    expect(headers.get('x-own')).toBe('kept');
  });

  test.each([204, 302])('a handler of refusals may answer %i without a body', async (status) => {
    const app = new Hono();
    const handler = (): Response => new Response(null, { status, headers: { location: '/later' } });
    app.use(forHono({ limiter, limits: ONE_A_DAY, key: () => 'client', handler }));
    app.get('/', (context) => context.text('ok'));
    await app.request('/');
    const refused = await app.request('/');
    expect([refused.status, await refused.text(), refused.headers.get('location')]).toEqual([status, '', '/later']);
    expect(refused.headers.get('retry-after')).not.toBeNull();
  });

  test('the longest wait of two limiters counts', async () => {
    const app = new Hono();
    const key = (): string => 'client';
    app.use(async (context, next) => {
      await next();
      context.res.headers.set('Retry-After', '999999');
    });
    app.use(
      forHono({
        limiter,
        limits: ONE_A_DAY,
        key,
        handler: () => new Response('', { status: 429, headers: { 'Retry-After': '7' } }),
      }),
    );
    app.get('/', (context) => context.text('ok'));
    await app.request('/');
    expect((await app.request('/')).headers.get('retry-after')).toBe('999999');
  });
});

describe('Lambda functions', () => {
  const v2 = (sourceIp: string) => ({ version: '2.0', requestContext: { http: { sourceIp } } });
  const v1 = (sourceIp: string) => ({ version: '1.0', requestContext: { identity: { sourceIp } } });

  test('events of both versions of API Gateway are limited by the address of the client', async () => {
    const handler = forLambda(async () => ({ statusCode: 201, headers: { ratelimit: '"edge";r=1' }, body: 'made' }), {
      limiter,
      limits: ONE_A_DAY,
    });
    const made = await handler(v2('203.0.113.7'));
    expect(made).toMatchObject({ statusCode: 201, body: 'made' });
    expect((made as { headers: object }).headers).toMatchObject({
      ratelimit: '"edge";r=1, "requests";r=0;t=86400',
      'RateLimit-Policy': '"requests";q=1;w=86400',
    });
    expect(await handler(v1('203.0.113.7'))).toMatchObject({ statusCode: 429 });
    expect(await handler(v1('203.0.113.8'))).toMatchObject({ statusCode: 201 });
  });

  test('a handler of refusals gets the event and the denial, and its result gets the header fields', async () => {
    const handler = forLambda(async () => ({ statusCode: 200 }), {
      limiter,
      limits: ONE_A_DAY,
      handler: async ({ requestContext }, denial) => ({
        statusCode: 420,
        body: `${requestContext?.http?.sourceIp} ${denial?.reason}`,
      }),
    });
    await handler(v2('203.0.113.7'));
    const refused = await handler(v2('203.0.113.7'));
    expect(refused).toMatchObject({ statusCode: 420, body: '203.0.113.7 exhausted' });
    expect(Object.keys((refused as { headers: object }).headers)).toContain('Retry-After');
  });

  test('behind CloudFront the client is the address that it has written', async () => {
    const handler = forLambda(async () => ({ statusCode: 200 }), { limiter, limits: ONE_A_DAY, trustedProxies: 1 });
    const status = async (forwarded: string, sourceIp = '130.176.1.1') => {
      const headers = { 'X-Forwarded-For': forwarded };
      return ((await handler({ ...v2(sourceIp), headers })) as { statusCode: number }).statusCode;
    };
    expect([await status('203.0.113.7, 130.176.1.1'), await status('6.6.6.6, 203.0.113.7')]).toEqual([200, 429]);
    expect([await status('6.6.6.6, 203.0.113.8'), await status('130.176.1.1')]).toEqual([200, 200]);
    expect(await status('130.176.1.1')).toBe(429);
  });

  test('a test in the console of API Gateway, which has no address, is limited', async () => {
    const handler = forLambda(async () => ({ statusCode: 200 }), { limiter, limits: ONE_A_DAY });
    expect(await handler(v1('test-invoke-source-ip'))).toMatchObject({ statusCode: 200 });
    expect(await handler(v1('test-invoke-source-ip'))).toMatchObject({ statusCode: 429 });
  });

  test('a field that is in headers and in multiValueHeaders is joined in multiValueHeaders, with our value last', async () => {
    const multiValueHeaders = { ratelimit: ['"edge";r=1', '"cdn";r=2'], 'Set-Cookie': ['a=1', 'b=2'] };
    const headers = { RateLimit: '"origin";r=3', 'X-Own': 'kept' };
    const handler = forLambda(async () => ({ statusCode: 200, headers, multiValueHeaders }), {
      limiter,
      limits: ONE_A_DAY,
    });
    expect(await handler(v1('203.0.113.7'))).toEqual({
      statusCode: 200,
      headers: { 'X-Own': 'kept', 'RateLimit-Policy': '"requests";q=1;w=86400' },
      multiValueHeaders: {
        ratelimit: ['"origin";r=3, "edge";r=1, "cdn";r=2, "requests";r=0;t=86400'],
        'Set-Cookie': ['a=1', 'b=2'],
      },
    });
  });

  test('a result without a status is an answer with status 200, as API Gateway takes it', async () => {
    const handler = forLambda(async () => ({ greeting: 'hello' }), { limiter, limits: ONE_A_DAY });
    expect(await handler(v2('203.0.113.7'))).toMatchObject({ statusCode: 200, body: '{"greeting":"hello"}' });
  });

  test('the lease has ended when the result is returned, also after a failure', async () => {
    const options = { limiter, limits: ONE_SLOT, key: () => 'client' };
    await forLambda(async () => ({ statusCode: 200 }), options)(v2('203.0.113.7'));
    expect(await slotsOf('client')).toBe(0);
    const failing = forLambda(async (): Promise<string> => Promise.reject(new Error('failed')), options);
    await expect(failing(v2('203.0.113.7'))).rejects.toThrow('failed');
    expect(await slotsOf('client')).toBe(0);
  });
});

test('a middleware with bad options is refused when it is made', () => {
  expect(() => forExpress({ limiter: {} as never })).toThrow('limiter');
  expect(() => forExpress({ limiter, headers: 'draft-99' as never })).toThrow('draft-10');
  expect(() => forExpress({ limiter, keys: () => 'x' } as never)).toThrow('keys');
  expect(() => forNext(async () => new Response(), { limiter, trustedProxies: -1 })).toThrow('trustedProxies');
});
