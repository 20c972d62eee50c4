import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { generateText as generateText6, streamText as streamText6, wrapLanguageModel as wrap6 } from 'ai6';
import { createOpenAI as createOpenAI6 } from 'ai6-openai';
import { generateText as generateText7, streamText as streamText7, wrapLanguageModel as wrap7 } from 'ai7';
import { createOpenAI as createOpenAI7 } from 'ai7-openai';
import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import { limitModel, type LlmOptions, type ModelLimits } from '../../../src/integrations/llm/index.js';
import type { LimiterEvent } from '../../../src/limiter/events/limiter-event.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type Provider, type ProviderPlan, startProvider, wordsIn } from '../../../src/testing/provider/index.js';
import { KEY, readParts } from '../../support/llm/clients.js';
import { consumedOf, ENTITY, MODEL, servedBy, SLOTS } from '../../support/llm/world.js';

interface Call {
  readonly stream: boolean;
  readonly signal?: AbortSignal;
  readonly onChunk?: () => boolean;
}

type Ask = (url: string, limits: ModelLimits, call: Call) => Promise<void>;

const REQUEST = { prompt: 'one two three', maxOutputTokens: 40, maxRetries: 0 } as const;

const ai6: Ask = async (url, middleware, { stream, signal, onChunk = () => true }) => {
  const model = wrap6({ model: createOpenAI6({ apiKey: KEY, baseURL: `${url}/v1` }).chat(MODEL), middleware });
  const request = { model, ...REQUEST, ...(signal === undefined ? {} : { abortSignal: signal }) };
  if (!stream) await generateText6(request);
  else await readParts(streamText6({ ...request, onError: () => {} }).fullStream, onChunk);
};

const ai7: Ask = async (url, middleware, { stream, signal, onChunk = () => true }) => {
  const model = wrap7({ model: createOpenAI7({ apiKey: KEY, baseURL: `${url}/v1` }).responses(MODEL), middleware });
  const request = { model, ...REQUEST, ...(signal === undefined ? {} : { abortSignal: signal }) };
  if (!stream) await generateText7(request);
  else await readParts(streamText7({ ...request, onError: () => {} }).fullStream, onChunk);
};

describe.each<readonly [string, Ask]>([
  ['ai 6', ai6],
  ['ai 7', ai7],
])('limitModel with %s', (name, ask) => {
  let provider: Provider;
  let limiter: RateLimiter;
  let plan: ProviderPlan;
  let errors: string[];
  let events: LimiterEvent[];

  beforeEach(async () => {
    plan = {};
    errors = [];
    events = [];
    provider = await startProvider({ plan: () => plan });
    limiter = await RateLimiter.open(memory(), {
      limits: [Limit.perDay('rpm', 1_000), Limit.perDay('tpm', 1_000_000), Limit.concurrent('slots', SLOTS)],
      onEvent: (event) => event.type === 'provider-throttle' && events.push(event),
    });
  });
  afterEach(async () => {
    await limiter.close();
    await provider.stop();
  });

  const limitsOf = (options: Partial<LlmOptions> = {}): ModelLimits =>
    limitModel({
      limiter,
      entityId: ENTITY,
      measures: { rpm: 'calls', tpm: 'tokens', slots: 'calls' },
      countTokens: wordsIn,
      onError: (error, where) => errors.push(`${where}: ${String(error)}`),
      ...options,
    });
  const consumed = () => consumedOf(limiter, ENTITY, MODEL);

  test(`a call and a stream of ${name} settle to what the provider has counted`, async () => {
    const limits = limitsOf();
    await ask(provider.url, limits, { stream: false });
    await ask(provider.url, limits, { stream: true });
    await limits.settled();
    expect(provider.calls).toHaveLength(2);
    expect(await consumed()).toEqual({ rpm: 2, tpm: servedBy(provider), slots: 0 });
    expect(errors).toEqual([]);
  });

  test(`a stream of ${name} that is aborted holds no slot at once, and costs at least what was served`, async () => {
    plan = { outputTokens: 40, tokenDelayMs: 1 };
    const limits = limitsOf();
    for (const at of [1, 10, 30]) {
      const controller = new AbortController();
      let chunks = 0;
      const onChunk = (): boolean => {
        chunks += 1;
        if (chunks === at) controller.abort();
        return true;
      };
      await ask(provider.url, limits, { stream: true, signal: controller.signal, onChunk }).catch(() => {});
      await limits.settled();
      expect((await consumed()).slots).toBe(0);
    }
    await expect.poll(() => provider.running).toBe(0);
    expect((await consumed()).tpm).toBeGreaterThanOrEqual(servedBy(provider));
  });

  test(`a call of ${name} that fails costs nothing`, async () => {
    plan = { status: 500 };
    const limits = limitsOf();
    await expect(ask(provider.url, limits, { stream: false })).rejects.toThrow();
    await expect(ask(provider.url, limits, { stream: true })).rejects.toThrow();
    await limits.settled();
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0, slots: 0 });
  });

  test(`a refusal of the provider of ${name} pauses the bucket, and the caller gets the provider's error`, async () => {
    plan = { refusal: { format: 'openai', waitMs: 90_000 } };
    const limits = limitsOf({ upstream: 'upstream' });
    await expect(ask(provider.url, limits, { stream: false })).rejects.toMatchObject({ statusCode: 429 });
    await limits.settled();
    expect(events).toEqual([
      expect.objectContaining({ entityId: 'upstream', dimension: 'tokens', retryAfterMs: 90_000 }),
    ]);
    expect((await limiter.buckets.get({ entityId: 'upstream', resource: MODEL }))?.paused?.reason).toBe(
      'provider 429: tokens',
    );
    expect((await consumed()).rpm).toBe(0);
  });

  test(`a denied call of ${name} rejects with the denial, without a call of the provider`, async () => {
    await limiter.pause({ entityId: ENTITY, resource: MODEL, forMs: 60_000, reason: 'test' });
    const limits = limitsOf({ waitMs: 0 });
    await expect(ask(provider.url, limits, { stream: false })).rejects.toMatchObject({ code: 'limit.exceeded' });
    await expect(ask(provider.url, limits, { stream: true })).rejects.toMatchObject({ code: 'limit.exceeded' });
    expect(provider.calls).toEqual([]);
  });
});
