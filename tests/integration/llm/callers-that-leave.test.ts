import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
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
