/** The routes of the app of Next.js under test. Each has limits of its own. */
import { Limit, memory, RateLimiter } from 'headgate';
import { withRateLimit } from 'headgate/next';
import { outage } from 'headgate/testing';
// @ts-expect-error Next.js is installed where the app is built.
import { notFound as notFoundOfNext, redirect as redirectOfNext } from 'next/navigation';

const limiter = new RateLimiter('memory:');
const TWO_A_DAY = [Limit.perDay('requests', 2)];
const redirect = redirectOfNext as (path: string) => never;
const notFound = notFoundOfNext as () => never;
const userOf = ({ headers }: Request): string => headers.get('x-user') ?? 'anonymous';

export const users = withRateLimit(async () => new Response('ok'), {
  limiter,
  resource: 'users',
  limits: TWO_A_DAY,
  key: userOf,
  skip: ({ headers }) => headers.get('x-health') === 'yes',
});

export const addresses = withRateLimit(async () => new Response('ok'), {
  limiter,
  resource: 'addresses',
  limits: TWO_A_DAY,
  trustedProxies: 1,
});

/** Answers with the status that the request asks for, or fails. */
export const failures = withRateLimit(
  async (request: Request) => {
    const wanted = new URL(request.url).searchParams.get('status');
    if (wanted === 'throw') throw new Error('the route failed');
    return new Response('ok', { status: Number(wanted ?? 200) });
  },
  { limiter, resource: 'failures', limits: TWO_A_DAY, key: userOf, skipFailedRequests: true },
);

const hourly = { limiter, resource: 'hourly', limits: [Limit.perHour('hour', 3)], key: userOf };
const daily = { limiter, resource: 'daily', limits: [Limit.perDay('day', 5)], key: userOf };

export const several = withRateLimit(
  withRateLimit(async () => new Response('ok'), hourly),
  daily,
);

/** Next.js hands the parameters of the path to a route as a promise. */
export const items = withRateLimit(
  async (request: Request, { params }: { readonly params: Promise<{ readonly id: string }> }) => {
    const { id } = await params;
    return Response.redirect(new URL(`/api/users?item=${id}`, request.url), 307);
  },
  { limiter, resource: 'items', limits: TWO_A_DAY, key: userOf },
);

/** Sends a piece of text every few milliseconds: three of them, or without an end. */
export const streams = withRateLimit(
  async (request: Request) => {
    const isEndless = new URL(request.url).searchParams.has('endless');
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        controller.enqueue(new TextEncoder().encode('piece '));
        sent += 1;
        if (!isEndless && sent === 3) controller.close();
      },
    });
    return new Response(body);
  },
  { limiter, resource: 'streams', limits: [Limit.concurrent('slots', 1)], key: userOf },
);

/** Answers after its client has left, with a text or with a stream. */
export const late = withRateLimit(
  async (request: Request) => {
    const { signal, url } = request;
    const { searchParams } = new URL(url);
    if (searchParams.has('now')) return new Response('ok');
    while (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 5));
    const pull = (made: ReadableStreamDefaultController<Uint8Array>): void => made.enqueue(new Uint8Array(9));
    return new Response(searchParams.has('stream') ? new ReadableStream({ pull }) : 'ok');
  },
  { limiter, resource: 'late', limits: [Limit.concurrent('slots', 2)], key: userOf },
);

/** Ends by what `redirect` or `notFound` of Next.js throw. */
export const thrown = withRateLimit(
  async (request: Request): Promise<Response> =>
    new URL(request.url).searchParams.has('missing') ? notFound() : redirect('/api/users'),
  { limiter, resource: 'thrown', limits: TWO_A_DAY, key: userOf, skipFailedRequests: true },
);

const store = outage(memory());
const withoutStore = { limiter: new RateLimiter(store.backend, { onError: () => {} }), limits: TWO_A_DAY, key: userOf };
store.start();

export const blocked = withRateLimit(async () => new Response('ok'), { ...withoutStore, onUnavailable: 'block' });
export const allowed = withRateLimit(async () => new Response('ok'), { ...withoutStore, onUnavailable: 'allow' });
