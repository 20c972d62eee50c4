import assert from 'node:assert/strict';
import { ask, assertRejects, denial, times, tokensOf, listUsage, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';

const registry: readonly Case[] = [
  {
    title:
      'a registered namespace has an id of 11 characters, its name and its creation time, and is found by its name',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const name = await fixture.register();
      const found = await limiter.namespaces.get(name);
      assert.match(found?.id ?? '', /^[A-Za-z0-9_-]{11}$/);
      assert.deepEqual([found?.name, found?.status, found?.createdAt], [name, 'active', new Date(fixture.clock.now())]);
    },
  },
  {
    title: 'registering a name again, also concurrently, returns the namespace that has the name',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const name = `${await fixture.register()}-again`;
      const given = await Promise.all(times(5, async () => limiter.namespaces.register(name)));
      await fixture.clock.advance(1_000);
      given.push(await limiter.namespaces.register(name));
      assert.deepEqual(
        given,
        times(6, () => given[0]),
      );
    },
  },
  {
    title: 'an unknown namespace is not found, cannot be opened and is not created',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const name = `${await fixture.register()}-unknown`;
      await assertRejects(limiter.in(name), 'namespace.missing');
      await assertRejects(fixture.limiter({ namespace: name }), 'namespace.missing');
      assert.equal(await limiter.namespaces.get(name), null);
    },
  },
  {
    title: 'all namespaces are listed, page by page, each once',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const names = [fixture.namespace, await fixture.register(), await fixture.register()];
      await fixture.catchUp();
      const listed: string[] = [];
      for await (const { name } of limiter.namespaces.list({ limit: 2 })) if (names.includes(name)) listed.push(name);
      assert.deepEqual(listed.toSorted(), names.toSorted());
    },
  },
  {
    title: 'an illegal namespace name is refused',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (const name of ['', '_', '-a', 'a/b', 'a b', 'a#b', 'a'.repeat(65)]) {
        await assertRejects(limiter.namespaces.register(name), 'input.invalid');
      }
    },
  },
];

const apart: readonly Case[] = [
  {
    title: 'two namespaces share no balance',
    run: async (fixture) => {
      const here = await fixture.limited('rpm:10/min');
      const there = await here.in(await fixture.register());
      await here.acquire(ask({ rpm: 7 }));
      assert.deepEqual([await here.available(USER), await there.available(USER)], [{ rpm: 3 }, { rpm: 10 }]);
      await there.acquire(ask({ rpm: 10 }));
      await here.acquire(ask({ rpm: 3 }));
    },
  },
  {
    title: 'two namespaces share no config, at any level',
    run: async (fixture) => {
      const here = await fixture.limiter();
      const there = await here.in(await fixture.register());
      await here.config.setSystem({ limits: limits('rpm:1/min') });
      await here.config.setEntity(USER.entityId, USER.resource, { limits: limits('rpm:2/min') });
      await there.config.setSystem({ limits: limits('rpm:9/min'), onUnavailable: 'allow' });
      await fixture.catchUp();
      assert.deepEqual((await there.config.resolve(USER.entityId, USER.resource)).configSource, 'system');
      assert.deepEqual((await there.config.list(USER)).items, []);
      assert.equal((await here.config.resolve(USER.entityId, USER.resource)).onUnavailable, 'block');
      await there.acquire(ask({ rpm: 9 }));
    },
  },
  {
    title: 'two namespaces share no entities, and spending does not cascade between them',
    run: async (fixture) => {
      const here = await fixture.limited('rpm:10/min');
      const there = await here.in(await fixture.register());
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await there.entities.create({ id: 'team', name: 'another team' });
      await there.acquire(ask({ rpm: 4 }));
      assert.deepEqual(await there.available({ ...USER, entityId: 'team' }), { rpm: 10 });
      assert.deepEqual([await there.entities.get('user-1'), (await here.entities.get('team'))?.name], [null, null]);
    },
  },
  {
    title: 'two namespaces share no leases and no slots',
    run: async (fixture) => {
      const here = await fixture.limited('slots:1/concurrent');
      const there = await here.in(await fixture.register());
      await here.acquire(ask({ slots: 1 }));
      assert.deepEqual((await there.leases.list(USER)).items, []);
      const lease = await there.acquire(ask({ slots: 1 }));
      await lease.commit();
      await denial(here, ask({ slots: 1 }));
    },
  },
  {
    title: 'two namespaces share no usage',
    run: async (fixture) => {
      const here = await fixture.limited('rpm:10/min');
      const there = await here.in(await fixture.register());
      await here.acquire(ask({ rpm: 7 }));
      await there.acquire(ask({ rpm: 2 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, here)), [{ rpm: 7 }]);
      assert.deepEqual(tokensOf(await listUsage(fixture, there)), [{ rpm: 2 }]);
    },
  },
  {
    title: 'limiter.in and RateLimiter.open of the same name use the same namespace',
    run: async (fixture) => {
      const [opened, elsewhere] = [
        await fixture.limited('rpm:10/min'),
        await fixture.limiter({ namespace: 'default', limits: limits('rpm:10/min') }),
      ];
      const entered = await elsewhere.in(fixture.namespace);
      await opened.acquire(ask({ rpm: 4 }));
      assert.deepEqual(await entered.available(USER), { rpm: 6 });
      assert.equal((await entered.ping()).ok, true);
    },
  },
];

export const namespaces: readonly Case[] = [...registry, ...apart];
