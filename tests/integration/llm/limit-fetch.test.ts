import { afterEach, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { readFetch } from '../../../src/integrations/llm/fetch/read-fetch.js';
import type { ProviderPlan } from '../../../src/testing/provider/index.js';
import {
  APIS,
  callOf,
  ENTITY,
  eventsOf,
  type LlmWorld,
  llmWorld,
  type LlmWorldOptions,
  MODEL,
  servedBy,
  streamOf,
} from '../../support/llm/world.js';

let world: LlmWorld;
const open = async (options: LlmWorldOptions = {}): Promise<LlmWorld> => (world = await llmWorld(options));
const planned = async (plan: ProviderPlan, options: LlmWorldOptions = {}): Promise<LlmWorld> =>
  open({ ...options, provider: { plan: () => plan } });
afterEach(async () => world[Symbol.asyncDispose]());

describe('calls that end', () => {
  test.each(APIS)('a JSON answer of %s settles the call to what the provider has counted', async (api) => {
    const { fetch, provider, consumed } = await open();
    const response = await fetch(...callOf(api, provider.url));
    expect(response.url).toContain(provider.url);
    await response.json();
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 1, tpm: servedBy(provider), slots: 0 });
    expect(world.errors).toEqual([]);
  });

  test.each(APIS)(
    'a stream of %s settles the call to what the provider has counted, and passes unchanged',
    async (api) => {
      const { fetch, provider, consumed } = await open({ fetch: { includeUsage: api !== 'chat' } });
      const call = callOf(api, provider.url, { stream: true });
      const direct = await (await globalThis.fetch(...call)).text();
      const limited = await (await fetch(...call)).text();
      expect(limited).toBe(direct);
      await fetch.settled();
      // Without the usage, a chat completion keeps its estimate: the words of its prompt and of its role, and its maximum.
      const tpm = api === 'chat' ? 4 + 40 : servedBy(provider) / 2;
      expect(await consumed()).toEqual({ rpm: 1, tpm, slots: 0 });
    },
  );

  test('embeddings settle to their input', async () => {
    const { fetch, provider, consumed } = await open();
    const body = JSON.stringify({ model: MODEL, input: ['one two', 'three'] });
    await (await fetch(`${provider.url}/v1/embeddings`, { method: 'POST', body })).json();
    await fetch.settled();
    expect(await consumed()).toMatchObject({ rpm: 1, tpm: 3 });
  });

  test('a streamed chat completion asks for its usage, and the caller that did not ask does not see it', async () => {
    const { fetch, provider, consumed } = await open();
    const call = callOf('chat', provider.url, { stream: true });
    const direct = await (await globalThis.fetch(...call)).text();
    const limited = await (await fetch(...call)).text();
    expect(provider.calls.map(({ includesUsage }) => includesUsage)).toEqual([false, true]);
    // The provider adds `"usage":null` to every chunk where the usage is asked for.
    expect(limited.replaceAll(',"usage":null', '')).toBe(direct);
    await fetch.settled();
    expect((await consumed()).tpm).toBe(servedBy(provider) / 2);
  });

  test('the caller that asked for the usage sees it', async () => {
    const { fetch, provider } = await open();
    const [url, init] = callOf('chat', provider.url, { stream: true });
    const body = JSON.stringify({ ...JSON.parse(init.body), stream_options: { include_usage: true } });
    expect(await (await fetch(url, { ...init, body })).text()).toContain('"prompt_tokens":4');
  });

  test('a request object, bytes and a wrong content-length are understood', async () => {
    const { fetch, provider, consumed } = await open();
    const [url, init] = callOf('chat', provider.url, { stream: true });
    await (await fetch(new Request(url, init))).text();
    await (await fetch(url, { ...init, body: new TextEncoder().encode(init.body) })).text();
    const headers = { ...init.headers, 'content-length': String(init.body.length) };
    await (await fetch(url, { ...init, headers })).text();
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 3, tpm: servedBy(provider), slots: 0 });
  });

  test('a proxy that sends its own request on, as the second argument, is understood', async () => {
    const { fetch, provider, consumed } = await open();
    for (const stream of [false, true]) {
      const [url, init] = callOf('chat', provider.url, { stream });
      const answer = await fetch(url, new Request('http://proxy.test/', init));
      expect(answer.status).toBe(200);
      await answer.text();
    }
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 2, tpm: servedBy(provider), slots: 0 });
  });

  test('a request object of another copy of fetch is limited', async () => {
    class OtherRequest {
      readonly method = 'POST';
      readonly headers = new Headers();
      readonly signal = null;
      constructor(
        readonly url: string,
        readonly body: string,
      ) {}
      clone = () => new Response(this.body);
    }
    const send = async (request: unknown): Promise<Response> => {
      const { url, method, body } = request as OtherRequest;
      return globalThis.fetch(url, { method, body });
    };
    const { fetch, provider, consumed } = await open({ send });
    const [url, { body }] = callOf('chat', provider.url);
    await (await fetch(new OtherRequest(url, body) as unknown as Request)).text();
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 1, tpm: servedBy(provider), slots: 0 });
  });

  test('the type of a body stays as it was where the wish for the usage is added', async () => {
    const types: (string | null)[] = [];
    const send: typeof globalThis.fetch = async (input, init) => {
      types.push(new Request(input, init).headers.get('content-type'));
      return globalThis.fetch(input, init);
    };
    const { fetch, provider } = await open({ send });
    const [url, { body }] = callOf('chat', provider.url, { stream: true });
    const bytes = new TextEncoder().encode(body);
    const view = new DataView(bytes.buffer);
    for (const typed of [new Blob([body], { type: 'application/json' }), bytes, bytes.buffer, view, body]) {
      await (await fetch(url, { method: 'POST', body: typed })).text();
    }
    await fetch.settled();
    expect(types).toEqual(['application/json', null, null, null, 'text/plain;charset=UTF-8']);
    expect(provider.calls.map(({ includesUsage }) => includesUsage)).toEqual([true, true, true, true, true]);
  });

  test('requests that are no calls of a model pass without limits', async () => {
    const { fetch, provider, consumed } = await open();
    expect((await fetch(`${provider.url}/v1/models`)).status).toBe(200);
    expect((await fetch(`${provider.url}/v1/files`, { method: 'POST', body: '{}' })).status).toBe(404);
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0, slots: 0 });
  });

  test('a message that is posted to a thread or to a chat is no call of a model', async () => {
    const body = JSON.stringify({ role: 'user', content: 'hello' });
    expect(await readFetch(['https://api.test/v1/threads/t/messages', { method: 'POST', body }], true)).toBe(null);
    const { fetch, provider, consumed } = await open();
    await (await fetch(...callOf('anthropic', provider.url))).json();
    await fetch.settled();
    expect((await consumed()).rpm).toBe(1);
  });

  test('malformed events between those of a stream pass unchanged, and the usage is read', async () => {
    const { fetch, provider, consumed } = await planned({ malformed: true });
    for (const api of APIS) {
      const text = await (await fetch(...callOf(api, provider.url, { stream: true }))).text();
      expect(text).toContain('data: nonsense\n\n');
    }
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 4, tpm: servedBy(provider), slots: 0 });
  });

  test('a request and an answer of 10 megabytes pass whole', async () => {
    const { fetch, provider, consumed } = await planned({ padding: 10_000_000 });
    const image = `data:image/png;base64,${'A'.repeat(10_000_000)}`;
    const messages = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image_url', image_url: { url: image } },
        ],
      },
    ];
    const body = JSON.stringify({ model: MODEL, messages, max_tokens: 20 });
    const answer = await (await fetch(`${provider.url}/v1/chat/completions`, { method: 'POST', body })).text();
    expect(answer.length).toBeGreaterThan(10_000_000);
    await fetch.settled();
    expect(await consumed()).toMatchObject({ tpm: servedBy(provider), slots: 0 });
  });

  test.each(APIS)(
    'a stream of %s of 10 megabytes passes whole, and no more of it is read than its caller reads',
    async (api) => {
      const { begun, ends } = eventsOf(api, 160, 'word '.repeat(13_200));
      const events = [...begun, ...ends];
      // The chunk that states the usage is left out of a chat completion.
      const isPassed = (event: string): boolean => api !== 'chat' || !event.includes('prompt_tokens');
      let pulled = 0;
      const { fetch, consumed } = await open({ send: async () => streamOf(events, () => (pulled += 1)) });
      const { body } = await fetch(...callOf(api, 'http://provider.test', { stream: true }));
      const reader = body!.getReader();
      let [reads, bytes] = [0, 0];
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        reads += 1;
        bytes += read.value.length;
        if (reads % 10 === 0 || pulled > 160) expect(events.slice(0, pulled).filter(isPassed)).toHaveLength(reads);
        if (reads === 80) expect((await consumed()).slots).toBe(1);
      }
      expect(bytes).toBe(events.filter(isPassed).join('').length);
      expect(bytes).toBeGreaterThan(10_000_000);
      await fetch.settled();
      expect(await consumed()).toEqual({ rpm: 1, tpm: 3 + 160, slots: 0 });
    },
  );

  test('money limits are settled in whole micro-dollars', async () => {
    const { fetch, provider, limiter } = await open({
      limits: [Limit.perDay('budget', 10_000_000)],
      fetch: { measures: { budget: 'microdollars' }, prices: { [MODEL]: { input: 2.5, output: 10 } } },
    });
    await (await fetch(...callOf('chat', provider.url))).json();
    await fetch.settled();
    const bucket = await limiter.buckets.get({ entityId: ENTITY, resource: MODEL });
    expect(bucket?.limits.map(({ consumed }) => consumed)).toEqual([170]);
  });
});

describe('calls that fail', () => {
  test.each([400, 401, 404, 500, 503, 529])('a call that is answered with %i costs nothing', async (status) => {
    const { fetch, provider, consumed } = await planned({ status });
    const response = await fetch(...callOf('chat', provider.url));
    expect([response.status, await response.json()]).toMatchObject([status, { error: {} }]);
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0, slots: 0 });
  });

  test.each([408, 504, 524])('a call that is answered with %i, a timeout, keeps its estimate', async (status) => {
    const { fetch, provider, consumed } = await planned({ status });
    await (await fetch(...callOf('chat', provider.url))).text();
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 44, slots: 0 });
  });

  test('a provider that is down costs nothing, and the caller gets the error of fetch', async () => {
    const { fetch, provider, consumed } = await open();
    await provider.stop();
    await expect(fetch(...callOf('chat', provider.url))).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0, slots: 0 });
  });

  test.each(APIS)('a stream of %s that breaks keeps at least what the provider has counted', async (api) => {
    const { fetch, provider, consumed } = await planned({ breakAfter: 7 });
    const response = await fetch(...callOf(api, provider.url, { stream: true }));
    await expect(response.text()).rejects.toThrow();
    await fetch.settled();
    const { tpm, slots } = await consumed();
    expect(tpm).toBeGreaterThanOrEqual(servedBy(provider));
    expect(slots).toBe(0);
  });

  test('a handler of refusals that throws does not cost the caller its answer, nor the key its pause', async () => {
    const onProviderThrottle = (): never => {
      throw new Error('own fault');
    };
    const { fetch, provider, consumed, errors, limiter } = await planned(
      { refusal: { format: 'openai', waitMs: 60_000 } },
      { fetch: { onProviderThrottle } },
    );
    expect((await fetch(...callOf('chat', provider.url))).status).toBe(429);
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0, slots: 0 });
    expect(errors).toEqual(['onProviderThrottle: Error: own fault']);
    const ask = { entityId: ENTITY, resource: MODEL, consume: { rpm: 1 } };
    expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, reason: 'paused' });
  });

  test('the option onThrow decides by the kind of the failure', async () => {
    const kinds: string[] = [];
    const onThrow = ({ kind }: { kind: string }) => {
      kinds.push(kind);
      return 'commit' as const;
    };
    const { fetch, provider, consumed } = await planned({ status: 500 }, { fetch: { onThrow } });
    await (await fetch(...callOf('chat', provider.url))).text();
    await fetch.settled();
    expect([kinds, await consumed()]).toEqual([['failed'], { rpm: 1, tpm: 44, slots: 0 }]);
  });
});
