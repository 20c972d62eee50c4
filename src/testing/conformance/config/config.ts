import assert from 'node:assert/strict';
import type { Limit } from '../../../core/limit.js';
import { ask, assertRejects, times, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { STORED_LEVELS } from './config-levels.js';

/** Sorted text, because a store need not keep the order. */
function rulesOf(config: { readonly limits: readonly Limit[] } | null): string[] | undefined {
  return config?.limits.map(String).toSorted();
}

const stored: readonly Case[] = STORED_LEVELS.flatMap(({ source, ref, set, merge }) => [
  {
    title: `the ${source} level returns every field of the limits that were set, and no other level does`,
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const rules = ['jobs:7/977ms:50', 'rpm:60/min@2', 'slots:4/concurrent@1', 'zero:0/min'];
      assert.equal(await limiter.config.get(ref), null);
      await set(limiter, ...rules);
      assert.deepEqual(rulesOf(await limiter.config.get(ref)), rules);
      const others = STORED_LEVELS.filter((level) => level.source !== source);
      assert.deepEqual(await Promise.all(others.map(async (other) => limiter.config.get(other.ref))), [
        null,
        null,
        null,
      ]);
    },
  },
  {
    title: `setting the ${source} level again replaces all its limits`,
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await set(limiter, 'rpm:10/min', 'tpm:5/min');
      await set(limiter, 'rpm:20/min', 'slots:3/concurrent');
      assert.deepEqual(rulesOf(await limiter.config.get(ref)), ['rpm:20/min', 'slots:3/concurrent']);
    },
  },
  {
    title: `merging into the ${source} level changes the named limits and keeps the others`,
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await merge(limiter, 'rpm:10/min', 'tpm:5/min');
      await merge(limiter, 'rpm:20/min', 'slots:3/concurrent');
      assert.deepEqual(rulesOf(await limiter.config.get(ref)), ['rpm:20/min', 'slots:3/concurrent', 'tpm:5/min']);
    },
  },
  {
    title: `concurrent merges into the ${source} level lose no limit`,
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const rules = ['a:1/min', 'b:1/min', 'c:1/min', 'd:1/min'];
      await Promise.all(rules.map(async (rule) => merge(limiter, rule)));
      assert.deepEqual(rulesOf(await limiter.config.get(ref)), rules);
    },
  },
  {
    title: `deleting the ${source} level removes its config, and can be repeated`,
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.delete(ref);
      await set(limiter, 'rpm:10/min');
      await limiter.config.delete(ref);
      await limiter.config.delete(ref);
      assert.equal(await limiter.config.get(ref), null);
      assert.equal((await limiter.config.resolve(USER.entityId, USER.resource)).configSource, null);
    },
  },
]) satisfies Case[];

const resolved: readonly Case[] = [
  {
    title: 'all limits come from the first level that has any, from entity and resource down to code',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:5/min', 'code:1/min');
      const seen = [await limiter.config.resolve(USER.entityId, USER.resource)];
      for (const [at, level] of STORED_LEVELS.toReversed().entries()) {
        await level.set(limiter, `rpm:${10 + at}/min`);
        seen.push(await limiter.config.resolve(USER.entityId, USER.resource));
      }
      assert.deepEqual(
        seen.map((config) => [config.configSource, ...(rulesOf(config) ?? [])]),
        [
          ['code', 'code:1/min', 'rpm:5/min'],
          ['system', 'rpm:10/min'],
          ['resource', 'rpm:11/min'],
          ['entity_default', 'rpm:12/min'],
          ['entity', 'rpm:13/min'],
        ],
      );
    },
  },
  {
    title: 'a level applies to the entity or resource that it names, and to no other',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (const level of STORED_LEVELS) await level.set(limiter, 'rpm:10/min');
      const sources = [
        USER,
        { ...USER, resource: 'gpt-5' },
        { ...USER, entityId: 'user-2' },
        { entityId: 'x', resource: 'y' },
      ];
      const found = await Promise.all(
        sources.map(async ({ entityId, resource }) => (await limiter.config.resolve(entityId, resource)).configSource),
      );
      assert.deepEqual(found, ['entity', 'entity_default', 'resource', 'system']);
    },
  },
  {
    title: 'a config without limits at any level resolves to no limits',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      assert.deepEqual(await limiter.config.resolve(USER.entityId, USER.resource), {
        limits: [],
        configSource: null,
        onUnavailable: 'block',
      });
    },
  },
  {
    title: 'the system level has an outage policy and limits, and each can be set alone',
    run: async (fixture) => {
      const [limiter, strict] = [await fixture.limiter(), await fixture.limiter({ onUnavailable: 'block' })];
      await limiter.config.setSystem({ onUnavailable: 'allow' });
      assert.deepEqual(await limiter.config.get('system'), { limits: [], onUnavailable: 'allow' });
      await limiter.config.setSystem({ limits: limits('rpm:10/min') });
      await limiter.config.setResource(USER.resource, { limits: limits('rpm:20/min') });
      assert.equal((await limiter.config.get('system'))?.onUnavailable, 'allow');
      assert.equal((await limiter.config.resolve(USER.entityId, USER.resource)).onUnavailable, 'allow');
      assert.equal((await strict.config.resolve(USER.entityId, USER.resource)).onUnavailable, 'block');
      await limiter.config.setSystem({ onUnavailable: 'local' });
      assert.deepEqual(rulesOf(await limiter.config.get('system')), ['rpm:10/min']);
    },
  },
  {
    title: 'an empty list of limits and two limits with the same name are refused',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await assertRejects(limiter.config.setSystem({ limits: [] }), 'input.invalid');
      await assertRejects(limiter.config.setSystem({ limits: limits('a:1/min', 'a:2/min') }), 'input.invalid');
      await assertRejects(limiter.config.setResource('_x', { limits: limits('a:1/min') }), 'input.invalid');
      assert.equal(await limiter.config.get('system'), null);
    },
  },
  {
    title: 'the entities that have limits for a resource are listed page by page, each once',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const own = { limits: limits('rpm:1/min') };
      await Promise.all(times(5, async (at) => limiter.config.setEntity(`user-${at}`, 'gpt-4', own)));
      await limiter.config.setEntity('user-5', 'gpt-5', own);
      await limiter.config.setEntityDefault('user-6', own);
      await limiter.config.delete({ entityId: 'user-3', resource: 'gpt-4' });
      await fixture.catchUp();
      const listed: string[] = [];
      for await (const entityId of limiter.config.list({ resource: 'gpt-4', limit: 2 })) listed.push(entityId);
      assert.deepEqual(listed, ['user-0', 'user-1', 'user-2', 'user-4']);
      const { next } = await limiter.config.list({ resource: 'gpt-4', limit: 3 });
      const rest = await limiter.config.list({ resource: 'gpt-4', after: next ?? '' });
      assert.deepEqual(rest, { items: ['user-4'], next: null });
    },
  },
];

const caches: readonly Case[] = [
  {
    title: 'a change of a level takes effect at once in the same process, and in another after its cache lifetime',
    run: async (fixture) => {
      const [writer, reader] = [await fixture.limited('rpm:1/min'), await fixture.limited('rpm:1/min')];
      await reader.acquire(ask({ rpm: 1 }, { entityId: 'other' }));
      await reader.config.resolve(USER.entityId, USER.resource);
      await writer.config.setSystem({ limits: limits('rpm:50/min') });
      await writer.acquire(ask({ rpm: 50 }));
      assert.equal((await reader.config.resolve(USER.entityId, USER.resource)).configSource, 'code');
      await fixture.clock.advance(60_000);
      assert.equal((await reader.config.resolve(USER.entityId, USER.resource)).configSource, 'system');
    },
  },
  {
    title: 'clearing the cache makes the next acquire read again',
    run: async (fixture) => {
      const [writer, reader] = [await fixture.limited('rpm:1/min'), await fixture.limited('rpm:1/min')];
      await reader.config.resolve(USER.entityId, USER.resource);
      await writer.config.setSystem({ limits: limits('rpm:50/min') });
      reader.config.cache.clear();
      await reader.acquire(ask({ rpm: 50 }));
      const { entries, hits, misses } = reader.config.cache.stats();
      assert.deepEqual({ entries, hits, misses }, { entries: 1, hits: 0, misses: 2 });
    },
  },
  {
    title: 'a process without limits finds limits that another process has set meanwhile',
    run: async (fixture) => {
      const [writer, reader] = [await fixture.limiter(), await fixture.limiter()];
      await assertRejects(reader.acquire(ask({ rpm: 1 })), 'limits.missing');
      await fixture.clock.advance(1_000);
      await writer.config.setSystem({ limits: limits('rpm:50/min') });
      await reader.acquire(ask({ rpm: 50 }));
    },
  },
];

export const config: readonly Case[] = [...stored, ...resolved, ...caches];
