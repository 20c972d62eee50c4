import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { timeout } from 'hono/timeout';
import { request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Limit, memory, RateLimiter } from '../../../src/index.js';
import { withRateLimit } from '../../../src/integrations/http/fetch.js';
import { rateLimit } from '../../../src/integrations/http/hono.js';
import { collectGarbage } from '../../support/llm/collect-garbage.js';

type Handler = (request: Request) => Promise<Response>;

let limiter: RateLimiter;
let stop: (() => void) | undefined;

beforeEach(() => {
  limiter = new RateLimiter(memory());
});
afterEach(async () => {
  stop?.();
  stop = undefined;
  await limiter.close();
});

const optionsOf = () => ({ limiter, limits: [Limit.concurrent('slots', 1)], key: () => 'client' });
const slotsInUse = async (): Promise<number> => (await limiter.leases.list({ entityId: 'client' })).items.length;

const limited: Readonly<Record<string, (handler: Handler) => Handler>> = {
  fetch: (handler) => withRateLimit(handler, optionsOf()),
  hono: (handler) => {
    const app = new Hono();
    app.use(rateLimit(optionsOf()));
    app.get('/', (context) => handler(context.req.raw));
    return async (request) => app.fetch(request);
  },
};

const cancelled = vi.fn<() => void>();
const answers: Readonly<Record<string, () => Response>> = {
  'a text': () => new Response('ok'),
  'a stream': () => {
    const chunk = new TextEncoder().encode('piece ');
    return new Response(new ReadableStream({ pull: (made) => made.enqueue(chunk), cancel: cancelled }));
  },
};

const cases = Object.keys(limited).flatMap((name) => Object.keys(answers).map((answer) => [name, answer] as const));

/** Resolves when the client has left. */
async function left({ signal }: Request): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
}

async function listen(handler: Handler): Promise<number> {
  const server = serve({ fetch: handler, hostname: '127.0.0.1', port: 0 });
  await vi.waitFor(() => expect(server.listening).toBe(true));
  stop = () => void server.close();
  return (server.address() as AddressInfo).port;
}

describe.each(cases)('%s, whose handler answers with %s', (name, answer) => {
  const limit = limited[name]!;
  const respond = answers[answer]!;
  const url = 'http://app.test/';

  test('holds no slot after a client has left before the handler answers', async () => {
    const port = await listen(
      limit(async (request) => {
        await left(request);
        return respond();
      }),
    );
    const client = httpRequest({ port, host: '127.0.0.1' }).on('error', () => {});
    client.end();
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(1));
    client.destroy();
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(0));
  });

  test('holds no slot after a client has left and the server neither reads nor cancels the answer', async () => {
    const client = new AbortController();
    const response = await limit(async () => respond())(new Request(url, { signal: client.signal }));
    client.abort(new Error('gone'));
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(0));
    await expect(response.text()).rejects.toThrow('gone');
  });

  test('passes an answer on whole that comes after the client has left, because outer code may store it', async () => {
    const client = new AbortController();
    const handler = limit(async () => {
      client.abort();
      return respond();
    });
    const response = await handler(new Request(url, { signal: client.signal }));
    await vi.waitFor(async () => expect(await slotsInUse()).toBe(0));
    const { value } = await response.body!.getReader().read();
    expect(['ok', 'piece ']).toContain(new TextDecoder().decode(value));
  });

  test('is not called, and no error is thrown, if the client leaves while its request waits', async () => {
    const client = new AbortController();
    const handler = vi.fn<Handler>(async () => respond());
    client.abort(new Error('gone'));
    expect((await limit(handler)(new Request(url, { signal: client.signal }))).status).toBe(499);
    expect(handler).not.toHaveBeenCalled();
  });

  test('holds no slot after outer code has dropped the answer', async () => {
    const handler = limit(async () => respond());
    const outer = async (): Promise<Response> => {
      await handler(new Request(url));
      return new Response('an error page');
    };
    await outer();
    expect(await slotsInUse()).toBe(1);
    await vi.waitFor(async () => {
      collectGarbage();
      expect(await slotsInUse()).toBe(0);
    });
  });
});

describe('the source of a streamed answer', () => {
  const ask = async (signal: AbortSignal): Promise<Response> =>
    withRateLimit(async () => answers['a stream']!(), optionsOf())(new Request('http://app.test/', { signal }));

  test('is cancelled when the client leaves', async () => {
    cancelled.mockClear();
    const client = new AbortController();
    const { body } = await ask(client.signal);
    const reader = body!.getReader();
    await reader.read();
    client.abort();
    expect(cancelled).toHaveBeenCalledOnce();
    await expect(reader.read()).rejects.toThrow('aborted');
  });

  test('is cancelled when the answer was dropped', async () => {
    cancelled.mockClear();
    await ask(new AbortController().signal);
    await vi.waitFor(() => {
      collectGarbage();
      expect(cancelled).toHaveBeenCalledOnce();
    });
  });
});

test('a request whose client has left has failed, also where it holds no slot', async () => {
  const client = new AbortController();
  const options = { limiter, limits: [Limit.perDay('requests', 1)], key: () => 'client', skipFailedRequests: true };
  const handler = withRateLimit(async () => {
    client.abort();
    return new Response('ok');
  }, options);
  await handler(new Request('http://app.test/', { signal: client.signal }));
  expect((await handler(new Request('http://app.test/'))).status).toBe(200);
});

test('an answer of hono that `timeout` has sent meanwhile ends its lease', async () => {
  const app = new Hono();
  const errors: unknown[] = [];
  app.use(timeout(1));
  app.use(async (_, next) => next().catch((error: unknown) => void errors.push(error)));
  app.use(rateLimit(optionsOf()));
  let answerNow = (): void => {};
  const until = new Promise<void>((resolve) => (answerNow = resolve));
  app.get('/', async (context) => {
    await until;
    return context.text('too late');
  });
  const port = await listen(async (request) => app.fetch(request));
  const response = await fetch(`http://127.0.0.1:${port}`);
  expect([response.status, await response.text()]).toEqual([504, 'Gateway Timeout']);
  answerNow();
  await vi.waitFor(async () => expect(await slotsInUse()).toBe(0));
  expect(errors).toEqual([]);
});
