import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterEach, describe, expect, test } from 'vitest';
import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import { limitFetch } from '../../../src/integrations/llm/index.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { outage } from '../../../src/testing/outage.js';
import { startProvider } from '../../../src/testing/provider/index.js';
import { callOf, ENTITY, LIMITS, type LlmWorld, llmWorld, MODEL } from '../../support/llm/world.js';

let world: LlmWorld;
afterEach(async () => world?.[Symbol.asyncDispose]());

/** One call every 200 ms, without a wait in Headgate: the clients have to wait. */
const open = async (): Promise<LlmWorld> => {
  const rpm = Limit.custom('rpm', { capacity: 1, refillAmount: 1, refillPeriodMs: 200 });
  return (world = await llmWorld({ limits: [rpm], fetch: { waitMs: 0, measures: { rpm: 'calls' } } }));
};

/** Counts how often a client sends. */
function counting(send: typeof fetch): { readonly fetch: typeof fetch; readonly sent: () => number } {
  let sent = 0;
  return { fetch: async (...args) => send(...args).finally(() => (sent += 1)), sent: () => sent };
}

const askOpenAi = async (url: string, send: typeof fetch): Promise<unknown> => {
  const client = new OpenAI({ apiKey: 'sk', baseURL: `${url}/v1`, fetch: send });
  return client.chat.completions.create({ model: MODEL, messages: [{ role: 'user', content: 'hi' }] });
};
const askAnthropic = async (url: string, send: typeof fetch): Promise<unknown> => {
  const client = new Anthropic({ apiKey: 'sk', baseURL: url, fetch: send });
  return client.messages.create({ model: MODEL, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] });
};

describe.each([
  ['openai', askOpenAi],
  ['anthropic', askAnthropic],
] as const)('the client of %s with its own retries', (name, ask) => {
  test(`the client of ${name} waits by itself for as long as a denial says, and then succeeds`, async () => {
    const { fetch, provider } = await open();
    const { fetch: counted, sent } = counting(fetch);
    await ask(provider.url, counted);
    await ask(provider.url, counted);
    expect(sent()).toBe(3);
    expect(provider.calls.map(({ status }) => status)).toEqual([200, 200]);
  });

  test(`the client of ${name} does not retry a denial whose wait is above a minute`, async () => {
    const { fetch, provider, limiter } = await open();
    await limiter.pause({ entityId: ENTITY, resource: MODEL, forMs: 120_000, reason: 'test' });
    const { fetch: counted, sent } = counting(fetch);
    await expect(ask(provider.url, counted)).rejects.toMatchObject({ status: 429 });
    expect(sent()).toBe(1);
  });
});

describe('a store that does not answer', () => {
  test('a call whose settlement fails keeps its answer, and the failure is reported', async () => {
    const store = outage(memory());
    const errors: string[] = [];
    await using provider = await startProvider();
    await using limiter = await RateLimiter.open(store.backend, { limits: LIMITS, onError: () => {} });
    const limited = limitFetch(fetch, { limiter, entityId: ENTITY, onError: (_, where) => errors.push(where) });
    const response = await limited(...callOf('chat', provider.url));
    store.start();
    expect(await response.json()).toMatchObject({ usage: { completion_tokens: 16 } });
    await limited.settled();
    expect(errors).toEqual(['settling a call of a model']);
    store.end();
  });

  test.each(['allow', 'block'] as const)('a call follows the outage policy %s', async (onUnavailable) => {
    const store = outage(memory());
    await using provider = await startProvider();
    await using limiter = await RateLimiter.open(store.backend, { limits: LIMITS, onUnavailable, onError: () => {} });
    const limited = limitFetch(fetch, { limiter, entityId: ENTITY, waitMs: 0 });
    store.start();
    const calling = limited(...callOf('chat', provider.url));
    if (onUnavailable === 'block') await expect(calling).rejects.toMatchObject({ code: 'backend.unavailable' });
    else expect(await (await calling).text()).toContain('word');
    await limited.settled();
    expect(provider.calls).toHaveLength(onUnavailable === 'block' ? 0 : 1);
    store.end();
  });
});
