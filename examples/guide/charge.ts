import type { RateLimiter } from 'headgate';

export async function chargeAndCredit(limiter: RateLimiter): Promise<number | null> {
  // #region charge
  await limiter.charge({ entityId: 'user-1', resource: 'gpt-4', amounts: { tpm: 12_000 } });
  await limiter.credit({ entityId: 'user-1', resource: 'gpt-4', amounts: { tpm: 1_000 }, id: 'invoice-17' });
  // #endregion charge
  const { tpm } = await limiter.available({ entityId: 'user-1', resource: 'gpt-4' });
  return tpm ?? null;
}
