import assert from 'node:assert/strict';
import type { AuditEvent } from '../../../limiter/api/audit-api.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertRejects, denial, times, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { recordsOf } from './audit-records.js';
import { collect } from '../kit/tenant.js';

function told(records: readonly AuditEvent[]): string[] {
  return records.map(({ action, subject }) => `${action} ${subject}`);
}

/** Changes that are refused because of their input or because of the stored state. */
const REFUSED: readonly ((limiter: RateLimiter) => Promise<unknown>)[] = [
  async ({ entities }) => entities.create({ id: 'team' }),
  async ({ entities }) => entities.create({ id: 'x', parentId: 'missing' }),
  async ({ entities }) => entities.create({ id: 'a#b' }),
  async ({ entities }) => entities.update('team', { name: 'x', version: 9 }),
  async ({ entities }) => entities.update('team', { parentId: 'user-1' }),
  async ({ entities }) => entities.update('missing', { name: 'x' }),
  async ({ entities }) => entities.delete('team'),
  async ({ entities }) => entities.delete('missing'),
  async ({ config }) => config.setSystem({ limits: [] }),
  async ({ config }) => config.setSystem({ onUnavailable: 'maybe' as never }),
  async ({ config }) => config.setResource('a#b', { limits: limits('rpm:1/min') }),
  async ({ config }) => config.setEntity('user-1', 'gpt-4', { limits: ['rpm:1/min'] as never }),
  async ({ config }) => config.delete({} as never),
  async ({ buckets }) => buckets.reset({ ...USER, resource: 'a#b' }),
];

const silence: readonly Case[] = [
  {
    title: 'a refused change adds no audit record',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', parentId: 'team' });
      const added = await recordsOf(fixture, limiter, async () => {
        for (const change of REFUSED) await assert.rejects(change(limiter));
        assert.equal(await limiter.buckets.reset(USER), false);
      });
      assert.deepEqual(told(added), []);
    },
  },
  {
    title: 'a change of a namespace that is refused or has no effect adds no audit record',
    run: async (fixture) => {
      const { namespaces, audit } = await fixture.limiter();
      const name = await fixture.register();
      const { id } = await namespaces.register(name);
      await assertRejects(namespaces.recover(name), 'namespace.conflict');
      await assertRejects(namespaces.purge(id), 'namespace.conflict');
      await namespaces.delete(name);
      await assertRejects(namespaces.delete(name), 'namespace.missing');
      await namespaces.register(name);
      await fixture.catchUp();
      await assertRejects(namespaces.recover(id), 'namespace.conflict');
      const found = (await audit.list({ namespace: name })).items.map(({ action }) => action);
      assert.deepEqual(found, ['namespace.register', 'namespace.delete', 'namespace.register']);
      assert.deepEqual((await audit.list({ namespace: `${name}-unknown` })).items, []);
    },
  },
  {
    title: 'acquires and reads add no audit record',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min', 'slots:2/concurrent');
      await limiter.entities.create({ id: 'team' });
      const added = await recordsOf(fixture, limiter, async () => {
        const lease = await limiter.acquire(ask({ rpm: 5, slots: 1 }));
        await lease.settle({ rpm: 6 });
        await lease.extend();
        await lease.commit();
        await (await limiter.acquire(ask({ rpm: 1 }))).rollback();
        await denial(limiter, ask({ rpm: 9 }));
        await limiter.status(USER);
        await limiter.config.resolve('user-1', 'gpt-4');
        await limiter.entities.get('team');
        await limiter.buckets.get(USER);
        await limiter.usage.summary({ ...USER, window: 'daily' });
      });
      assert.deepEqual(told(added), []);
    },
  },
];

const lists: readonly Case[] = [
  {
    title: 'an audit record names the principal of the process that made the change, or null if there is none',
    run: async (fixture) => {
      const limiters = [
        await fixture.limiter({ principal: 'ann' }),
        await fixture.limiter({ principal: 'bob@example.org' }),
      ];
      limiters.push(await fixture.limiter());
      for (const [at, limiter] of limiters.entries()) await limiter.entities.create({ id: `user-${at}` });
      await fixture.catchUp();
      const found = await collect(limiters[0]?.audit.list() ?? assert.fail('no limiter'));
      assert.deepEqual(
        found.map(({ principal, subject }) => [principal, subject]),
        [
          ['ann', 'user-0'],
          ['bob@example.org', 'user-1'],
          [null, 'user-2'],
        ],
      );
    },
  },
  {
    title:
      'audit records are listed in the order of time or its reverse, also within one instant, page by page, each once',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (let count = 0; count < 9; count++) {
        await limiter.entities.create({ id: `user-${9 - count}` });
        if (count % 3 === 2) await fixture.clock.advance(1);
      }
      await fixture.catchUp();
      const expected = times(9, (at) => `entity.create user-${9 - at}`);
      for (const limit of [1, 2, 4, 100]) {
        assert.deepEqual(told(await collect(limiter.audit.list({ limit }))), expected);
        const reverse = told(await collect(limiter.audit.list({ limit, order: 'desc' })));
        assert.deepEqual(reverse, expected.toReversed());
      }
      const { items, next } = await limiter.audit.list({ limit: 4 });
      const rest = await limiter.audit.list({ after: next ?? '' });
      assert.deepEqual([told(items), told(rest.items), rest.next], [expected.slice(0, 4), expected.slice(4), null]);
    },
  },
  {
    title: 'audit records of one entity, one resource and the system can be listed separately and all together',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.config.setSystem({ limits: limits('rpm:10/min') });
      await limiter.entities.create({ id: 'gpt-4' });
      await limiter.config.setResource('gpt-4', { limits: limits('rpm:9/min') });
      await limiter.config.setResource('gpt-4o', { limits: limits('rpm:9/min') });
      await limiter.entities.create({ id: 'user-1' });
      await limiter.config.setEntity('user-1', 'gpt-4', { limits: limits('rpm:8/min') });
      await limiter.config.setEntityDefault('user-1', { limits: limits('rpm:7/min') });
      await limiter.acquire(ask({ rpm: 1 }));
      await limiter.buckets.reset(USER);
      await limiter.config.delete('system');
      await fixture.catchUp();
      const { audit } = limiter;
      const ofUser = ['entity.create', 'config.set', 'config.set', 'bucket.reset'].map((action) => `${action} user-1`);
      assert.deepEqual(told(await collect(audit.list({ entityId: 'user-1', limit: 3 }))), ofUser);
      assert.deepEqual(told(await collect(audit.list({ entityId: 'gpt-4' }))), ['entity.create gpt-4']);
      const ofResource = told(await collect(audit.list({ resource: 'gpt-4' })));
      assert.deepEqual(ofResource, ['config.set $RESOURCE:gpt-4']);
      const newest = told(await collect(audit.list({ entityId: 'user-1', limit: 3, order: 'desc' })));
      assert.deepEqual(newest, ofUser.toReversed());
      const ofSystem = told(await collect(audit.list({ system: true, limit: 1 })));
      assert.deepEqual(ofSystem, ['config.set $SYSTEM', 'config.delete $SYSTEM']);
      assert.deepEqual(told(await collect(audit.list({ limit: 4 }))), [
        'config.set $SYSTEM',
        'entity.create gpt-4',
        'config.set $RESOURCE:gpt-4',
        'config.set $RESOURCE:gpt-4o',
        ...ofUser,
        'config.delete $SYSTEM',
      ]);
      assert.deepEqual((await audit.list({ entityId: 'missing' })).items, []);
    },
  },
  {
    title: 'an audit record does not change when its subject or the returned object changes',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'user-1', metadata: { tags: ['a'] } });
      const [read = assert.fail('no record')] = (await limiter.audit.list({ entityId: 'user-1' })).items;
      (read.after as { metadata: { tags: string[] } }).metadata.tags.push('b');
      await limiter.entities.update('user-1', { metadata: { tags: [] } });
      await limiter.entities.delete('user-1');
      await fixture.catchUp();
      const found = (await limiter.audit.list({ entityId: 'user-1' })).items;
      const tags = found.map(({ after }) => (after as { metadata: unknown } | null)?.metadata);
      assert.deepEqual(tags, [{ tags: ['a'] }, { tags: [] }, undefined]);
    },
  },
  {
    title: 'concurrent changes add one audit record each',
    run: async (fixture) => {
      const limiters = await Promise.all(times(3, async () => fixture.limiter()));
      const changes = times(12, async (at) => limiters[at % 3]?.entities.create({ id: `user-${10 + at}` }));
      await Promise.all([...changes, limiters[0]?.config.setSystem({ limits: limits('rpm:1/min') })]);
      await fixture.catchUp();
      const found = await collect(limiters[1]?.audit.list({ limit: 5 }) ?? assert.fail('no limiter'));
      assert.deepEqual(new Set(found.map(({ id }) => id)).size, 13);
      const expected = ['config.set $SYSTEM', ...times(12, (at) => `entity.create user-${10 + at}`)];
      assert.deepEqual(told(found).toSorted(), expected);
    },
  },
  {
    title: 'listing the audit records of an illegal name is refused',
    run: async (fixture) => {
      const { audit } = await fixture.limiter();
      for (const entityId of ['', '$SYSTEM', '$RESOURCE:gpt-4', 7]) {
        await assertRejects(audit.list({ entityId: entityId as string }), 'input.invalid');
      }
      await assertRejects(audit.list({ resource: 'a~b' }), 'input.invalid');
      await assertRejects(audit.list({ namespace: '_' }), 'input.invalid');
    },
  },
];

export const auditLists: readonly Case[] = [...silence, ...lists];
