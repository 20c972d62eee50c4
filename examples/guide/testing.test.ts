// #region test
import { Limit, RateLimiter } from 'headgate';
import { fakeClock } from 'headgate/testing';
import { expect, test } from 'vitest';

test('a user may ask again after a minute', async () => {
  const clock = fakeClock();
  const limiter = new RateLimiter('memory:', { clock, limits: [Limit.perMinute('rpm', 1)] });
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

  expect((await limiter.tryAcquire(ask)).granted).toBe(true);
  expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, retryAfterMs: 60_000 });

  await clock.advance(60_000); // no test has to sleep
  expect((await limiter.tryAcquire(ask)).granted).toBe(true);
  await limiter.close();
});
// #endregion test
