import assert from 'node:assert/strict';
import { ask, assertRejects, denial, tokensOf, listUsage, USER } from './asking.js';
import { type Case, limits } from './fixture.js';

/** Characters that a store may use between the parts of a key. */
const SEPARATORS = ['-', '.', ':', '/', '|', '@', '_', '%'];

const separators: readonly Case[] = SEPARATORS.map((mark) => ({
  title: `names that contain "${mark}" are not confused`,
  run: async (fixture) => {
    const limiter = await fixture.limited('rpm:1/min');
    await limiter.acquire({ entityId: `a${mark}b`, resource: 'c', consume: { rpm: 1 } });
    await limiter.acquire({ entityId: 'a', resource: `b${mark}c`, consume: { rpm: 1 } });
    await denial(limiter, { entityId: `a${mark}b`, resource: 'c', consume: { rpm: 1 } });
    assert.deepEqual(await limiter.available({ entityId: 'a', resource: `b${mark}c` }), { rpm: 0 });
  },
})) satisfies Case[];

/** Legal names with a meaning for a JavaScript object, an update expression or the table of short stored names. */
const LIMIT_NAMES = ['constructor', 'toString', 'hasOwnProperty', 'in-put.tokens_per-min', 'SET', 'a'.repeat(64)];

const limitNames: readonly Case[] = LIMIT_NAMES.map((name) => ({
  title: `a limit named ${name.length > 30 ? 'with 64 characters' : name} works like any other`,
  run: async (fixture) => {
    const limiter = await fixture.limiter();
    await limiter.config.setResource(USER.resource, { limits: limits(`${name}:10/min`) });
    const lease = await limiter.acquire(ask({ [name]: 4 }));
    await lease.settle({ [name]: 7 });
    assert.deepEqual(lease.consumed, { [name]: 7 });
    assert.deepEqual(await limiter.available(USER), { [name]: 3 });
    assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ [name]: 7 }]);
  },
})) satisfies Case[];

const others: readonly Case[] = [
  {
    title: 'configs of names that would be equal when joined are not confused',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setEntity('a', 'bc', { limits: limits('rpm:1/min') });
      await limiter.config.setEntity('ab', 'c', { limits: limits('rpm:2/min') });
      await limiter.config.setEntityDefault('abc', { limits: limits('rpm:3/min') });
      await limiter.config.setResource('abc', { limits: limits('rpm:4/min') });
      const found = [
        { entityId: 'a', resource: 'bc' },
        { entityId: 'ab', resource: 'c' },
        { entityId: 'abc' },
        { resource: 'abc' },
      ];
      const views = await Promise.all(found.map(async (ref) => limiter.config.get(ref)));
      assert.deepEqual(
        views.map((view) => view?.limits[0]?.capacity),
        [1, 2, 3, 4],
      );
    },
  },
  {
    title: 'limits whose names are prefixes of each other are not confused',
    run: async (fixture) => {
      const names = ['a', 'a_tk', 'a_cp', 'a_rp', 'a_tk_tk', 'b_a', 'A'];
      const limiter = await fixture.limited(...names.map((name, at) => `${name}:${10 + at}/min`));
      for (const name of names) await limiter.acquire(ask({ [name]: 3 }));
      assert.deepEqual(await limiter.available(USER), Object.fromEntries(names.map((name, at) => [name, 7 + at])));
    },
  },
  {
    title: 'names that differ only in upper and lower case are different',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:1/min');
      await limiter.acquire(ask({ rpm: 1 }, { entityId: 'User', resource: 'R' }));
      await limiter.acquire(ask({ rpm: 1 }, { entityId: 'user', resource: 'R' }));
      await limiter.acquire(ask({ rpm: 1 }, { entityId: 'User', resource: 'r' }));
      await denial(limiter, ask({ rpm: 1 }, { entityId: 'User', resource: 'R' }));
    },
  },
  {
    title: 'names of the maximum length work',
    run: async (fixture) => {
      const longest = { entityId: '~'.repeat(256), resource: 'r'.repeat(128) };
      const limiter = await fixture.limited('rpm:2/min', 'slots:1/concurrent');
      await limiter.entities.create({ id: longest.entityId });
      await limiter.config.setEntity(longest.entityId, longest.resource, { limits: limits('rpm:5/min') });
      await limiter.acquire({ ...longest, consume: { rpm: 4 } });
      assert.deepEqual(await limiter.available(longest), { rpm: 1 });
    },
  },
  {
    title: 'every operation works for an Auth0 subject and a Bedrock model',
    run: async (fixture) => {
      const odd = { entityId: 'auth0|1@x.y/z:0', resource: 'arn:aws:bedrock:eu-1::model/anthropic.claude-v2:1' };
      const limiter = await fixture.limiter();
      await limiter.config.setEntity(odd.entityId, odd.resource, { limits: limits('rpm:5/min', 'slots:2/concurrent') });
      const lease = await limiter.acquire({ ...odd, consume: { rpm: 2, slots: 1 } });
      assert.equal((await limiter.leases.list(odd)).items[0]?.id, lease.id);
      await lease.commit({ rpm: 3 });
      assert.deepEqual(await limiter.available(odd), { rpm: 2, slots: 2 });
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter, odd)), [{ rpm: 3 }]);
    },
  },
  {
    title: 'an illegal entity id or resource name is refused',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:2/min');
      for (const entityId of ['', 'a#b', 'a b', '$SYSTEM', 'ü', 'a'.repeat(257)]) {
        await assertRejects(limiter.acquire(ask({ rpm: 1 }, { entityId })), 'input.invalid');
      }
      for (const resource of ['', 'a#b', 'a b', 'a~b', '_default_', '$r', 'a'.repeat(129)]) {
        await assertRejects(limiter.acquire(ask({ rpm: 1 }, { resource })), 'input.invalid');
      }
    },
  },
];

export const names: readonly Case[] = [...separators, ...limitNames, ...others];
