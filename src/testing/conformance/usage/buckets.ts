import assert from 'node:assert/strict';
import type { BucketView } from '../../../limiter/api/buckets-api.js';
import { ask, assertRejects, denial, times, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { collect } from '../kit/tenant.js';

const TEAM = { entityId: 'team', resource: USER.resource } as const;

/** `limit available consumed`, in alphabetical order. */
export function balancesOf(bucket: BucketView | null): string[] {
  const { limits: told } = bucket ?? assert.fail('no bucket');
  return told.map(({ limit, available, consumed }) => `${limit.name} ${available} ${consumed}`).toSorted();
}

export const buckets: readonly Case[] = [
  {
    title: 'the first grant creates a bucket; a read or a denial does not',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      assert.equal(await limiter.buckets.get(USER), null);
      await limiter.status(USER);
      await denial(limiter, ask({ rpm: 11 }));
      await fixture.catchUp();
      assert.equal(await limiter.buckets.get(USER), null);
      assert.deepEqual((await limiter.buckets.list({ entityId: USER.entityId })).items, []);
      assert.deepEqual((await limiter.buckets.list({ resource: USER.resource })).items, []);
    },
  },
  {
    title: 'a bucket shows its limits, balances, net consumption, holders, acquires and expiries',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setSystem({ limits: limits('rpd:10/day', 'tpd:100/day:200', 'slots:3/concurrent') });
      await limiter.acquire(ask({ rpd: 1, tpd: 10, slots: 1 }));
      await (await limiter.acquire(ask({ rpd: 1, tpd: 20 }))).settle({ tpd: 50 });
      await (await limiter.acquire(ask({ rpd: 1, tpd: 30, slots: 2 }))).rollback();
      const bucket = (await limiter.buckets.get(USER)) ?? assert.fail('no bucket');
      const { limits: told, ...rest } = bucket;
      assert.deepEqual(rest, { ...USER, holders: 1, acquires: 3, expired: 0 });
      const rules = told.map(({ limit }) => String(limit)).toSorted();
      assert.deepEqual(rules, ['rpd:10/day', 'slots:3/concurrent', 'tpd:100/day:200']);
      assert.deepEqual(balancesOf(bucket), ['rpd 8 2', 'slots 2 1', 'tpd 140 60']);
    },
  },
  {
    title: 'a bucket shows the same balances as a status: refilled, in debt, and with expired leases reclaimed',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ limits: limits('rpm:60/min', 'tpm:100/min', 'slots:3/concurrent') });
      await (await limiter.acquire(ask({ rpm: 60, tpm: 40 }))).settle({ tpm: 350 });
      await limiter.acquire(ask({ slots: 2 }, { leaseTtlMs: 5_000 }));
      for (const ms of [0, 999, 1, 4_000, 60_000]) {
        await fixture.clock.advance(ms);
        const [bucket, statuses] = [await limiter.buckets.get(USER), await limiter.status(USER)];
        assert.deepEqual(
          bucket?.limits.map(({ limit, available }) => `${limit.name} ${available}`).toSorted(),
          statuses.map(({ limit, available }) => `${limit.name} ${available}`).toSorted(),
        );
      }
    },
  },
  {
    title: 'the buckets of an entity are listed page by page, each once, those of per-call limits by their hash',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      for (const resource of ['gpt-4', 'a/b:c', 'gpt-4o', 'Z']) await limiter.acquire(ask({ rpd: 1 }, { resource }));
      await limiter.acquire(ask({ rpd: 2 }, { limits: limits('rpd:5/day') }));
      await limiter.acquire(ask({ rpd: 3 }, { entityId: 'user-10' }));
      await fixture.catchUp();
      for (const limit of [1, 2, 100]) {
        const found = await collect(limiter.buckets.list({ entityId: USER.entityId, limit }));
        const own = found.filter(({ resource }) => resource.includes('~'));
        const plain = found.filter(({ resource }) => !resource.includes('~')).map(({ resource }) => resource);
        assert.deepEqual(plain.toSorted(), ['Z', 'a/b:c', 'gpt-4', 'gpt-4o']);
        assert.equal(own.length, 1);
        assert.match(own[0]?.resource ?? '', /^gpt-4~[0-9A-Za-z_~]{8}$/);
        assert.deepEqual(balancesOf(own[0] ?? null), ['rpd 3 2']);
        assert.ok(found.every(({ entityId }) => entityId === USER.entityId));
      }
    },
  },
  {
    title:
      'the buckets of a resource over all entities are listed page by page, each once, including those of per-call limits',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      const ids = times(5, (at) => `user-${at}`);
      for (const entityId of ids) await limiter.acquire(ask({ rpd: 1 }, { entityId }));
      await limiter.acquire(ask({ rpd: 2 }, { entityId: 'user-3', limits: limits('rpd:5/day') }));
      await limiter.acquire(ask({ rpd: 3 }, { entityId: 'user-3', resource: 'gpt-4o' }));
      await fixture.catchUp();
      for (const limit of [1, 2, 4, 100]) {
        const found = await collect(limiter.buckets.list({ resource: USER.resource, limit }));
        assert.deepEqual(found.map(({ entityId }) => entityId).toSorted(), [...ids, 'user-3'].toSorted());
        assert.equal(found.filter(({ resource }) => resource.startsWith('gpt-4~')).length, 1);
        assert.equal(new Set(found.map(({ entityId, resource }) => `${entityId} ${resource}`)).size, 6);
      }
      const { items, next } = await limiter.buckets.list({ resource: USER.resource, limit: 4 });
      const rest = await limiter.buckets.list({ resource: USER.resource, limit: 4, after: next ?? '' });
      assert.deepEqual([items.length, rest.items.length, rest.next], [4, 2, null]);
    },
  },
  {
    title: 'a list of buckets shows each bucket as a read does',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day', 'slots:3/concurrent');
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await limiter.acquire(ask({ rpd: 4, slots: 2 }));
      await fixture.clock.advance(59_999);
      await fixture.catchUp();
      const read = [await limiter.buckets.get(TEAM), await limiter.buckets.get(USER)];
      assert.deepEqual(await collect(limiter.buckets.list({ resource: USER.resource })), read);
      assert.deepEqual(await collect(limiter.buckets.list({ entityId: USER.entityId })), read.slice(1));
      assert.deepEqual(read[0]?.holders, 1);
    },
  },
  {
    title: 'a bucket of per-call limits is read and reset by the name under which it is listed',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      await limiter.acquire({ ...ask({ rpd: 3 }), limits: limits('rpd:5/day') });
      await fixture.catchUp();
      const { items } = await limiter.buckets.list({ entityId: USER.entityId });
      const key = { entityId: USER.entityId, resource: items[0]?.resource ?? '' };
      assert.deepEqual(
        (await limiter.buckets.get(key))?.limits.map(({ available }) => available),
        [2],
      );
      assert.equal(await limiter.buckets.reset(key), true);
      assert.deepEqual(
        (await limiter.buckets.get(key))?.limits.map(({ available }) => available),
        [5],
      );
    },
  },
  {
    title: 'reading, listing and resetting buckets of an illegal name is refused',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      for (const bad of [{ ...USER, entityId: '$x' }, { ...USER, resource: 'gpt-4~x' }, { entityId: 'user-1' }, null]) {
        await assertRejects(limiter.buckets.get(bad as never), 'input.invalid');
        await assertRejects(limiter.buckets.reset(bad as never), 'input.invalid');
      }
      for (const bad of [{}, { entityId: '' }, { resource: '_x' }]) {
        await assertRejects(limiter.buckets.list(bad as never), 'input.invalid');
      }
    },
  },
];
