import type { RateLimiter } from 'headgate';

export async function bill(limiter: RateLimiter, from: Date, to: Date): Promise<number> {
  // #region bill
  const acme = await limiter.in('acme');
  const { total } = await acme.usage.summary({ entityId: 'account', resource: 'gpt-4', window: 'monthly', from, to });
  // #endregion bill
  return total['tpm'] ?? 0;
}
