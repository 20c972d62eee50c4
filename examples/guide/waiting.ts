// #region wait
import { Limit, RateLimiter, RateLimitExceeded } from 'headgate';

const limiter = await RateLimiter.open('memory:', { limits: [Limit.perMinute('rpm', 60)] });
const user = { entityId: 'user-1', resource: 'search' };
await limiter.acquire({ ...user, consume: { rpm: 60 } }); // takes all 60: the refill adds one a second

// Waits up to 5 s, and only if fewer than 100 calls wait already.
const lease = await limiter.acquire({ ...user, consume: { rpm: 1 }, wait: { timeoutMs: 5_000, maxWaiting: 100 } });
console.log('granted after a second');
await lease.commit();

try {
  await limiter.acquire({ ...user, consume: { rpm: 30 }, wait: { timeoutMs: 5_000 } });
} catch (error) {
  if (!(error instanceof RateLimitExceeded)) throw error;
  console.log('denied at once: 30 s would be too long');
}

const stopping = new AbortController();
const { signal } = stopping;
const waiting = limiter.acquire({ ...user, consume: { rpm: 30 }, wait: { timeoutMs: 60_000 }, signal });
stopping.abort(new Error('the user has left'));
await waiting.catch((error) => console.log(`ended: ${error.message}`)); // the error is `signal.reason`
await limiter.close();
// #endregion wait
