import assert from 'node:assert/strict';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertRejects, times, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { collect, createRecords, pictureOf } from '../kit/tenant.js';

const CACHE_LIFE_MS = 60_000;

/** Every operation in a namespace. */
const USES: Readonly<Record<string, (limiter: RateLimiter) => Promise<unknown>>> = {
  acquire: async (limiter) => limiter.acquire(ask({ rpd: 1 })),
  run: async (limiter) => limiter.run(ask({ rpd: 1 }), () => 1),
  status: async (limiter) => limiter.status(USER),
  peek: async (limiter) => limiter.peek(ask({ rpd: 1 })),
  timeUntilAvailable: async (limiter) => limiter.timeUntilAvailable(ask({ rpd: 1 })),
  'config.resolve': async ({ config }) => config.resolve(USER.entityId, USER.resource),
  'config.get': async ({ config }) => config.get('system'),
  'config.list': async ({ config }) => config.list(USER),
  'config.setSystem': async ({ config }) => config.setSystem({ limits: limits('rpd:99/day') }),
  'config.delete': async ({ config }) => config.delete('system'),
  'entities.get': async ({ entities }) => entities.get('team'),
  'entities.create': async ({ entities }) => entities.create({ id: 'late' }),
  'entities.update': async ({ entities }) => entities.update('team', { name: 'late' }),
  'entities.delete': async ({ entities }) => entities.delete('team'),
  'entities.list': async ({ entities }) => entities.list(),
  'entities.children': async ({ entities }) => entities.children('team'),
  'buckets.get': async ({ buckets }) => buckets.get(USER),
  'buckets.list': async ({ buckets }) => buckets.list({ entityId: USER.entityId }),
  'buckets.reset': async ({ buckets }) => buckets.reset(USER),
  'resources.capacity': async ({ resources }) => resources.capacity(USER.resource),
  'leases.list': async ({ leases }) => leases.list(USER),
  'usage.query': async ({ usage }) => usage.query({ ...USER, window: 'daily' }),
  'usage.summary': async ({ usage }) => usage.summary({ ...USER, window: 'daily' }),
  'audit.list': async ({ audit }) => audit.list(),
};

/** No case deletes `default`, so a limiter there can still administer the others. */
const OUTSIDE = { namespace: 'default' } as const;

const closing: readonly Case[] = [
  {
    title: 'a deleted namespace has the status deleted, and can be neither found, opened nor listed',
    run: async (fixture) => {
      const limiter = await fixture.limiter(OUTSIDE);
      const before = await limiter.namespaces.get(fixture.namespace);
      const deleted = await limiter.namespaces.delete(fixture.namespace);
      await fixture.catchUp();
      assert.deepEqual(deleted, { ...before, status: 'deleted' });
      assert.equal(await limiter.namespaces.get(fixture.namespace), null);
      await assertRejects(limiter.in(fixture.namespace), 'namespace.missing');
      await assertRejects(fixture.limiter(), 'namespace.missing');
      const listed = await collect(limiter.namespaces.list({ limit: 1_000 }));
      assert.ok(!listed.some(({ name }) => name === fixture.namespace));
    },
  },
  {
    title: 'every operation of a process that has a deleted namespace open is refused',
    run: async (fixture) => {
      const [outside, inside] = [await fixture.limiter(OUTSIDE), await fixture.limiter()];
      await createRecords(inside);
      const before = await pictureOf(fixture, inside);
      await outside.namespaces.delete(fixture.namespace);
      await fixture.clock.advance(CACHE_LIFE_MS);
      for (const use of Object.values(USES)) await assertRejects(use(inside), 'namespace.missing');
      await outside.namespaces.recover(fixture.namespace);
      await fixture.clock.advance(CACHE_LIFE_MS);
      assert.deepEqual(await pictureOf(fixture, inside), before);
    },
  },
  {
    title: 'a limiter that deletes its own namespace is refused at once, and can recover the namespace',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await createRecords(limiter);
      await limiter.namespaces.delete(fixture.namespace);
      for (const use of [USES['acquire'], USES['status'], USES['config.setSystem'], USES['entities.list']]) {
        await assertRejects(use?.(limiter) ?? Promise.resolve(), 'namespace.missing');
      }
      await limiter.namespaces.recover(fixture.namespace);
      await limiter.acquire(ask({ rpd: 1 }));
    },
  },
  {
    title: 'a deleted namespace is not an outage: calls are refused also under the policy allow',
    run: async (fixture) => {
      const [outside, inside] = [
        await fixture.limiter(OUTSIDE),
        await fixture.limiter({ onUnavailable: 'allow', limits: limits('rpd:10/day') }),
      ];
      await inside.acquire(ask({ rpd: 1 }));
      await outside.namespaces.delete(fixture.namespace);
      await fixture.clock.advance(CACHE_LIFE_MS);
      for (let count = 0; count < 6; count++) await assertRejects(inside.acquire(ask({ rpd: 1 })), 'namespace.missing');
      assert.equal((await inside.ping()).ok, true);
    },
  },
  {
    title: 'a lease can be settled and ended after its namespace is recovered',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day', 'slots:2/concurrent');
      const lease = await limiter.acquire(ask({ rpd: 2, slots: 1 }));
      await limiter.namespaces.delete(fixture.namespace);
      await assertRejects(lease.settle({ rpd: 5 }), 'namespace.missing');
      await assertRejects(lease.extend(), 'namespace.missing');
      await assertRejects(lease.commit(), 'namespace.missing');
      await limiter.namespaces.recover(fixture.namespace);
      await lease.extend();
      await lease.commit({ rpd: 5 });
      assert.deepEqual(await limiter.available(USER), { rpd: 5, slots: 2 });
    },
  },
  {
    title: 'one of several concurrent deletions of a namespace succeeds',
    run: async (fixture) => {
      const limiter = await fixture.limiter(OUTSIDE);
      const outcomes = await Promise.allSettled(times(5, async () => limiter.namespaces.delete(fixture.namespace)));
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      assert.equal(refused.length, 4);
      for (const { reason } of refused) await assertRejects(Promise.reject(reason), 'namespace.missing');
    },
  },
  {
    title: 'a namespace that was never registered cannot be deleted, recovered or purged',
    run: async (fixture) => {
      const { namespaces } = await fixture.limiter();
      const name = `${fixture.namespace}-unknown`;
      await assertRejects(namespaces.delete(name), 'namespace.missing');
      for (const unknown of [name, 'AAAAAAAAAA0']) {
        await assertRejects(namespaces.recover(unknown), 'namespace.missing');
        await assertRejects(namespaces.purge(unknown), 'namespace.missing');
      }
      for (const illegal of [7, null, undefined]) {
        await assertRejects(namespaces.delete(illegal as never), 'input.invalid');
        await assertRejects(namespaces.recover(illegal as never), 'input.invalid');
        await assertRejects(namespaces.purge(illegal as never), 'input.invalid');
      }
    },
  },
];

const recoveries: readonly Case[] = (['name', 'id'] as const).map((key) => ({
  title: `recovering a namespace by its ${key} restores all its data`,
  run: async (fixture) => {
    const limiter = await fixture.limiter({ principal: 'ann' });
    await createRecords(limiter);
    const before = await pictureOf(fixture, limiter);
    const registered = await limiter.namespaces.get(fixture.namespace);
    const deleted = await limiter.namespaces.delete(fixture.namespace);
    await fixture.catchUp();
    assert.deepEqual(await limiter.namespaces.recover(deleted[key]), registered);
    assert.deepEqual(await limiter.namespaces.get(fixture.namespace), registered);
    assert.deepEqual(await pictureOf(fixture, limiter), before);
    assert.deepEqual(await pictureOf(fixture, await fixture.limiter()), before);
  },
}));

const again: readonly Case[] = [
  {
    title: 'buckets of a deleted namespace refill and holders expire as usual',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min', 'slots:2/concurrent');
      await limiter.acquire(ask({ rpm: 60, slots: 2 }));
      await limiter.namespaces.delete(fixture.namespace);
      await fixture.clock.advance(30_000);
      await limiter.namespaces.recover(fixture.namespace);
      assert.deepEqual(await limiter.available(USER), { rpm: 30, slots: 0 });
      await fixture.clock.advance(30_000);
      assert.deepEqual(await limiter.available(USER), { rpm: 60, slots: 2 });
    },
  },
  {
    title: 'a name that is registered again gets a new id and no data of the old namespace',
    run: async (fixture) => {
      const [outside, inside] = [await fixture.limiter(OUTSIDE), await fixture.limiter()];
      await createRecords(inside);
      const old = await outside.namespaces.delete(fixture.namespace);
      await fixture.clock.advance(CACHE_LIFE_MS);
      const anew = await outside.namespaces.register(fixture.namespace);
      assert.notEqual(anew.id, old.id);
      assert.deepEqual(anew, { ...old, id: anew.id, status: 'active', createdAt: new Date(fixture.clock.now()) });
      const fresh = await fixture.limited('rpd:10/day', 'slots:3/concurrent');
      assert.deepEqual(await fresh.available(USER), { rpd: 10, slots: 3 });
      assert.equal((await fresh.config.resolve('user-2', USER.resource)).configSource, 'code');
      const { entitiesWithLimits, entities, children, usage, audit, buckets, leases } = await pictureOf(fixture, fresh);
      const all = [entitiesWithLimits, entities, children, usage, audit, buckets, leases];
      assert.deepEqual(
        all,
        all.map(() => []),
      );
      await assertRejects(inside.acquire(ask({ rpd: 1 })), 'namespace.missing');
    },
  },
  {
    title: 'a process that had a namespace open finds the new namespace of the same name within one cache lifetime',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ ...OUTSIDE, limits: limits('rpd:10/day') });
      const old = await limiter.in(fixture.namespace);
      await old.acquire(ask({ rpd: 4 }));
      await limiter.namespaces.delete(fixture.namespace);
      await limiter.namespaces.register(fixture.namespace);
      await fixture.clock.advance(CACHE_LIFE_MS);
      const anew = await limiter.in(fixture.namespace);
      assert.deepEqual(await anew.available(USER), { rpd: 10 });
      await assertRejects(old.available(USER), 'namespace.missing');
    },
  },
  {
    title: 'a process that had a namespace open cannot open it again within one cache lifetime after its deletion',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ ...OUTSIDE, limits: limits('rpd:10/day') });
      await limiter.in(fixture.namespace);
      await limiter.namespaces.delete(fixture.namespace);
      await fixture.clock.advance(CACHE_LIFE_MS);
      await assertRejects(limiter.in(fixture.namespace), 'namespace.missing');
    },
  },
  {
    title: 'a namespace whose name was registered again cannot be recovered until the new namespace is deleted',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setSystem({ limits: limits('rpd:10/day') });
      await limiter.acquire(ask({ rpd: 4 }));
      const { id } = await limiter.namespaces.delete(fixture.namespace);
      await limiter.namespaces.register(fixture.namespace);
      await fixture.catchUp();
      await assertRejects(limiter.namespaces.recover(fixture.namespace), 'namespace.conflict');
      await assertRejects(limiter.namespaces.recover(id), 'namespace.conflict');
      await limiter.namespaces.delete(fixture.namespace);
      await fixture.catchUp();
      // Two deleted namespaces have the name now.
      await assertRejects(limiter.namespaces.recover(fixture.namespace), 'namespace.conflict');
      await limiter.namespaces.recover(id);
      assert.deepEqual(await limiter.available(USER), { rpd: 6 });
    },
  },
  {
    title: 'an active namespace cannot be recovered, by its name or its id',
    run: async (fixture) => {
      const { namespaces } = await fixture.limiter();
      const { id } = (await namespaces.get(fixture.namespace)) ?? assert.fail('not registered');
      for (const key of [fixture.namespace, id]) await assertRejects(namespaces.recover(key), 'namespace.conflict');
    },
  },
  {
    title: 'orphans lists the namespaces that were deleted and not recovered, page by page, each once',
    run: async (fixture) => {
      const { namespaces } = await fixture.limiter();
      const names = await Promise.all(times(4, async () => fixture.register()));
      const deleted = await Promise.all(names.map(async (name) => namespaces.delete(name)));
      const [recovered, ...others] = deleted;
      await namespaces.recover(recovered?.id ?? '');
      await fixture.catchUp();
      const found = (await collect(namespaces.orphans({ limit: 2 }))).filter(({ name }) => names.includes(name));
      const idsOf = (some: typeof found): string[] => some.map(({ id }) => id).toSorted();
      assert.deepEqual(idsOf(found), idsOf(others));
      assert.ok(found.every(({ status }) => status === 'deleted'));
    },
  },
];

export const namespaceDeletion: readonly Case[] = [...closing, ...recoveries, ...again];
