import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import { ask, assertRejects, denial, refusers, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';

export const bypass: readonly Case[] = [
  {
    title: 'the limits of an entity with a bypass refuse nothing, and those of others do',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:2/day', 'slots:1/concurrent');
      await limiter.entities.create({ id: USER.entityId, bypass: true });
      for (let step = 0; step < 4; step++) await limiter.acquire(ask({ rpd: 1, slots: 1 }));
      const decision = await limiter.tryAcquire(ask({ rpd: 1 }));
      assert.deepEqual(
        decision.statuses.map(({ exceeded, shadow }) => [exceeded, shadow]),
        [[true, true]],
      );
      assert.deepEqual(await limiter.available(USER), { rpd: 0, slots: 0 });
      assert.deepEqual(
        (await limiter.status(USER)).map(({ available, shadow }) => [available, shadow]),
        [
          [0, true],
          [0, true],
        ],
      );
      await limiter.acquire(ask({ rpd: 2 }, { entityId: 'user-2' }));
      await denial(limiter, ask({ rpd: 1 }, { entityId: 'user-2' }));
    },
  },
  {
    title: 'a bypass that is switched on and off takes effect with the next ask, and the record shows it',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:2/day');
      await limiter.entities.create({ id: USER.entityId });
      await limiter.acquire(ask({ rpd: 2 }));
      await denial(limiter, ask({ rpd: 1 }));
      assert.equal((await limiter.entities.update(USER.entityId, { bypass: true })).bypass, true);
      await limiter.acquire(ask({ rpd: 1 }));
      const renamed = await limiter.entities.update(USER.entityId, { name: 'Ann' });
      assert.deepEqual([renamed.bypass, renamed.version], [true, 3]);
      const off = await limiter.entities.update(USER.entityId, { bypass: false });
      assert.equal('bypass' in off, false);
      assert.deepEqual(await limiter.entities.get(USER.entityId), off);
      await denial(limiter, ask({ rpd: 1 }));
    },
  },
  {
    title: 'a bypass covers the own level of its entity only: the limits of a parent refuse',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:2/day');
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true, bypass: true });
      await limiter.config.setEntityDefault(USER.entityId, { limits: limits('rpd:1/day') });
      await limiter.acquire(ask({ rpd: 1 }));
      await limiter.acquire(ask({ rpd: 1 }));
      assert.deepEqual(refusers(await denial(limiter, ask({ rpd: 1 }))), ['team rpd']);
      await limiter.entities.update('team', { bypass: true });
      await limiter.acquire(ask({ rpd: 1 }));
    },
  },
  {
    title: 'a bypass covers per-call limits too',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:2/day');
      await limiter.entities.create({ id: USER.entityId, bypass: true });
      const own = [Limit.perDay('tpd', 1)];
      for (let step = 0; step < 2; step++) await limiter.acquire(ask({ tpd: 1 }, { limits: own }));
    },
  },
  {
    title: 'a bypass that is neither true nor false is refused',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await assertRejects(limiter.entities.create({ id: 'a', bypass: 'yes' as never }), 'input.invalid');
      assert.equal(await limiter.entities.get('a'), null);
    },
  },
  {
    title: 'a limits file sets a bypass, exports it, and gives it back',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const { namespace } = fixture;
      const file = { namespace, entities: { 'user-1': { bypass: true } } };
      await limiter.manifest.apply(file);
      assert.equal((await limiter.entities.get('user-1'))?.bypass, true);
      await fixture.catchUp();
      assert.deepEqual((await limiter.manifest.export()).entities, { 'user-1': { bypass: true } });
      await limiter.manifest.apply({ namespace, entities: { 'user-1': { bypass: false } } });
      const record = await limiter.entities.get('user-1');
      assert.equal(record !== null && 'bypass' in record, false);
    },
  },
];
