// #region priority
import { Limit, RateLimiter } from 'headgate';

const limiter = await RateLimiter.open({
  limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 100_000, { reserve: { batch: 0.3 } })],
});
const ask = { entityId: 'acme', resource: 'gpt-4', consume: { rpm: 1, tpm: 500 } };
const web = await limiter.tryAcquire(ask);
const batch = await limiter.tryAcquire({ ...ask, priority: 'batch' });
// #endregion priority

export { batch, limiter, web };

export async function cutToWhatThereIs(): Promise<number> {
  // #region at-most
  const lease = await limiter.acquire({
    entityId: 'acme',
    resource: 'gpt-4',
    consume: { rpm: 1, tpm: 100_000 },
    atMost: 'tpm',
  });
  const budget = lease.consumed.tpm; // 100_000, or as many as there were
  // #endregion at-most
  await lease.rollback();
  return budget ?? 0;
}
