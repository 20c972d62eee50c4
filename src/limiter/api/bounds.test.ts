import { expect, test } from 'vitest';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../rate-limiter.js';

test('a list refuses a cursor that no page returns, so that no store gets a key that it cannot hold', async () => {
  await using limiter = await RateLimiter.open('memory:');
  for (const after of ['\u{1f600}', '\u0000', 'x'.repeat(513)]) {
    await expect(limiter.entities.list({ after }), after).rejects.toThrow('Expected `after`');
    await expect(limiter.leases.list({ after }), after).rejects.toThrow('Expected `after`');
  }
});

test('the cursor of the longest names is accepted', async () => {
  await using limiter = await RateLimiter.open('memory:', { limits: [Limit.concurrent('slots', 9)] });
  const key = { entityId: 'e'.repeat(256), resource: 'r'.repeat(128), consume: { slots: 1 } };
  await limiter.acquire(key);
  await limiter.acquire(key);
  const first = await limiter.leases.list({ limit: 1 });
  const rest = await limiter.leases.list({ after: first.next ?? '' });
  expect([...first.items, ...rest.items]).toHaveLength(2);
});

test('the name of an entity has at most 256 characters, in a limits file too', async () => {
  await using limiter = await RateLimiter.open('memory:');
  const [longest, name] = ['x'.repeat(256), 'x'.repeat(257)];
  await limiter.entities.create({ id: 'user-1', name: longest });
  await expect(limiter.entities.create({ id: 'user-2', name })).rejects.toThrow('Expected `name`');
  await expect(limiter.entities.update('user-1', { name })).rejects.toThrow('Expected `name`');
  const file = { namespace: 'default', entities: { 'user-3': { name } } };
  await expect(limiter.manifest.apply(file)).rejects.toThrow('text of at most 256 characters');
});
