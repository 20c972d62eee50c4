import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { generateText, wrapLanguageModel } from 'ai7';
import { createOpenAI } from 'ai7-openai';
import OpenAI from 'openai';
import { afterEach, describe, expect, test } from 'vitest';
import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import { limitFetch, limitModel } from '../../../src/integrations/llm/index.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { fakeClock, type FakeClock } from '../../../src/testing/fake-clock.js';
import { outage } from '../../../src/testing/outage.js';
import { startProvider } from '../../../src/testing/provider/index.js';
import { callOf, ENTITY, LIMITS, type LlmWorld, llmWorld, MODEL } from '../../support/llm/world.js';

let world: LlmWorld;
afterEach(async () => world?.[Symbol.asyncDispose]());

const WAIT_MS = 200;
let clock: FakeClock;

/** One call every 200 ms, without a wait in Headgate: the clients have to wait. */
const open = async (): Promise<LlmWorld> => {
  clock = fakeClock();
  const rpm = Limit.custom('rpm', { capacity: 1, refillAmount: 1, refillPeriodMs: WAIT_MS });
  return (world = await llmWorld({ clock, limits: [rpm], fetch: { waitMs: 0, measures: { rpm: 'calls' } } }));
};

interface Counted {
  readonly fetch: typeof fetch;
  readonly sent: () => number;
  /** How long the client waited before it sent the last time. */
  readonly waitedMs: () => number;
}

/**
 * Counts how often a client sends. After a denial, the clock of the limiter is moved to the end of the wait: a slow
 * client finds no more.
 */
function counting(send: typeof fetch): Counted {
  let [sent, answeredAt, waited] = [0, 0, 0];
  const counted: typeof fetch = async (...args) => {
    waited = performance.now() - answeredAt;
    sent += 1;
    const answer = await send(...args);
    answeredAt = performance.now();
    const waitMs = Number(answer.headers.get('retry-after-ms') ?? 0);
    if (waitMs === WAIT_MS) await clock.advance(waitMs);
    return answer;
  };
  return { fetch: counted, sent: () => sent, waitedMs: () => waited };
}

const askOpenAi = async (url: string, send: typeof fetch): Promise<unknown> => {
  const client = new OpenAI({ apiKey: 'sk', baseURL: `${url}/v1`, fetch: send });
  return client.chat.completions.create({ model: MODEL, messages: [{ role: 'user', content: 'hi' }] });
};
const askAiSdk = async (url: string, send: typeof fetch): Promise<unknown> => {
  const model = createOpenAI({ apiKey: 'sk', baseURL: `${url}/v1`, fetch: send }).chat(MODEL);
  return generateText({ model, prompt: 'hi' });
};
const askGoogle = async (url: string, send: typeof fetch): Promise<unknown> => {
  const client = new GoogleGenAI({ apiKey: 'sk', httpOptions: { baseUrl: url, fetch: send } });
  return client.models.generateContent({ model: MODEL, contents: 'hi' });
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
    const { fetch: counted, sent, waitedMs } = counting(fetch);
    await ask(provider.url, counted);
    await ask(provider.url, counted);
    expect(sent()).toBe(3);
    // A timer of Node may be a millisecond early.
    expect(waitedMs()).toBeGreaterThanOrEqual(WAIT_MS - 2);
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

test('the AI SDK waits by itself for as long as a denial says, and then succeeds', async () => {
  const { fetch, provider } = await open();
  const { fetch: counted, sent, waitedMs } = counting(fetch);
  await askAiSdk(provider.url, counted);
  await askAiSdk(provider.url, counted);
  expect(sent()).toBe(3);
  expect(waitedMs()).toBeGreaterThanOrEqual(WAIT_MS - 2);
});

test('the AI SDK repeats a call of limitFetch whose wait is above a minute, and no call of limitModel', async () => {
  const { fetch, provider, limiter } = await open();
  await limiter.pause({ entityId: ENTITY, resource: MODEL, forMs: 120_000, reason: 'test' });
  const { fetch: counted, sent } = counting(fetch);
  const provided = createOpenAI({ apiKey: 'sk', baseURL: `${provider.url}/v1`, fetch: counted }).chat(MODEL);
  await expect(generateText({ model: provided, prompt: 'hi', maxRetries: 1 })).rejects.toThrow(
    'Failed after 2 attempts',
  );
  expect(sent()).toBe(2);

  const middleware = limitModel({ limiter, entityId: ENTITY, measures: { rpm: 'calls' }, waitMs: 0 });
  const plain = counting(globalThis.fetch);
  const bare = createOpenAI({ apiKey: 'sk', baseURL: `${provider.url}/v1`, fetch: plain.fetch }).chat(MODEL);
  const asking = generateText({ model: wrapLanguageModel({ model: bare, middleware }), prompt: 'hi' });
  await expect(asking).rejects.toMatchObject({ code: 'limit.exceeded' });
  expect([plain.sent(), provider.calls]).toEqual([0, []]);
});

test('the client of Google does not repeat a denied call', async () => {
  const { fetch, provider, limiter } = await open();
  await limiter.pause({ entityId: ENTITY, resource: MODEL, forMs: 1_000, reason: 'test' });
  const { fetch: counted, sent } = counting(fetch);
  await expect(askGoogle(provider.url, counted)).rejects.toMatchObject({ status: 429 });
  expect(sent()).toBe(1);
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
