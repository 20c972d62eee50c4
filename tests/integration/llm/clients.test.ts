import { afterEach, describe, expect, test } from 'vitest';
import type { LimitFetchOptions } from '../../../src/integrations/llm/index.js';
import type { ProviderPlan } from '../../../src/testing/provider/index.js';
import type { ClientCall } from '../../support/llm/ai-sdk-clients.js';
import { CLIENTS, embedWithGoogle, embedWithOpenAi } from '../../support/llm/clients.js';
import { collectGarbage } from '../../support/llm/collect-garbage.js';
import { type LlmWorld, llmWorld, servedBy } from '../../support/llm/world.js';

let world: LlmWorld;
const open = async (plan: ProviderPlan = {}, options: Partial<LimitFetchOptions> = {}): Promise<LlmWorld> =>
  (world = await llmWorld({ provider: { plan: () => plan }, fetch: options }));
afterEach(async () => world[Symbol.asyncDispose]());

function callOf(change: Partial<ClientCall> = {}): ClientCall {
  const { fetch, provider } = world;
  const signal = new AbortController().signal;
  return {
    url: provider.url,
    fetch,
    prompt: 'one two three',
    max: 40,
    stream: false,
    signal,
    onChunk: () => true,
    ...change,
  };
}

test.each([
  ['openai', embedWithOpenAi],
  ['google', embedWithGoogle],
])('embeddings of the client of %s settle to their input', async (_, embed) => {
  const { fetch, provider, consumed } = await open({ outputTokens: 0 });
  await embed(provider.url, fetch);
  await fetch.settled();
  expect(servedBy(provider)).toBeGreaterThanOrEqual(3);
  expect(await consumed()).toEqual({ rpm: 1, tpm: servedBy(provider), slots: 0 });
});

describe.each(Object.entries(CLIENTS))('%s through limitFetch', (name, client) => {
  test(`a call and a stream of ${name} settle to what the provider has counted`, async () => {
    const { fetch, provider, consumed } = await open();
    await client(callOf());
    let chunks = 0;
    await client(callOf({ stream: true, onChunk: () => (chunks += 1) > 0 }));
    await fetch.settled();
    expect(chunks).toBeGreaterThanOrEqual(16);
    expect(provider.calls.map(({ end }) => end)).toEqual(['complete', 'complete']);
    expect(await consumed()).toEqual({ rpm: 2, tpm: servedBy(provider), slots: 0 });
    expect(world.errors).toEqual([]);
  });

  test.each(['break', 'abort'] as const)(
    `a stream of ${name} that its caller leaves by %s holds no slot, and costs at least what was served`,
    async (way) => {
      // Some clients drop a stream that their caller leaves: they neither cancel nor abort it.
      const { fetch, provider, consumed } = await open({ outputTokens: 24 }, { idleMs: 300 });
      for (const at of [1, 12]) {
        const controller = new AbortController();
        let chunks = 0;
        const onChunk = (): boolean => {
          chunks += 1;
          if (chunks >= at && way === 'abort') controller.abort();
          return chunks < at || way === 'abort';
        };
        await client(callOf({ stream: true, signal: controller.signal, onChunk })).catch(() => {});
      }
      await fetch.settled();
      await expect.poll(() => provider.running).toBe(0);
      const { tpm, slots } = await consumed();
      expect(slots).toBe(0);
      expect(tpm).toBeGreaterThanOrEqual(servedBy(provider));
      expect(world.errors).toEqual([]);
    },
  );

  test(`a stream of ${name} that its caller leaves by break is given up when it is collected as garbage, long before idleMs`, async () => {
    const { fetch, provider, consumed } = await open({ outputTokens: 24 });
    await client(callOf({ stream: true, onChunk: () => false }));
    await expect
      .poll(async () => {
        collectGarbage();
        return (await consumed()).slots;
      })
      .toBe(0);
    await fetch.settled();
    await expect.poll(() => provider.running).toBe(0);
    expect((await consumed()).tpm).toBeGreaterThanOrEqual(servedBy(provider));
  });

  test(`a call of ${name} that the provider refuses costs nothing, and its caller gets the error`, async () => {
    const { fetch, consumed } = await open({ status: 500 });
    await expect(client(callOf())).rejects.toThrow();
    await expect(client(callOf({ stream: true }))).rejects.toThrow();
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0, slots: 0 });
  });
});
