import assert from 'node:assert/strict';
import type { Page } from '../../../backend.js';
import type { ListOptions } from '../../../limiter/api/listing.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertRejects, USER } from '../kit/asking.js';
import type { Case } from '../kit/fixture.js';
import { collect } from '../kit/tenant.js';

/** Sorted by character code, not alphabetically and not by number. */
const IN_ORDER = ['10', '9', 'B', 'a', 'a!', 'a-b', 'a.b', 'a/b', 'aa', 'b', '|x'] as const;
const SHUFFLED = ['a.b', 'b', '9', 'aa', '|x', 'a', 'B', 'a/b', '10', 'a-b', 'a!'] as const;

function ids(items: readonly { readonly id: string }[]): string[] {
  return items.map(({ id }) => id);
}

/** Every method that lists. */
const LISTS: Readonly<Record<string, (limiter: RateLimiter, page: ListOptions) => Promise<Page<unknown>>>> = {
  entities: async ({ entities }, page) => entities.list(page),
  children: async ({ entities }, page) => entities.children('team', page),
  configs: async ({ config }, page) => config.list({ ...USER, ...page }),
  namespaces: async ({ namespaces }, page) => namespaces.list(page),
  orphans: async ({ namespaces }, page) => namespaces.orphans(page),
  audit: async ({ audit }, page) => audit.list(page),
  'audit of a namespace': async ({ audit }, page) => audit.list({ namespace: 'default', ...page }),
  'buckets of an entity': async ({ buckets }, page) => buckets.list({ entityId: USER.entityId, ...page }),
  'buckets of a resource': async ({ buckets }, page) => buckets.list({ resource: USER.resource, ...page }),
  leases: async ({ leases }, page) => leases.list({ ...USER, ...page }),
  usage: async ({ usage }, page) => usage.query({ ...USER, window: 'hourly', ...page }),
};

export const entityLists: readonly Case[] = [
  {
    title: 'all entities are listed in the order of their ids, page by page, each once',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (const id of SHUFFLED) {
        await limiter.entities.create({ id });
        await fixture.clock.advance(1);
      }
      await fixture.catchUp();
      for (const limit of [1, 2, 4, 100])
        assert.deepEqual(ids(await collect(limiter.entities.list({ limit }))), IN_ORDER);
      const first = await limiter.entities.list({ limit: 4 });
      assert.deepEqual(ids(first.items), IN_ORDER.slice(0, 4));
      const second = await limiter.entities.list({ limit: 100, after: first.next ?? '' });
      assert.deepEqual([ids(second.items), second.next], [IN_ORDER.slice(4), null]);
    },
  },
  {
    title: 'the children of a parent are listed in the order of their ids, page by page, whether or not they cascade',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (const id of ['team', 'tea']) await limiter.entities.create({ id });
      for (const [at, id] of SHUFFLED.entries()) {
        await fixture.clock.advance(1);
        await limiter.entities.create({ id, parentId: 'team', cascade: at % 2 === 0 });
        await limiter.entities.create({ id: `${id}-of-tea`, parentId: 'tea' });
        await limiter.entities.create({ id: `${id}-below`, parentId: id });
      }
      await fixture.catchUp();
      for (const limit of [1, 3, 100]) {
        assert.deepEqual(ids(await collect(limiter.entities.children('team', { limit }))), IN_ORDER);
      }
      const { items, next } = await limiter.entities.children('team', { limit: 3 });
      const rest = await limiter.entities.children('team', { after: next ?? '' });
      assert.deepEqual([ids(items), ids(rest.items)], [IN_ORDER.slice(0, 3), IN_ORDER.slice(3)]);
    },
  },
  {
    title: 'a list of entities shows each entity as a read does',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'team', name: 'Team' });
      await limiter.entities.create({
        id: 'user-1',
        parentId: 'team',
        cascade: true,
        metadata: { n: [1, { a: null }] },
      });
      await limiter.entities.update('user-1', { name: 'Ann' });
      await fixture.catchUp();
      const read = [await limiter.entities.get('team'), await limiter.entities.get('user-1')];
      assert.deepEqual(await collect(limiter.entities.list()), read);
      assert.deepEqual((await limiter.entities.children('team')).items, read.slice(1));
    },
  },
  {
    title: 'a child that moved is listed under its new parent only, and a child without a parent under none',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (const id of ['team', 'club']) await limiter.entities.create({ id });
      for (const id of ['a', 'b', 'c']) await limiter.entities.create({ id, parentId: 'team' });
      await limiter.entities.update('b', { parentId: 'club' });
      await limiter.entities.update('c', { parentId: null });
      await limiter.entities.update('a', { name: 'stays' });
      await fixture.catchUp();
      const children = await Promise.all(['team', 'club'].map(async (id) => collect(limiter.entities.children(id))));
      assert.deepEqual(children.map(ids), [['a'], ['b']]);
    },
  },
  {
    title: 'a list of entities continues after an entity that was deleted between two pages',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (const id of ['a', 'b', 'c', 'd']) await limiter.entities.create({ id });
      await fixture.catchUp();
      const { next } = await limiter.entities.list({ limit: 2 });
      await limiter.entities.delete('b');
      await fixture.catchUp();
      assert.deepEqual(ids((await limiter.entities.list({ after: next ?? '' })).items), ['c', 'd']);
    },
  },
  {
    title: 'an empty list has no items and no next page, also for a parent that does not exist',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.acquire(ask({ rpm: 1 }));
      await fixture.catchUp();
      const empty = { items: [], next: null };
      assert.deepEqual({ ...(await limiter.entities.list()) }, empty);
      assert.deepEqual({ ...(await limiter.entities.children('missing')) }, empty);
      assert.deepEqual(await collect(limiter.entities.list({ limit: 1 })), []);
    },
  },
  {
    title: 'every list refuses a page size of 0, above 1000 or with a fraction, and a malformed next',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (const list of Object.values(LISTS)) {
        await list(limiter, { limit: 1_000 });
        for (const limit of [0, 1_001, 1.5, '2']) {
          await assertRejects(list(limiter, { limit: limit as number }), 'input.invalid');
        }
        await assertRejects(list(limiter, { after: 7 as unknown as string }), 'input.invalid');
      }
    },
  },
];
