// #region test
import { Limit, memory, RateLimiter } from 'headgate';
import { fakeClock, outage } from 'headgate/testing';
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

// #region wait
test('a call that waits goes on when its tokens are there', async () => {
  const clock = fakeClock();
  const limiter = new RateLimiter('memory:', { clock, limits: [Limit.perMinute('rpm', 1)] });
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 }, wait: { timeoutMs: 120_000 } };
  await limiter.acquire(ask);
  const second = limiter.acquire(ask); // waits: do not await it before the clock has moved

  await clock.advance(60_000);
  expect((await second).consumed).toEqual({ rpm: 1 });
  await limiter.close();
});
// #endregion wait

// #region outage
test('the local policy admits the limit once more while the store is out', async () => {
  const store = outage(memory());
  const limiter = new RateLimiter(store.backend, { limits: [Limit.perMinute('rpm', 1)], onUnavailable: 'local' });
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
  expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: true, decidedBy: 'store' });

  store.start({ mode: 'fail' });
  expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: true, decidedBy: 'fallback' });
  expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, decidedBy: 'fallback' });
  store.end();
  await limiter.close();
});
// #endregion outage
