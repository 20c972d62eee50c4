import { expect, test } from 'vitest';
import { memory } from '../../backends/embedded/memory.js';
import type { Backend } from '../../backend.js';
import { Limit } from '../../core/limit.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { RateLimiter } from '../rate-limiter.js';
import { ASK, openLimiter } from '../../../tests/support/models/open-limiter.js';

const USER = { entityId: ASK.entityId, resource: ASK.resource };

test('of 20 calls that a pause denies, 3 wait for its end where maxWaiting is 3, and they are listed', async () => {
  const { limiter, clock } = await openLimiter();
  await limiter.pause({ ...USER, forMs: 10_000, reason: 'vendor' });
  const request = { ...ASK, consume: { rpm: 1 }, wait: { timeoutMs: 60_000, maxWaiting: 3 } };
  const calls = Array.from({ length: 20 }, () => limiter.tryAcquire(request));
  await clock.advance(2_000);
  expect(limiter.waiting()).toEqual([{ ...USER, limit: null, priority: null, depth: 3, oldestWaitMs: 2_000 }]);
  await limiter.resume(USER);
  const decisions = await Promise.all(calls);
  expect(decisions.filter(({ granted }) => granted)).toHaveLength(3);
  const denied = decisions.flatMap((decision) => (decision.granted ? [] : [decision.reason]));
  expect(new Set(denied)).toEqual(new Set(['paused']));
  expect(limiter.waiting()).toEqual([]);
});

test('a call that waits for a pause leaves its line when it aborts, and when a limit refuses it after the pause', async () => {
  const { limiter, clock } = await openLimiter();
  await limiter.acquire({ ...ASK, consume: { rpm: 60 } });
  await limiter.pause({ ...USER, forMs: 100, reason: 'vendor' });
  const stop = new AbortController();
  const request = { ...ASK, consume: { rpm: 1 }, wait: { timeoutMs: 60_000 } };
  const aborted = limiter.tryAcquire({ ...request, signal: stop.signal });
  const waiting = limiter.tryAcquire(request);
  await clock.advance(10);
  stop.abort(new RangeError('left'));
  await expect(aborted).rejects.toThrow('left');
  expect(limiter.waiting()).toMatchObject([{ limit: null, depth: 1 }]);
  await clock.advance(100);
  expect(limiter.waiting()).toMatchObject([{ limit: 'rpm', depth: 1 }]);
  await clock.advance(2_000);
  expect((await waiting).granted).toBe(true);
});

test('of 20 calls that lose to other writers, 3 ask again where maxWaiting is 3, and they are listed', async () => {
  const [inner, clock] = [memory(), fakeClock()];
  let isBusy = true;
  const consume: Backend['consume'] = (call, request) =>
    isBusy ? { kind: 'denied', reason: 'contended', retryAfterMs: 100, levels: [] } : inner.consume(call, request);
  const limiter = await RateLimiter.open({ ...inner, consume }, { clock, limits: [Limit.perMinute('rpm', 60)] });
  const request = { ...USER, consume: { rpm: 1 }, wait: { timeoutMs: 60_000, maxWaiting: 3 } };
  const calls = Array.from({ length: 20 }, () => limiter.tryAcquire(request));
  await clock.advance(2_000);
  expect(limiter.waiting()).toEqual([{ ...USER, limit: null, priority: null, depth: 3, oldestWaitMs: 2_000 }]);
  isBusy = false;
  await clock.advance(100);
  const decisions = await Promise.all(calls);
  expect(decisions.filter(({ granted }) => granted)).toHaveLength(3);
  const denied = decisions.flatMap((decision) => (decision.granted ? [] : [decision.reason]));
  expect(new Set(denied)).toEqual(new Set(['contended']));
  expect(limiter.waiting()).toEqual([]);
});
