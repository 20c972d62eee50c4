import { expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { splitInto, spreading } from '../support/dynamodb/shard/shards.js';
import { ENGINE, startWorld } from '../support/dynamodb/world.js';

const USER = { entityId: 'user-1', resource: 'gpt-4' } as const;

test.skipIf(ENGINE.missing)('a credit fills the shards that have room, with an id and without one', async () => {
  await using world = await startWorld();
  const space = await world.space();
  const limiter = await space.open({ limits: [Limit.perDay('tpd', 1_000)] }, spreading(3));
  await (await limiter.acquire({ ...USER, consume: { tpd: 1 } })).rollback();
  await splitInto(2, world, space, USER);
  for (let at = 0; at < 3; at++) await limiter.acquire({ ...USER, consume: { tpd: 100 } });
  const balances = (await space.shards('user-1', 'gpt-4')).map(({ limits }) => limits[0]?.tokensMilli);
  expect(new Set(balances).size).toBe(2);
  await limiter.credit({ ...USER, amounts: { tpd: 150 } });
  expect(await limiter.available(USER)).toEqual({ tpd: 850 });
  await limiter.credit({ ...USER, amounts: { tpd: 100 }, id: 'invoice' });
  expect(await limiter.available(USER)).toEqual({ tpd: 950 });
  await limiter.credit({ ...USER, amounts: { tpd: 100 } });
  expect(await limiter.available(USER)).toEqual({ tpd: 1_000 });
});
