import assert from 'node:assert/strict';
import { ask, assertRejects, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { collect, createRecords, CREATED_RECORDS, pictureOf } from '../kit/tenant.js';

export const namespacePurge: readonly Case[] = [
  {
    title: 'an active namespace cannot be purged, by its name or its id, and loses nothing',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await createRecords(limiter);
      const before = await pictureOf(fixture, limiter);
      const { id } = (await limiter.namespaces.get(fixture.namespace)) ?? assert.fail('not registered');
      for (const key of [fixture.namespace, id]) {
        await assertRejects(limiter.namespaces.purge(key), 'namespace.conflict');
      }
      assert.deepEqual(await pictureOf(fixture, limiter), before);
    },
  },
  {
    title: 'purging removes all data of a namespace, which cannot be recovered, and keeps its id',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await createRecords(limiter);
      const deleted = await limiter.namespaces.delete(fixture.namespace);
      await fixture.catchUp();
      const { removed } = await limiter.namespaces.purge(deleted.id);
      assert.ok(removed >= CREATED_RECORDS, `${removed}`);
      await fixture.catchUp();
      await assertRejects(limiter.namespaces.recover(deleted.id), 'namespace.conflict');
      await assertRejects(limiter.namespaces.recover(fixture.namespace), 'namespace.missing');
      await assertRejects(limiter.status(USER), 'namespace.missing');
      const tombs = (await collect(limiter.namespaces.orphans())).filter(({ name }) => name === fixture.namespace);
      assert.deepEqual(tombs, [{ ...deleted, status: 'purging' }]);
      assert.deepEqual(await limiter.namespaces.purge(deleted.id), { removed: 0 });
    },
  },
  {
    title: 'a namespace that was never used can be purged by its name',
    run: async (fixture) => {
      const { namespaces } = await fixture.limiter();
      const name = await fixture.register();
      await namespaces.delete(name);
      await fixture.catchUp();
      assert.deepEqual(await namespaces.purge(name), { removed: 0 });
      await fixture.catchUp();
      await assertRejects(namespaces.recover(name), 'namespace.missing');
    },
  },
  {
    title: 'purging a namespace does not change another one with the same entities and resources',
    run: async (fixture) => {
      const here = await fixture.limiter();
      const name = await fixture.register();
      const [gone, kept] = [await here.in(name), await here.in(await fixture.register())];
      await Promise.all([here, gone, kept].map(createRecords));
      const before = await pictureOf(fixture, kept);
      await here.namespaces.delete(name);
      await fixture.catchUp();
      await here.namespaces.purge(name);
      assert.deepEqual(await pictureOf(fixture, kept), before);
      await kept.acquire(ask({ rpd: 6 }));
    },
  },
  {
    title: 'purging by name does not change the active namespace of that name',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ namespace: 'default' });
      await createRecords(await fixture.limiter());
      const old = await limiter.namespaces.delete(fixture.namespace);
      await fixture.clock.advance(60_000);
      await limiter.namespaces.register(fixture.namespace);
      const anew = await fixture.limiter();
      await createRecords(anew);
      const before = await pictureOf(fixture, anew);
      assert.ok((await limiter.namespaces.purge(fixture.namespace)).removed > 0);
      assert.deepEqual(await pictureOf(fixture, anew), before);
      await fixture.catchUp();
      await assertRejects(limiter.namespaces.recover(old.id), 'namespace.conflict');
    },
  },
  {
    title: 'a name that was deleted more than once requires an id',
    run: async (fixture) => {
      const { namespaces } = await fixture.limiter();
      const name = await fixture.register();
      const first = await namespaces.delete(name);
      await namespaces.register(name);
      const second = await namespaces.delete(name);
      await fixture.catchUp();
      await assertRejects(namespaces.purge(name), 'namespace.conflict');
      await namespaces.purge(first.id);
      await fixture.catchUp();
      assert.deepEqual(await namespaces.recover(name), { ...second, status: 'active' });
    },
  },
  {
    title: 'the name of a purged namespace can be registered again, with a new id',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ namespace: 'default' });
      const seen = new Set<string>();
      for (let round = 0; round < 3; round++) {
        const { id } = await limiter.namespaces.register(fixture.namespace);
        seen.add(id);
        await (await fixture.limiter()).config.setSystem({ limits: limits('rpd:1/day') });
        await limiter.namespaces.delete(fixture.namespace);
        await fixture.catchUp();
        await limiter.namespaces.purge(id);
      }
      assert.equal(seen.size, 3);
      await limiter.namespaces.register(fixture.namespace);
      const fresh = await fixture.limiter();
      assert.equal(await fresh.config.get('system'), null);
      await assertRejects(fresh.acquire(ask({ rpd: 1 })), 'limits.missing');
    },
  },
  {
    title: 'either a recovery or a concurrent purge succeeds, and a recovered namespace has all its data',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await createRecords(limiter);
      const before = await pictureOf(fixture, limiter);
      const { id } = await limiter.namespaces.delete(fixture.namespace);
      await fixture.catchUp();
      const [recovered, purged] = await Promise.allSettled([
        limiter.namespaces.recover(id),
        limiter.namespaces.purge(id),
      ]);
      if (recovered.status === 'fulfilled') {
        assert.equal(purged.status, 'rejected');
        assert.deepEqual(await pictureOf(fixture, limiter), before);
      } else {
        assert.equal(purged.status, 'fulfilled');
        await assertRejects(Promise.reject(recovered.reason), 'namespace.conflict');
      }
    },
  },
];
