import assert from 'node:assert/strict';
import { ask, assertRejects, times } from '../kit/asking.js';
import type { Case } from '../kit/fixture.js';

export const entities: readonly Case[] = [
  {
    title: 'an entity is read with every field that it was created with',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const metadata = { tier: 'gold', tags: ['a', ''], deep: { n: 1.5, none: null, yes: true }, 'odd key': 'ü' };
      await limiter.entities.create({ id: 'team' });
      const created = await limiter.entities.create({
        id: 'user-1',
        name: 'Ann',
        parentId: 'team',
        cascade: true,
        metadata,
      });
      const createdAt = new Date(fixture.clock.now());
      assert.deepEqual(created, {
        id: 'user-1',
        name: 'Ann',
        parentId: 'team',
        cascade: true,
        metadata,
        createdAt,
        version: 1,
      });
      assert.deepEqual(await limiter.entities.get('user-1'), created);
    },
  },
  {
    title: 'an entity that was created with only an id has no parent, no name and no metadata',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'user-1' });
      const createdAt = new Date(fixture.clock.now());
      assert.deepEqual(await limiter.entities.get('user-1'), {
        id: 'user-1',
        name: null,
        parentId: null,
        cascade: false,
        metadata: {},
        createdAt,
        version: 1,
      });
    },
  },
  {
    title: 'an entity without a record is not found, although it may spend',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.acquire(ask({ rpm: 1 }));
      assert.equal(await limiter.entities.get('user-1'), null);
    },
  },
  {
    title: 'one of several concurrent creations of an entity succeeds',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const outcomes = await Promise.allSettled(
        times(5, async (at) => limiter.entities.create({ id: 'user-1', name: `${at}` })),
      );
      const [winner, ...others] = outcomes.filter(({ status }) => status === 'fulfilled');
      assert.deepEqual([winner?.status, others], ['fulfilled', []]);
      await assertRejects(limiter.entities.create({ id: 'user-1' }), 'entity.exists');
    },
  },
];
