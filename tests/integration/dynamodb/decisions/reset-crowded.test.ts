import { expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import { ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const USER = { entityId: 'user-1', resource: 'gpt-4' } as const;

test.skipIf(ENGINE.missing)('a reset ends 700 leases of one shard, more than one expression can remove', async () => {
  await using world = await startWorld();
  const space = await world.space();
  const limiter = await space.open({ limits: [Limit.concurrent('slots', 5_000)] });
  for (let at = 0; at < 700; at += 50) {
    await Promise.all(Array.from({ length: 50 }, async () => limiter.acquire({ ...USER, consume: { slots: 1 } })));
  }
  expect(await limiter.buckets.reset(USER)).toBe(true);
  expect(await limiter.buckets.get(USER)).toMatchObject({ holders: 0, limits: [{ available: 5_000 }] });
  const { items } = await limiter.audit.list({ entityId: USER.entityId });
  expect(items.filter(({ action }) => action === 'bucket.reset')).toMatchObject([{ before: { holders: 700 } }]);
});
