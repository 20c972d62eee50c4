import assert from 'node:assert/strict';
import { ask, assertRejects, times, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { collect } from '../kit/tenant.js';

function ids(leases: readonly { readonly id: string }[]): string[] {
  return leases.map(({ id }) => id);
}

export const leaseLists: readonly Case[] = [
  {
    title: 'a lease without slots is listed if it has a requested lifetime, and shows no amounts',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      await limiter.acquire(ask({ rpd: 1 }));
      const { id } = await limiter.acquire(ask({ rpd: 2 }, { leaseTtlMs: 7_000 }));
      const acquiredAt = new Date(fixture.clock.now());
      const expiresAt = new Date(fixture.clock.now() + 7_000);
      assert.deepEqual((await limiter.leases.list(USER)).items, [{ ...USER, id, amounts: {}, acquiredAt, expiresAt }]);
    },
  },
  {
    title: 'a lease whose expiry gives rates back is listed with the rates as they were last settled',
    run: async (fixture) => {
      const limiter = await fixture.limiter({
        limits: limits('rpd:10/day', 'tpd:99/day', 'slots:3/concurrent'),
        onExpiry: 'refund',
      });
      const lease = await limiter.acquire(ask({ rpd: 1, tpd: 50, slots: 2 }));
      const amounts = async (): Promise<unknown> => (await limiter.leases.list(USER)).items.map((one) => one.amounts);
      assert.deepEqual(await amounts(), [{ rpd: 1, tpd: 50, slots: 2 }]);
      await lease.settle({ tpd: 20 });
      await lease.adjust({ rpd: 3 });
      assert.deepEqual(await amounts(), [{ rpd: 4, tpd: 20, slots: 2 }]);
    },
  },
  {
    title: 'an extension changes the listed expiry, and nothing else',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ limits: limits('slots:3/concurrent'), caller: 'worker-7' });
      const lease = await limiter.acquire(ask({ slots: 2 }));
      const [before] = (await limiter.leases.list(USER)).items;
      await fixture.clock.advance(20_000);
      await lease.extend(30_000);
      const expiresAt = new Date(fixture.clock.now() + 30_000);
      assert.deepEqual((await limiter.leases.list(USER)).items, [{ ...before, expiresAt }]);
      assert.deepEqual(lease.expiresAt, expiresAt);
    },
  },
  {
    title: 'an expired lease is listed until its holder is reclaimed',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:2/concurrent');
      const [late, alive] = [
        await limiter.acquire(ask({ slots: 1 }, { leaseTtlMs: 5_000 })),
        await limiter.acquire(ask({ slots: 1 })),
      ];
      await fixture.clock.advance(9_000);
      assert.deepEqual(ids(await collect(limiter.leases.list(USER))).toSorted(), [late.id, alive.id].toSorted());
      assert.equal((await limiter.buckets.get(USER))?.holders, 1);
      const next = await limiter.acquire(ask({ slots: 1 }));
      assert.deepEqual(ids(await collect(limiter.leases.list(USER))).toSorted(), [alive.id, next.id].toSorted());
    },
  },
  {
    title: 'a lease that ended is not listed at any level',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:9/concurrent');
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      const [a, b, c, d] = await Promise.all(times(4, async () => limiter.acquire(ask({ slots: 1 }))));
      await a?.commit();
      await b?.rollback();
      await c?.release();
      for (const entityId of ['user-1', 'team']) {
        assert.deepEqual(ids(await collect(limiter.leases.list({ ...USER, entityId }))), [d?.id]);
      }
      await d?.[Symbol.asyncDispose]();
      assert.deepEqual((await limiter.leases.list({ ...USER, entityId: 'team' })).items, []);
    },
  },
  {
    title: 'leases with per-call limits are listed under their resource',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:3/concurrent');
      const plain = await limiter.acquire(ask({ slots: 1 }));
      await fixture.clock.advance(1);
      const own = await limiter.acquire(ask({ slots: 2 }, { limits: limits('slots:2/concurrent') }));
      await fixture.catchUp();
      const found = await collect(limiter.leases.list({ ...USER, limit: 1 }));
      assert.deepEqual(
        found.map(({ id, amounts }) => [id, amounts]),
        [
          [plain.id, { slots: 1 }],
          [own.id, { slots: 2 }],
        ],
      );
    },
  },
  {
    title: 'leases of another entity or resource are not listed, and an unused resource has no leases',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:3/concurrent');
      const { id } = await limiter.acquire(ask({ slots: 1 }));
      for (const other of [
        { entityId: 'user-10' },
        { entityId: 'user-1!' },
        { resource: 'gpt-4o' },
        { resource: 'gpt' },
      ]) {
        await limiter.acquire(ask({ slots: 1 }, other));
      }
      await fixture.catchUp();
      assert.deepEqual(ids(await collect(limiter.leases.list(USER))), [id]);
      const none = await limiter.leases.list({ ...USER, entityId: 'missing' });
      assert.deepEqual([none.items, none.next], [[], null]);
    },
  },
  {
    title: 'a list of leases continues after a lease that ended between two pages',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:9/concurrent');
      const taken: Awaited<ReturnType<typeof limiter.acquire>>[] = [];
      for (let count = 0; count < 4; count++) {
        taken.push(await limiter.acquire(ask({ slots: 1 })));
        await fixture.clock.advance(1);
      }
      const { items, next } = await limiter.leases.list({ ...USER, limit: 2 });
      await taken[1]?.commit();
      const rest = await limiter.leases.list({ ...USER, after: next ?? '' });
      assert.deepEqual([...ids(items), ...ids(rest.items)], ids(taken));
    },
  },
  {
    title: 'listing the leases of an illegal name is refused',
    run: async (fixture) => {
      const { leases } = await fixture.limiter();
      await assertRejects(leases.list({ ...USER, entityId: '' }), 'input.invalid');
      await assertRejects(leases.list({ ...USER, resource: 'gpt-4~x' }), 'input.invalid');
      await assertRejects(leases.list({ resource: USER.resource }), 'input.invalid');
    },
  },
];
