import { expect, test } from 'vitest';
import { ASK, openLimiter } from '../../../tests/support/models/open-limiter.js';
import { Limit } from '../../core/limit.js';

test('a peek has the statuses of a take, and takes nothing', async () => {
  const { limiter } = await openLimiter();
  await limiter.acquire({ ...ASK, consume: { rpm: 55, slots: 1 } });
  const ask = { ...ASK, consume: { rpm: 10, slots: 1 } };
  const looked = await limiter.peek(ask);
  expect(await limiter.peek(ask)).toEqual(looked);
  const decision = await limiter.tryAcquire(ask);
  expect(decision).toMatchObject({ granted: false, retryAfterMs: 5_000 });
  expect(looked).toEqual(decision.statuses);
});

test('a peek that would be granted shows the current balance, not the balance after a take', async () => {
  const { limiter } = await openLimiter();
  const [status] = await limiter.peek({ ...ASK, consume: { rpm: 10 } });
  expect(status).toMatchObject({ available: 60, requested: 10, exceeded: false, retryAfterMs: 0 });
});

test('a peek shows every level that would be asked, with the limits of the call', async () => {
  const { limiter } = await openLimiter();
  await limiter.entities.create({ id: 'proj-1' });
  await limiter.entities.create({ id: ASK.entityId, parentId: 'proj-1', cascade: true });
  const limits = [Limit.perMinute('rpm', 5)];
  const statuses = await limiter.peek({ ...ASK, limits, consume: { rpm: 6 } });
  expect(statuses.map(({ entityId, limit, retryAfterMs }) => [entityId, String(limit), retryAfterMs])).toEqual([
    [ASK.entityId, 'rpm:5/min', null],
    ['proj-1', 'rpm:60/min', 0],
  ]);
});
