import { Limit, type RateLimiter } from 'headgate';
// #region upstream
import { limitFetch } from 'headgate/llm';
// #endregion upstream

export async function limitUpstream(limiter: RateLimiter): Promise<typeof fetch> {
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000)] });
  // #region upstream
  await limiter.entities.create({ id: 'openai-key-1' });
  await limiter.entities.create({ id: 'ada', parentId: 'openai-key-1', cascade: true });
  const limited = limitFetch(fetch, { limiter, entityId: 'ada', upstream: 'openai-key-1' });
  // #endregion upstream
  return limited;
}
