// #region client
import { HeadgateClient } from 'headgate/client';
// #endregion client

export async function askServer(url: string, respond429: (retryAfterMs: number | null) => void): Promise<boolean> {
  // #region client
  const limiter = new HeadgateClient(url, { token: process.env['HEADGATE_TOKEN'] ?? '' });
  const decision = await limiter.tryAcquire({ entityId: 'acme/user-1', resource: 'gpt-4', consume: { rpm: 1 } });
  if (decision.granted) await decision.lease.commit();
  else respond429(decision.retryAfterMs);
  // #endregion client
  return decision.granted;
}
