import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import type { ProviderPlan } from '../../../src/testing/provider/index.js';
import { collectGarbage } from '../../support/llm/collect-garbage.js';
import {
  APIS,
  callOf,
  ENTITY,
  type LlmWorld,
  llmWorld,
  type LlmWorldOptions,
  MODEL,
  servedBy,
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

  test('requests that are no calls of a model pass without limits', async () => {
    const { fetch, provider, consumed } = await open();
    expect((await fetch(`${provider.url}/v1/models`)).status).toBe(200);
    expect((await fetch(`${provider.url}/v1/files`, { method: 'POST', body: '{}' })).status).toBe(404);
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0, slots: 0 });
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

describe('callers that leave', () => {
  const TOKENS = 5;

  test.each(APIS)(
    'a caller of %s that aborts or cancels at any chunk leaves no slot, and costs no less than was served',
    async (api) => {
      const { fetch, provider, consumed } = await planned({ outputTokens: TOKENS });
      for (let chunks = 0; chunks <= TOKENS; chunks++) {
        for (const way of ['abort', 'cancel', 'leave'] as const) {
          const controller = new AbortController();
          const [url, init] = callOf(api, provider.url, { stream: true });
          const response = await fetch(url, { ...init, signal: controller.signal });
          const reader = response.body!.getReader();
          for (let read = 0; read < chunks; read++) await reader.read();
          if (way === 'cancel') await reader.cancel();
          else controller.abort();
          if (way === 'abort') await reader.read().catch(() => {});
        }
      }
      await fetch.settled();
      await expect.poll(() => provider.running).toBe(0);
      const { tpm, slots, rpm } = await consumed();
      expect([slots, rpm]).toEqual([0, 3 * (TOKENS + 1)]);
      expect(tpm).toBeGreaterThanOrEqual(servedBy(provider));
      expect(world.errors).toEqual([]);
    },
  );

  test('a caller that aborts before the answer begins keeps its estimate', async () => {
    const clock = fakeClock();
    const { fetch, provider, consumed } = await open({ provider: { clock, plan: () => ({ startDelayMs: 1_000 }) } });
    const controller = new AbortController();
    const [url, init] = callOf('chat', provider.url);
    const calling = fetch(url, { ...init, signal: controller.signal });
    await expect.poll(() => clock.sleepers).toBe(1);
    controller.abort(new Error('gone'));
    await expect(calling).rejects.toThrow('gone');
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 44, slots: 0 });
    await clock.advance(1_000);
  });

  test('a caller that aborts while it waits takes nothing', async () => {
    const { fetch, provider, limiter, consumed } = await open();
    await limiter.pause({ entityId: ENTITY, resource: MODEL, forMs: 20_000, reason: 'test' });
    const controller = new AbortController();
    const [url, init] = callOf('chat', provider.url);
    const calling = fetch(url, { ...init, signal: controller.signal });
    await new Promise((resolve) => setImmediate(resolve));
    controller.abort(new Error('gone'));
    await expect(calling).rejects.toThrow('gone');
    await fetch.settled();
    expect([await consumed(), provider.calls]).toEqual([{ rpm: 0, tpm: 0, slots: 0 }, []]);
  });

  test('a caller that cancels after the usage is known settles, as the client of OpenAI does after [DONE]', async () => {
    const { fetch, provider, consumed } = await open();
    const response = await fetch(...callOf('chat', provider.url, { stream: true }));
    const reader = response.body!.getReader();
    let text = '';
    while (!text.includes('[DONE]')) text += new TextDecoder().decode((await reader.read()).value);
    await reader.cancel();
    await fetch.settled();
    expect((await consumed()).tpm).toBe(servedBy(provider));
  });

  test('a call settles as soon as its usage is known, also if its connection stays open and its caller reads no further', async () => {
    const text = 'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}\n\ndata: [DONE]\n\n';
    const source = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(text)),
    });
    const send = (async () =>
      new Response(source, { headers: { 'content-type': 'text/event-stream' } })) as typeof fetch;
    const { fetch: limited, provider, consumed } = await open({ send });
    const response = await limited(...callOf('chat', provider.url, { stream: true }));
    expect(new TextDecoder().decode((await response.body!.getReader().read()).value)).toBe('data: [DONE]\n\n');
    await limited.settled();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 11, slots: 0 });
  });

  test('a caller that never reads its answer gives its slot back after idleMs', async () => {
    const clock = fakeClock();
    const { fetch, provider, consumed } = await open({ clock, fetch: { idleMs: 100_000 } });
    await fetch(...callOf('chat', provider.url, { stream: true }));
    await clock.advance(99_000);
    expect((await consumed()).slots).toBe(1);
    await clock.advance(1_000);
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 44, slots: 0 });
  });

  test('a caller that releases its answer without a word, as the client of Google does, gives its slot back after 5 s', async () => {
    const clock = fakeClock();
    const { fetch, provider, consumed } = await open({ clock });
    const { body } = await fetch(...callOf('google', provider.url, { stream: true }));
    const reader = body!.getReader();
    await reader.read();
    await clock.advance(60_000);
    expect((await consumed()).slots).toBe(1);
    reader.releaseLock();
    await clock.advance(5_000);
    await fetch.settled();
    expect((await consumed()).slots).toBe(0);
  });

  test.each(['read', 'cancelled', 'refused', 'denied'])(
    'the signal of a caller has no listener left after its answer was %s',
    async (how) => {
      const { fetch, provider, limiter } = await planned(how === 'refused' ? { status: 500 } : {}, {
        fetch: { waitMs: 0 },
      });
      if (how === 'denied') await limiter.pause({ entityId: ENTITY, resource: MODEL, forMs: 1_000, reason: 'test' });
      const { signal } = new AbortController();
      const [url, init] = callOf('chat', provider.url, { stream: true });
      const response = await fetch(url, { ...init, signal });
      if (how === 'cancelled') await response.body!.cancel();
      else await response.text();
      expect(getEventListeners(signal, 'abort')).toEqual([]);
    },
  );

  test('a caller that aborts after the usage is known ends the connection', async () => {
    const text = 'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}\n\ndata: [DONE]\n\n';
    const source = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(text)),
    });
    let sent: AbortSignal | null | undefined;
    const send = (async (_, init) => {
      sent = init?.signal;
      return new Response(source, { headers: { 'content-type': 'text/event-stream' } });
    }) as typeof fetch;
    const { fetch: limited, provider } = await open({ send });
    const controller = new AbortController();
    const [url, init] = callOf('chat', provider.url, { stream: true });
    const reader = (await limited(url, { ...init, signal: controller.signal })).body!.getReader();
    await reader.read();
    await limited.settled();
    expect(sent?.aborted).toBe(false);
    controller.abort(new Error('gone'));
    expect(sent?.reason).toEqual(new Error('gone'));
    await expect(reader.read()).rejects.toThrow('gone');
  });

  test('an answer that its caller drops without a word is given up when it is collected as garbage', async () => {
    const { fetch, provider, consumed } = await planned({ outputTokens: 40, padding: 1 });
    const begin = async (): Promise<void> => {
      const response = await fetch(...callOf('google', provider.url, { stream: true }));
      const reader = response.body!.getReader();
      await reader.read();
      reader.releaseLock();
    };
    await begin();
    await expect
      .poll(async () => {
        collectGarbage();
        return (await consumed()).slots;
      })
      .toBe(0);
    expect((await consumed()).tpm).toBeGreaterThanOrEqual(40);
  });

  test('the slot of a stream that runs longer than its lease stays held', async () => {
    const clock = fakeClock();
    const { fetch, provider, consumed } = await open({
      clock,
      provider: { clock, plan: () => ({ tokenDelayMs: 25_000 }) },
    });
    const reading = fetch(...callOf('chat', provider.url, { stream: true })).then((response) => response.text());
    await expect.poll(() => clock.sleepers).toBeGreaterThan(2);
    for (let step = 0; step < 12; step++) {
      await clock.advance(25_000);
      await expect.poll(() => clock.sleepers).toBeGreaterThan(2);
    }
    expect((await consumed()).slots).toBe(1);
    while (provider.running > 0) await clock.advance(25_000);
    await reading;
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 1, tpm: servedBy(provider), slots: 0 });
  });
});

describe('what is streamed', () => {
  test('no chunk waits for the next one, and nothing is read ahead of the caller', async () => {
    let pulled = 0;
    const encoder = new TextEncoder();
    const source = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          pulled += 1;
          controller.enqueue(encoder.encode(`data: {"choices":[{"delta":{"content":"${pulled}"}}]}\n\n`));
        },
      },
      { highWaterMark: 0 },
    );
    const send = (async () =>
      new Response(source, { headers: { 'content-type': 'text/event-stream' } })) as typeof fetch;
    const { fetch: limited, provider } = await open({ send });
    const response = await limited(...callOf('chat', provider.url, { stream: true }));
    const reader = response.body!.getReader();
    for (let read = 1; read <= 5; read++) {
      expect(new TextDecoder().decode((await reader.read()).value)).toContain(`"content":"${read}"`);
      expect(pulled).toBe(read);
    }
    await reader.cancel();
  });
});
