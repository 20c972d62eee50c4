import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import { limitModel, type LlmOptions, type ModelLimits } from '../../../src/integrations/llm/index.js';
import type { LimiterEvent } from '../../../src/limiter/events/limiter-event.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type Provider, type ProviderPlan, startProvider, wordsIn } from '../../../src/testing/provider/index.js';
import { LIMITED_MODELS } from '../../support/llm/limited-models.js';
import { consumedOf, ENTITY, MODEL, servedBy, SLOTS } from '../../support/llm/world.js';

describe.each(Object.entries(LIMITED_MODELS))('limitModel with %s', (name, ask) => {
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

describe('the usage that a provider of the AI SDK states wrongly', () => {
  const params = {
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'x'.repeat(400) }] }],
    maxOutputTokens: 40,
  };
  const model = { modelId: MODEL };
  const of = (total: number) => ({
    inputTokens: { total, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total },
  });

  test.each([
    ['NaN', of(Number.NaN)],
    ['null', of(null as unknown as number)],
    ['a negative count', of(-1)],
    ['half a token', of(1.5)],
    ['nothing', undefined as unknown as ReturnType<typeof of>],
  ])('%s is no usage: the call keeps its estimate, and the next calls are estimated as before', async (_, usage) => {
    const errors: unknown[] = [];
    await using limiter = await RateLimiter.open(memory(), { limits: [Limit.perDay('tpm', 1_000_000)] });
    const limits = limitModel({
      limiter,
      entityId: ENTITY,
      measures: { tpm: 'tokens' },
      onError: (error) => errors.push(error),
    });
    const { usage: stated } = await limits.wrapGenerate({ doGenerate: async () => ({ usage }), params, model });
    expect(stated).toBe(usage);
    await limits.settled();
    const { tpm: estimate } = await consumedOf(limiter, ENTITY, MODEL);
    expect(estimate).toBeGreaterThan(140);
    const finish = { type: 'finish', usage };
    const { stream } = await limits.wrapStream({
      doStream: async () => ({ stream: streamOf(finish) }),
      params,
      model,
    });
    for await (const part of stream) expect(part).toBe(finish);
    await limits.settled();
    expect((await consumedOf(limiter, ENTITY, MODEL)).tpm).toBe(2 * estimate);
    expect(errors).toEqual([]);
  });

  test.each([
    ['an error', { type: 'error' }],
    ['no finish', { type: 'text-delta' }],
  ])('a stream that ends with %s and without a usage costs all that its request allows', async (_, part) => {
    await using limiter = await RateLimiter.open(memory(), { limits: [Limit.perDay('tpm', 1_000_000)] });
    const limits = limitModel({ limiter, entityId: ENTITY, measures: { tpm: 'tokens' } });
    const { stream } = await limits.wrapStream({ doStream: async () => ({ stream: streamOf(part) }), params, model });
    for await (const passed of stream) expect(passed).toBe(part);
    await limits.settled();
    // A token has at least one byte.
    expect((await consumedOf(limiter, ENTITY, MODEL)).tpm).toBeGreaterThanOrEqual(400 + 40);
  });

  function streamOf<T>(part: T): ReadableStream<T> {
    return new ReadableStream({
      start: (controller) => {
        controller.enqueue(part);
        controller.close();
      },
    });
  }
});
