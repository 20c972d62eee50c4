import assert from 'node:assert/strict';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertRejects, denial, refusers, USER } from '../kit/asking.js';
import { type Fixture, type Case, limits } from '../kit/fixture.js';

/** Creates a chain of entities: the parent of each is the next one. */
async function row(limiter: RateLimiter, ...ids: string[]): Promise<void> {
  for (const [at, id] of ids.toReversed().entries()) {
    const parentId = ids[ids.length - at];
    await limiter.entities.create(parentId === undefined ? { id } : { id, parentId, cascade: true });
  }
}

/** Creates `user-1` under `team`, and `club`. Each may spend 10 a day. */
async function openTeam(fixture: Fixture, cascade = true): Promise<RateLimiter> {
  const limiter = await fixture.limiter();
  await limiter.config.setSystem({ limits: limits('rpd:10/day') });
  for (const id of ['team', 'club']) await limiter.entities.create({ id });
  await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade });
  return limiter;
}

/** The available `rpd` of each entity's own level. */
async function left(limiter: RateLimiter, ...ids: string[]): Promise<(number | undefined)[]> {
  const statuses = ids.map(async (entityId) => limiter.status({ ...USER, entityId }));
  return (await Promise.all(statuses)).map(([own]) => own?.available);
}

const CACHE_LIFE_MS = 60_000;

const refusals: readonly Case[] = [
  {
    title: 'an update refuses cascade for an entity without a parent, and changes nothing',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const before = await limiter.entities.create({ id: 'user-1' });
      await assertRejects(limiter.entities.update('user-1', { cascade: true }), 'input.invalid');
      assert.deepEqual(await limiter.entities.get('user-1'), before);
    },
  },
  {
    title: 'an update refuses a parent that does not exist or is the entity itself, and changes nothing',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'team' });
      const before = await limiter.entities.create({ id: 'user-1', parentId: 'team', name: 'Ann' });
      for (const parentId of ['missing', 'user-1']) {
        await assertRejects(limiter.entities.update('user-1', { parentId, name: 'Bea' }), 'input.invalid');
      }
      assert.deepEqual(await limiter.entities.get('user-1'), before);
    },
  },
  {
    title: 'an update refuses a descendant as the parent, at any depth',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await row(limiter, 'd', 'c', 'b', 'a');
      for (const parentId of ['b', 'c', 'd']) {
        await assertRejects(limiter.entities.update('a', { parentId }), 'input.invalid');
      }
      assert.equal((await limiter.entities.get('a'))?.parentId, null);
      await limiter.entities.update('b', { parentId: null });
      await limiter.entities.update('a', { parentId: 'd' });
    },
  },
  {
    title: 'an update refuses a parent that would make a chain longer than eight levels',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await row(limiter, 'a1', 'a2', 'a3', 'a4', 'a5');
      await limiter.entities.create({ id: 'short', parentId: 'a5' });
      await row(limiter, 'b1', 'b2', 'b3', 'b4');
      await fixture.catchUp();
      await assertRejects(limiter.entities.update('a5', { parentId: 'b1' }), 'input.invalid');
      assert.equal((await limiter.entities.get('a5'))?.parentId, null);
      await limiter.entities.update('a4', { parentId: 'b1' });
      await limiter.entities.update('a5', { parentId: 'b2' });
    },
  },
];

const changes: readonly Case[] = [
  {
    title: 'spending cascades over all eight levels of a chain that an update created',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      await row(limiter, 'a1', 'a2', 'a3', 'a4');
      await row(limiter, 'b1', 'b2', 'b3', 'b4');
      await fixture.catchUp();
      await limiter.entities.update('a4', { parentId: 'b1', cascade: true });
      await limiter.acquire(ask({ rpd: 4 }, { entityId: 'a1' }));
      await limiter.acquire(ask({ rpd: 5 }, { entityId: 'b4' }));
      assert.deepEqual(refusers(await denial(limiter, ask({ rpd: 2 }, { entityId: 'a1' }))), ['b4 rpd']);
      assert.deepEqual(await left(limiter, 'a1', 'a4', 'b1', 'b4'), [6, 6, 6, 1]);
    },
  },
  {
    title: 'a changed parent takes effect at once in the process that changed it',
    run: async (fixture) => {
      const limiter = await openTeam(fixture);
      await limiter.acquire(ask({ rpd: 1 }));
      await limiter.entities.update('user-1', { parentId: 'club' });
      await limiter.acquire(ask({ rpd: 2 }));
      assert.deepEqual(await left(limiter, 'user-1', 'team', 'club'), [7, 9, 8]);
    },
  },
  {
    title: 'a changed parent takes effect in another process within one cache lifetime',
    run: async (fixture) => {
      const [limiter, other] = [await openTeam(fixture), await fixture.limiter()];
      await other.acquire(ask({ rpd: 1 }));
      await limiter.entities.update('user-1', { parentId: 'club' });
      await fixture.clock.advance(CACHE_LIFE_MS);
      await other.acquire(ask({ rpd: 2 }));
      assert.deepEqual(await left(limiter, 'user-1', 'team', 'club'), [7, 9, 8]);
    },
  },
  {
    title: 'a parent that was removed is no longer charged and no longer refuses',
    run: async (fixture) => {
      const [limiter, other] = [await openTeam(fixture), await fixture.limiter()];
      await limiter.acquire(ask({ rpd: 9 }, { entityId: 'team' }));
      assert.deepEqual(refusers(await denial(other, ask({ rpd: 2 }))), ['team rpd']);
      await limiter.entities.update('user-1', { parentId: null });
      await limiter.acquire(ask({ rpd: 2 }));
      await fixture.clock.advance(CACHE_LIFE_MS);
      await other.acquire(ask({ rpd: 3 }));
      assert.deepEqual(await left(limiter, 'user-1', 'team'), [5, 1]);
    },
  },
  {
    title:
      'switching cascade on or off takes effect at once in the same process and within one cache lifetime in others',
    run: async (fixture) => {
      const [limiter, other] = [await openTeam(fixture, false), await fixture.limiter()];
      await other.acquire(ask({ rpd: 1 }));
      await limiter.entities.update('user-1', { cascade: true });
      await limiter.acquire(ask({ rpd: 1 }));
      assert.deepEqual(await left(limiter, 'user-1', 'team'), [8, 9]);
      await fixture.clock.advance(CACHE_LIFE_MS);
      await other.acquire(ask({ rpd: 1 }));
      assert.deepEqual(await left(limiter, 'user-1', 'team'), [7, 8]);
      await limiter.entities.update('user-1', { cascade: false });
      await limiter.acquire(ask({ rpd: 1 }));
      await fixture.clock.advance(CACHE_LIFE_MS);
      await other.acquire(ask({ rpd: 1 }));
      assert.deepEqual(await left(limiter, 'user-1', 'team'), [5, 8]);
    },
  },
  {
    title: 'a change in the middle of a chain takes effect for the entities at its bottom',
    run: async (fixture) => {
      const [limiter, other] = [await fixture.limited('rpd:10/day'), await fixture.limited('rpd:10/day')];
      await row(limiter, 'user-1', 'team', 'company');
      await limiter.entities.create({ id: 'group' });
      await other.acquire(ask({ rpd: 1 }));
      await limiter.entities.update('team', { parentId: 'group' });
      await limiter.acquire(ask({ rpd: 2 }));
      await fixture.clock.advance(CACHE_LIFE_MS);
      await other.acquire(ask({ rpd: 3 }));
      assert.deepEqual(await left(limiter, 'user-1', 'team', 'company', 'group'), [4, 4, 9, 5]);
    },
  },
  {
    title: 'a lease settles and rolls back with the parents that it took from, even if they have changed',
    run: async (fixture) => {
      const limiter = await openTeam(fixture);
      const [kept, undone] = [await limiter.acquire(ask({ rpd: 2 })), await limiter.acquire(ask({ rpd: 3 }))];
      await limiter.entities.update('user-1', { parentId: 'club' });
      await kept.settle({ rpd: 4 });
      await undone.rollback();
      assert.deepEqual(await left(limiter, 'user-1', 'team', 'club'), [6, 6, 10]);
    },
  },
  {
    title: 'the spending of a deleted entity no longer counts for its parent',
    run: async (fixture) => {
      const limiter = await openTeam(fixture);
      await limiter.acquire(ask({ rpd: 1 }));
      await limiter.entities.delete('user-1');
      await limiter.acquire(ask({ rpd: 2 }));
      assert.deepEqual(await left(limiter, 'user-1', 'team'), [7, 9]);
    },
  },
];

export const entityParents: readonly Case[] = [...refusals, ...changes];
