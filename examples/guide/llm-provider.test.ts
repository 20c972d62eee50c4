// #region test
import { Limit, RateLimiter } from 'headgate';
import { limitFetch } from 'headgate/llm';
import { startProvider } from 'headgate/testing/provider';
import OpenAI from 'openai';
import { expect, test } from 'vitest';

test('a streamed answer costs the tokens that the provider counts', async () => {
  await using provider = await startProvider({ quota: { tokensPerSecond: 1_000, burst: 10_000 } });
  await using limiter = new RateLimiter('memory:', {
    limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 9_000)],
  });
  const limited = limitFetch(fetch, { limiter, entityId: 'ada' });
  const openai = new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'any', fetch: limited });

  const messages = [{ role: 'user' as const, content: 'Why is the sky blue?' }];
  const stream = await openai.chat.completions.create({ model: 'gpt-4o-mini', messages, stream: true });
  for await (const _ of stream);
  await limited.settled();

  const [call] = provider.calls; // { api, model, inputTokens, outputTokens, status, end, ... }
  const bucket = await limiter.buckets.get({ entityId: 'ada', resource: 'gpt-4o-mini' });
  expect(bucket?.limits.map(({ consumed }) => consumed)).toEqual([
    1,
    (call?.inputTokens ?? 0) + (call?.outputTokens ?? 0),
  ]);
});
// #endregion test
