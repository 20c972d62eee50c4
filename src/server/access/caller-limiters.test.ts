import { afterEach, beforeEach, expect, test } from 'vitest';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { type Caller, CallerLimiters } from './caller-limiters.js';

let first: RateLimiter;

beforeEach(async () => {
  first = await RateLimiter.open('memory:', { limits: [Limit.perMinute('rpm', 60)] });
  for (const name of ['a', 'b', 'c', 'd']) await first.namespaces.register(name);
});
afterEach(() => first.close());

const by = (namespace: string): Caller => ({ token: null, namespace });

test('beyond its bound, the limiter of a namespace that was not asked for since the last eviction is dropped', async () => {
  const limiters = new CallerLimiters(first, 'default', 2);
  const [a, b] = [await limiters.of(by('a')), await limiters.of(by('b'))];
  await limiters.of(by('c'));
  expect(await limiters.of(by('b'))).toBe(b);
  expect(await limiters.of(by('a'))).not.toBe(a);
  expect(await limiters.of(by('b'))).toBe(b);
});

test('the limiter of the namespace of the server is never dropped, and one that was dropped still works', async () => {
  const limiters = new CallerLimiters(first, 'default', 1);
  const own = limiters.of(by('default'));
  const dropped = await limiters.of(by('a'));
  for (const name of ['b', 'c', 'd']) await limiters.of(by(name));
  expect(limiters.of(by('default'))).toBe(own);
  const decision = await dropped.tryAcquire({ entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } });
  expect(decision.granted).toBe(true);
});

test('a namespace that is missing is looked up again, and one that is forgotten, too', async () => {
  const limiters = new CallerLimiters(first, 'default', 2);
  await expect(limiters.of(by('e'))).rejects.toMatchObject({ code: 'namespace.missing' });
  await first.namespaces.register('e');
  const found = await limiters.of(by('e'));
  expect(limiters.of(by('e'))).toBe(found);
  limiters.forget(by('e'));
  expect(await limiters.of(by('e'))).not.toBe(found);
});
