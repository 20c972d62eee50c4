import { expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { mergeShards, shapeOf, splitInto, spreading } from '../support/dynamodb/shard/shards.js';
import { ENGINE, startWorld } from '../support/dynamodb/world.js';

const USER = { entityId: 'user-1', resource: 'gpt-4' } as const;

test.skipIf(ENGINE.missing)('a merge of two shards waits for a resume that has reached one of them', async () => {
  await using world = await startWorld();
  const space = await world.space();
  const limiter = await space.open({ limits: [Limit.perDay('tpd', 1_000)] }, spreading(3));
  await limiter.acquire({ ...USER, consume: { tpd: 1 } });
  await splitInto(2, world, space, USER);
  await limiter.pause({ ...USER, forMs: 'forever', reason: 'vendor' });
  await space.clock.advance(2 * 3_600_000);
  const held = world.proxy.inject(fault.holdRequest(), {
    operations: ['UpdateItem'],
    when: ({ body }) => JSON.stringify(body).includes('BUCKET#user-1#gpt-4#1'),
    times: 1,
  });
  const resuming = limiter.resume(USER);
  await held.untilFired(1);
  expect(await mergeShards(world, space, USER)).toBeNull();
  held.release();
  await resuming;
  const shards = await space.shards('user-1', 'gpt-4');
  expect([shapeOf(shards), shards.map(({ pause }) => pause ?? null)]).toEqual(['0/2 1/2', [null, null]]);
  expect((await limiter.tryAcquire({ ...USER, consume: { tpd: 1 } })).granted).toBe(true);
});
