import { Limit, RateLimitExceeded, RateLimiter } from 'headgate';

export const limiter = new RateLimiter('memory:', { limits: [Limit.perSecond('rps', 20)] });

export async function withTimeout(): Promise<string> {
  // #region wait
  const stopping = new AbortController();
  try {
    const lease = await limiter.acquire({
      entityId: 'user-1',
      resource: 'search',
      consume: { rps: 20 },
      wait: { timeoutMs: 5_000, maxWaiting: 100 },
      signal: stopping.signal,
    });
    await lease.commit();
    return 'granted';
  } catch (error) {
    // Denied at once if the wait would be longer than 5 s, or if 100 calls wait already.
    if (error instanceof RateLimitExceeded) return `denied, retry in ${error.retryAfterMs} ms`;
    throw error; // After `stopping.abort(reason)` this is the reason.
  }
  // #endregion wait
}
