import assert from 'node:assert/strict';
import { ask, assertRejects, denial, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';

export const capacity: readonly Case[] = [
  {
    title: 'the capacity of a resource adds up the limits of all entities that have a bucket',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setSystem({ limits: limits('rpd:10/day', 'tpd:100/day:300') });
      await limiter.config.setEntityDefault('user-2', { limits: limits('rpd:50/day', 'slots:3/concurrent') });
      await limiter.acquire(ask({ rpd: 4, tpd: 250 }));
      await limiter.acquire(ask({ rpd: 20, slots: 1 }, { entityId: 'user-2' }));
      await limiter.acquire(ask({ rpd: 1 }, { entityId: 'user-3' }));
      await denial(limiter, ask({ rpd: 11 }, { entityId: 'user-4' }));
      await fixture.catchUp();
      assert.deepEqual(await limiter.resources.capacity(USER.resource), {
        rpd: { capacity: 70, available: 45, entities: 3 },
        tpd: { capacity: 600, available: 350, entities: 2 },
        slots: { capacity: 3, available: 2, entities: 1 },
      });
    },
  },
  {
    title: 'the capacity of a resource follows refill, debt and expired leases',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min', 'slots:3/concurrent');
      await (await limiter.acquire(ask({ rpm: 60, slots: 2 }))).settle({ rpm: 90 });
      await limiter.acquire(ask({ rpm: 10 }, { entityId: 'user-2' }));
      await fixture.catchUp();
      const seen: unknown[] = [];
      for (const ms of [0, 10_000, 50_000, 90_000]) {
        await fixture.clock.advance(ms);
        const { rpm, slots } = await limiter.resources.capacity(USER.resource);
        seen.push([rpm?.available, slots?.available]);
      }
      assert.deepEqual(seen, [
        [20, 4],
        [40, 4],
        [90, 6],
        [120, 6],
      ]);
    },
  },
  {
    title: 'the capacity of a resource leaves out per-call limits and other resources',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      await limiter.acquire(ask({ rpd: 1 }, { limits: limits('rpd:5/day', 'tpd:5/day') }));
      await limiter.acquire(ask({ rpd: 2 }, { resource: 'gpt-4o' }));
      await fixture.catchUp();
      assert.deepEqual(await limiter.resources.capacity(USER.resource), {});
      await limiter.acquire(ask({ rpd: 3 }));
      await fixture.catchUp();
      const expected = { rpd: { capacity: 10, available: 7, entities: 1 } };
      assert.deepEqual(await limiter.resources.capacity(USER.resource), expected);
    },
  },
  {
    title: 'the capacity of an unused resource is empty, and an illegal name is refused',
    run: async (fixture) => {
      const { resources } = await fixture.limited('rpd:10/day');
      assert.deepEqual(await resources.capacity('unused'), {});
      for (const name of ['', 'a~b', '_x', 7]) await assertRejects(resources.capacity(name as string), 'input.invalid');
    },
  },
];
