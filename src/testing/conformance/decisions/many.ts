import assert from 'node:assert/strict';
import type { LevelRecord } from '../../../backend.js';
import type { ConfigLevel } from '../../../core/config/config.js';
import { times, USER } from '../kit/asking.js';
import { type Fixture, type Case, limits } from '../kit/fixture.js';
import { STORED_LEVELS } from '../config/config-levels.js';
import { collectPages } from '../kit/tenant.js';

/** All levels that have a config, read in pages of the given size. */
async function levelsOf({ backend, call }: Fixture, limit: number): Promise<LevelRecord[]> {
  return collectPages(limit, (page) => backend.config.all(call(), page));
}

/** The levels as text, sorted, because each store lists them in its own order. */
function printed(levels: readonly LevelRecord[]): string[] {
  return levels
    .map(({ level, config }) => {
      const { kind, entityId = '-', resource = '-' } = level as { kind: string; entityId?: string; resource?: string };
      const rules = (config.limits ?? []).map(String).toSorted().join(' ');
      return [kind, entityId, resource, rules, config.onUnavailable ?? '-'].join(' ');
    })
    .toSorted();
}

const LEVELS: readonly ConfigLevel[] = [
  { kind: 'system' },
  { kind: 'resource', resource: USER.resource },
  { kind: 'entity_default', entityId: USER.entityId },
  { kind: 'entity', ...USER },
  { kind: 'resource', resource: 'never' },
  { kind: 'entity_default', entityId: 'missing' },
  { kind: 'entity', entityId: 'missing', resource: USER.resource },
];

const reads: readonly Case[] = [
  {
    title:
      'a read of many levels returns each as a single read does, in the requested order, also if a level is named twice',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (const { set } of STORED_LEVELS) await set(limiter, 'rpm:10/min@2', 'slots:4/concurrent');
      await limiter.config.setSystem({ onUnavailable: 'local' });
      await limiter.config.delete({ resource: USER.resource });
      const { config } = fixture.backend;
      const asked = [...LEVELS, ...LEVELS.toReversed()];
      const expected = [];
      for (const level of asked) expected.push(await config.read(fixture.call(), level));
      assert.deepEqual(await config.readMany(fixture.call(), asked), expected);
      assert.deepEqual(
        expected.slice(4, 7).map((found) => found?.limits ?? null),
        [null, null, null],
      );
      assert.deepEqual(await config.readMany(fixture.call(), []), []);
    },
  },
  {
    title: 'a read of 100 levels returns each right after it was written',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const names = times(100, (at) => `user-${at}`);
      await Promise.all(
        names.map(async (id, at) => limiter.config.setEntityDefault(id, { limits: limits(`rpm:${at}/min`) })),
      );
      const levels = names.map((entityId) => ({ kind: 'entity_default', entityId }) as const);
      const found = await fixture.backend.config.readMany(fixture.call(), levels);
      assert.deepEqual(
        found.map((config) => String(config?.limits)),
        names.map((_, at) => `rpm:${at}/min`),
      );
    },
  },
  {
    title: 'a read of 100 entities returns each as a single read does, including those that do not exist',
    run: async (fixture) => {
      const { entities } = await fixture.limiter();
      await entities.create({ id: 'team', metadata: { deep: { list: [1] } } });
      for (const at of times(60, Number)) await entities.create({ id: `user-${at}`, name: `${at}`, parentId: 'team' });
      await entities.update('user-7', { name: 'Ann', parentId: null });
      await entities.delete('user-9');
      const store = fixture.backend.entities;
      const ids = ['team', ...times(98, (at) => `user-${at}`), 'team'];
      const expected = [];
      for (const id of ids) expected.push(await store.read(fixture.call(), id));
      assert.deepEqual(await store.readMany(fixture.call(), ids), expected);
      assert.equal(expected.filter((found) => found === undefined).length, 39);
      assert.deepEqual(await store.readMany(fixture.call(), []), []);
    },
  },
];

const lists: readonly Case[] = [
  {
    title: 'every level that has a config is listed once, page by page, with its config',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const own = { limits: limits('rpm:1/min', 'slots:2/concurrent') };
      for (const name of ['a', 'a!', 'a-b', 'b', 'B']) {
        await limiter.config.setResource(name, own);
        await limiter.config.setEntityDefault(name, own);
        for (const resource of ['a', 'a!', 'b']) await limiter.config.setEntity(name, resource, own);
      }
      await limiter.config.setSystem({ onUnavailable: 'allow' });
      await fixture.catchUp();
      const all = printed(await levelsOf(fixture, 1_000));
      assert.equal(all.length, 5 * 5 + 1);
      assert.ok(all.includes('system - -  allow'));
      assert.ok(all.includes('entity a-b a! rpm:1/min slots:2/concurrent -'));
      assert.equal(new Set(all).size, all.length);
      for (const limit of [1, 3, 26]) assert.deepEqual(printed(await levelsOf(fixture, limit)), all);
    },
  },
  {
    title: 'a deleted level is not listed until it is set again',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (const { set } of STORED_LEVELS) await set(limiter, 'rpm:1/min');
      for (const { ref } of STORED_LEVELS) await limiter.config.delete(ref);
      await fixture.catchUp();
      assert.deepEqual(await levelsOf(fixture, 2), []);
      await limiter.config.setEntity(USER.entityId, USER.resource, { limits: limits('rpm:2/min') });
      await fixture.catchUp();
      assert.deepEqual(printed(await levelsOf(fixture, 2)), ['entity user-1 gpt-4 rpm:2/min -']);
    },
  },
];

export const many: readonly Case[] = [...reads, ...lists];
