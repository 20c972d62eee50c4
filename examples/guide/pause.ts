import type { RateLimiter } from 'headgate';

export async function pauseAndResume(limiter: RateLimiter): Promise<boolean> {
  // #region pause
  await limiter.pause({ entityId: 'key-7f3a', forMs: 'forever', reason: 'the key was leaked' });
  await limiter.pause({ entityId: 'proj-1', resource: 'gpt-4', forMs: 20_000, reason: 'the vendor asked for it' });
  await limiter.pause({ entityId: 'proj-2', untilMs: Date.UTC(2099, 0, 31, 10), reason: 'unpaid' });
  const resumed = await limiter.resume({ entityId: 'key-7f3a' }); // true; false if it was not paused
  // #endregion pause
  return resumed;
}
