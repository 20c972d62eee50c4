import { afterEach, describe, expect, test } from 'vitest';
import { limitFetch, type LimitFetchOptions } from '../../../src/integrations/llm/index.js';
import type { ProviderPlan } from '../../../src/testing/provider/index.js';
import {
  APIS,
  callOf,
  ENTITY,
  eventsOf,
  type LlmWorld,
  llmWorld,
  servedBy,
  streamOf,
} from '../../support/llm/world.js';

/** The provider counts 60 tokens. Characters / 4 predict half of it. */
const PROMPT = 'w '.repeat(60);
const MAX = 50;

/** Passes the first half of an answer, and then its end. */
const cutting: typeof fetch = async (...args) => {
  const answer = await fetch(...args);
  const text = await answer.text();
  return new Response(text.slice(0, text.length / 2), answer);
};

let world: LlmWorld;
afterEach(async () => world[Symbol.asyncDispose]());

/** The next answers have few tokens, until `plan` says otherwise: the typical output that is held is low, too. */
async function open(plan: () => ProviderPlan, options: Partial<LimitFetchOptions> = {}): Promise<LlmWorld> {
  const few: ProviderPlan[] = Array.from({ length: 10 }, () => ({ outputTokens: 1 }));
  world = await llmWorld({
    provider: { plan: () => few.pop() ?? plan() },
    countsWords: false,
    fetch: { output: 'typical', ...options },
  });
  for (let call = 0; call < 10; call++) {
    await (await world.fetch(...callOf('responses', world.provider.url, { prompt: PROMPT, max: MAX }))).text();
  }
  await world.fetch.settled();
  return world;
}

describe('calls that stop early, where the estimate is below the count of the provider', () => {
  test.each(APIS)('a stream of %s that its caller leaves at any chunk costs at least what was served', async (api) => {
    const { fetch, provider, consumed } = await open(() => ({ outputTokens: MAX }));
    for (let chunks = 0; chunks <= MAX; chunks += 5) {
      const before = { charged: (await consumed()).tpm, served: servedBy(provider) };
      const controller = new AbortController();
      const [url, init] = callOf(api, provider.url, { prompt: PROMPT, max: MAX, stream: true });
      const response = await fetch(url, { ...init, signal: controller.signal });
      const reader = response.body!.getReader();
      for (let read = 0; read < chunks; read++) await reader.read();
      controller.abort();
      await fetch.settled();
      await expect.poll(() => provider.running).toBe(0);
      const charged = (await consumed()).tpm - before.charged;
      expect(charged).toBeGreaterThanOrEqual(servedBy(provider) - before.served);
    }
    expect(world.errors).toEqual([]);
  });

  test.each(APIS)(
    'a stream of %s without a maximum costs at least what was delivered, where each byte is a token',
    async (api) => {
      const words = '漢字仮名';
      const { begun } = eventsOf(api, 200, words);
      const send = async (): Promise<Response> => streamOf(begun);
      world = await llmWorld({ send, countsWords: false });
      for (const chunks of [1, 100, 150, 203]) {
        const before = (await world.consumed()).tpm;
        const controller = new AbortController();
        const [url, { body, ...init }] = callOf(api, world.provider.url, { stream: true });
        const { max_tokens: _, max_output_tokens: __, generationConfig: ___, ...unlimited } = JSON.parse(body);
        const asked = { ...init, body: JSON.stringify(unlimited), signal: controller.signal };
        const reader = (await world.fetch(url, asked)).body!.getReader();
        let delivered = '';
        for (let read = 0; read < chunks; read++) delivered += new TextDecoder().decode((await reader.read()).value);
        controller.abort();
        await world.fetch.settled();
        const bytes = Buffer.byteLength(words) * (delivered.split(words).length - 1);
        expect((await world.consumed()).tpm - before).toBeGreaterThanOrEqual(bytes);
      }
    },
  );

  test.each(APIS)('a stream of %s whose connection breaks costs at least what was served', async (api) => {
    const { fetch, provider, consumed } = await open(() => ({ outputTokens: MAX, breakAfter: MAX - 1 }));
    const before = { charged: (await consumed()).tpm, served: servedBy(provider) };
    const response = await fetch(...callOf(api, provider.url, { prompt: PROMPT, max: MAX, stream: true }));
    await expect(response.text()).rejects.toThrow();
    await fetch.settled();
    expect((await consumed()).tpm - before.charged).toBeGreaterThanOrEqual(servedBy(provider) - before.served);
  });

  test.each(APIS)('a call of %s that times out costs at least all that its request allows', async (api) => {
    const { fetch, provider, consumed } = await open(() => ({ status: 504 }));
    const before = (await consumed()).tpm;
    await (await fetch(...callOf(api, provider.url, { prompt: PROMPT, max: MAX }))).text();
    await fetch.settled();
    expect((await consumed()).tpm - before).toBeGreaterThanOrEqual(60 + MAX);
  });

  test('a message of Anthropic that a proxy cuts, so that it looks complete, costs all that its request allows', async () => {
    const start = { type: 'message_start', message: { usage: { input_tokens: 60, output_tokens: 1 } } };
    const text = `event: message_start\ndata: ${JSON.stringify(start)}\n\n`;
    const send = (async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } })) as typeof fetch;
    world = await llmWorld({ send });
    await (await world.fetch(...callOf('anthropic', world.provider.url, { max: MAX, stream: true }))).text();
    await world.fetch.settled();
    expect(await world.consumed()).toEqual({ rpm: 1, tpm: 60 + MAX, slots: 0 });
  });

  test.each(APIS)(
    'an answer of %s that a proxy cuts, so that it looks complete, costs what was served',
    async (api) => {
      for (const stream of [true, false]) {
        const { provider, limiter } = await open(() => ({ outputTokens: MAX }));
        const limited = limitFetch(cutting, {
          limiter,
          entityId: ENTITY,
          measures: { rpm: 'calls', tpm: 'tokens', slots: 'calls' },
        });
        const before = { charged: (await world.consumed()).tpm, served: servedBy(provider) };
        await (await limited(...callOf(api, provider.url, { prompt: PROMPT, max: MAX, stream }))).text();
        await limited.settled();
        const charged = (await world.consumed()).tpm - before.charged;
        expect(charged).toBeGreaterThanOrEqual(servedBy(provider) - before.served);
        if (stream) await world[Symbol.asyncDispose]();
      }
    },
  );

  test('a call that is aborted keeps its low estimate where onThrow says so', async () => {
    const { fetch, provider, consumed } = await open(() => ({ status: 504 }), { onThrow: () => 'commit' });
    const before = (await consumed()).tpm;
    await (await fetch(...callOf('chat', provider.url, { prompt: PROMPT, max: MAX }))).text();
    await fetch.settled();
    expect((await consumed()).tpm - before).toBeLessThan(60 + MAX);
  });
});
