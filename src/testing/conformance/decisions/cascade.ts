import assert from 'node:assert/strict';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import {
  ask,
  assertExactWait,
  assertRejects,
  COUNTS_ACQUIRES,
  denial,
  refusers,
  times,
  tokensOf,
  listUsage,
  USER,
} from '../kit/asking.js';
import { type Fixture, type Case, limits } from '../kit/fixture.js';

const PARENT = { entityId: 'team', resource: USER.resource } as const;
const SIBLING = { entityId: 'user-2', resource: USER.resource } as const;

/** Creates `user-1` and `user-2` under `team` with their limits, visible to every limiter that is opened later. */
async function family(fixture: Fixture, child: readonly string[], parent: readonly string[]): Promise<RateLimiter> {
  const limiter = await fixture.limiter();
  if (parent.length > 0) await limiter.config.setEntityDefault('team', { limits: limits(...parent) });
  await limiter.entities.create({ id: 'team' });
  for (const id of ['user-1', 'user-2']) {
    await limiter.config.setEntityDefault(id, { limits: limits(...child) });
    await limiter.entities.create({ id, parentId: 'team', cascade: true });
  }
  return limiter;
}

/** Creates a chain with `level-1` at the bottom. */
async function tower(limiter: RateLimiter, height: number): Promise<void> {
  for (let level = height; level >= 1; level--) {
    const above = level === height ? {} : { parentId: `level-${level + 1}`, cascade: true };
    await limiter.entities.create({ id: `level-${level}`, ...above });
  }
}

const spending: readonly Case[] = [
  {
    title: 'what a child takes is also taken from its parent',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min'], ['rpm:15/min']);
      const decision = await limiter.tryAcquire(ask({ rpm: 4 }));
      assert.deepEqual(
        decision.statuses.map(({ entityId, available }) => [entityId, available]),
        [
          ['user-1', 6],
          ['team', 11],
        ],
      );
      assert.deepEqual(await limiter.available(PARENT), { rpm: 11 });
      assert.deepEqual(await limiter.available(SIBLING), { rpm: 10 });
    },
  },
  {
    title: 'a lease shows what its own entity consumed, not the sum over the levels',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min'], ['rpm:15/min', 'tpm:100/min']);
      const lease = await limiter.acquire(ask({ rpm: 4, tpm: 7 }));
      assert.deepEqual(lease.consumed, { rpm: 4 });
      await lease.adjust({ rpm: 1, tpm: 3 });
      assert.deepEqual(lease.consumed, { rpm: 5 });
      assert.deepEqual(await limiter.available(PARENT), { rpm: 10, tpm: 90 });
    },
  },
  {
    title: 'the available amount is that of the level with the fewest tokens',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min', 'tpm:100/min'], ['rpm:5/min', 'usd:3/min']);
      assert.deepEqual(await limiter.available(USER), { rpm: 5, tpm: 100, usd: 3 });
      const seen = (await limiter.status(USER)).map(({ entityId, limit }) => `${entityId} ${String(limit)}`);
      assert.deepEqual(seen.toSorted(), [
        'team rpm:5/min',
        'team usd:3/min',
        'user-1 rpm:10/min',
        'user-1 tpm:100/min',
      ]);
    },
  },
  {
    title: 'a denial names the parent and the limit that refused, and nothing is taken at any level',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min', 'slots:9/concurrent'], ['rpm:12/min', 'slots:9/concurrent']);
      await limiter.acquire(ask({ rpm: 9 }, SIBLING));
      const denied = await denial(limiter, ask({ rpm: 4, slots: 1 }));
      assert.deepEqual([denied.reason, refusers(denied)], ['exhausted', ['team rpm']]);
      const left = { own: await limiter.status(USER), other: await limiter.available(SIBLING) };
      assert.deepEqual(
        left.own.map(({ entityId, limit, available }) => `${entityId} ${limit.name} ${available}`).toSorted(),
        ['team rpm 3', 'team slots 9', 'user-1 rpm 10', 'user-1 slots 9'],
      );
      assert.deepEqual(left.other, { rpm: 1, slots: 9 });
      assert.deepEqual((await limiter.leases.list(USER)).items, []);
    },
  },
  {
    title: 'a child that refuses takes nothing from its parent',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:3/min'], ['rpm:12/min']);
      await limiter.acquire(ask({ rpm: 3 }));
      assert.deepEqual(refusers(await denial(limiter, ask({ rpm: 1 }))), ['user-1 rpm']);
      assert.deepEqual(await limiter.available(PARENT), { rpm: 9 });
    },
  },
  {
    title: 'an ask beyond the capacity of a parent is impossible',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min'], ['rpm:5/min']);
      const denied = await denial(limiter, ask({ rpm: 6 }));
      assert.deepEqual([denied.reason, denied.retryAfterMs, refusers(denied)], ['impossible', null, ['team rpm']]);
      assert.deepEqual(await limiter.available(USER), { rpm: 5 });
    },
  },
  {
    title: 'the announced wait is exactly that of the slowest level',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:60/min'], ['rpm:30/min:60']);
      await limiter.acquire(ask({ rpm: 60 }));
      await assertExactWait(fixture, limiter, ask({ rpm: 3 }), 6_000);
    },
  },
  {
    title: 'corrections and a rollback apply to every level',
    run: async (fixture) => {
      const limiter = await family(fixture, ['tpm:100/min'], ['tpm:500/min', 'slots:3/concurrent']);
      const lease = await limiter.acquire(ask({ tpm: 10, slots: 2 }));
      await lease.settle({ tpm: 150 });
      assert.deepEqual(await limiter.available(PARENT), { tpm: 350, slots: 1 });
      assert.deepEqual(await limiter.available(USER), { tpm: -50, slots: 1 });
      await lease.rollback();
      assert.deepEqual(await limiter.available(PARENT), { tpm: 500, slots: 3 });
      assert.deepEqual(await limiter.available(USER), { tpm: 100, slots: 3 });
    },
  },
  {
    title: 'slots are held and given back at every level',
    run: async (fixture) => {
      const limiter = await family(fixture, ['slots:2/concurrent'], ['slots:3/concurrent']);
      const first = await limiter.acquire(ask({ slots: 2 }));
      assert.equal((await limiter.leases.list(PARENT)).items[0]?.id, first.id);
      assert.deepEqual(refusers(await denial(limiter, ask({ slots: 2 }, SIBLING))), ['team slots']);
      await fixture.clock.advance(60_000);
      await limiter.acquire(ask({ slots: 2 }, SIBLING));
      await first.release();
      assert.deepEqual([await limiter.available(PARENT), await limiter.available(USER)], [{ slots: 1 }, { slots: 1 }]);
    },
  },
  {
    title: 'onExpiry refund gives tokens back at every level',
    run: async (fixture) => {
      await family(fixture, ['rpd:10/day'], ['rpd:20/day']);
      const limiter = await fixture.limiter({ onExpiry: 'refund' });
      await limiter.acquire(ask({ rpd: 8 }, { leaseTtlMs: 5_000 }));
      await fixture.clock.advance(5_000);
      assert.deepEqual([await limiter.available(PARENT), await limiter.available(USER)], [{ rpd: 20 }, { rpd: 10 }]);
    },
  },
  {
    title: 'usage counts at every level, and an ask that the parent refuses counts at none',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min'], ['rpm:12/min']);
      await limiter.acquire(ask({ rpm: 4 }));
      await limiter.acquire(ask({ rpm: 7 }, SIBLING));
      await denial(limiter, ask({ rpm: 3 }));
      const [own, above] = [await listUsage(fixture, limiter), await listUsage(fixture, limiter, PARENT)];
      assert.deepEqual([tokensOf(own), tokensOf(above)], [[{ rpm: 4 }], [{ rpm: 11 }]]);
      assert.deepEqual([own[0]?.acquires, above[0]?.acquires], [1, 2]);
    },
  },
];

const chains: readonly Case[] = [
  {
    title: 'a parent does not count the spending of a child that does not cascade',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', parentId: 'team' });
      await limiter.acquire(ask({ rpm: 4 }));
      assert.deepEqual(await limiter.available(PARENT), { rpm: 10 });
    },
  },
  {
    title: 'a parent without limits is skipped',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min'], []);
      const { statuses } = await limiter.tryAcquire(ask({ rpm: 4 }));
      assert.deepEqual(
        statuses.map(({ entityId }) => entityId),
        ['user-1'],
      );
      await assertRejects(limiter.status(PARENT), 'limits.missing');
    },
  },
  {
    title: 'an ask of an entity without limits is refused, although its parent has some',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min'], ['rpm:10/min']);
      await limiter.config.delete({ entityId: 'user-1' });
      await assertRejects(limiter.acquire(ask({ rpm: 1 })), 'limits.missing');
    },
  },
  {
    title: 'a level that does not have a limit is not asked for it',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min', 'tpm:100/min'], ['tpm:150/min', 'usd:5/min']);
      await limiter.acquire(ask({ rpm: 2, tpm: 60, usd: 1 }));
      assert.deepEqual(await limiter.available(PARENT), { tpm: 90, usd: 4 });
      assert.deepEqual(refusers(await denial(limiter, ask({ tpm: 95 }, SIBLING))), ['team tpm']);
      await assertRejects(limiter.acquire(ask({ eur: 1 })), 'input.invalid');
    },
  },
  {
    title: 'each level takes its own default cost for a limit that the ask does not name',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min@1', 'tpm:100/min'], ['rpm:50/min@3', 'usd:9/min@2']);
      await limiter.acquire(ask({ tpm: 5 }));
      assert.deepEqual(await limiter.available(PARENT), { rpm: 47, usd: 7 });
      await limiter.acquire(ask({ rpm: 2 }));
      assert.deepEqual(await limiter.available(PARENT), { rpm: 45, usd: 5 });
      assert.deepEqual(await limiter.available(USER), { rpm: 7, tpm: 95, usd: 5 });
    },
  },
  {
    title: 'the default cost of an entity is also taken from a parent that has no default cost',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min@2', 'tpm:100/min'], ['rpm:50/min']);
      await limiter.acquire(ask({ tpm: 5 }));
      assert.deepEqual(await limiter.available(PARENT), { rpm: 48 });
    },
  },
  {
    title: 'spending cascades over eight levels, and the top level can refuse',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await tower(limiter, 8);
      await limiter.acquire(ask({ rpm: 4 }, { entityId: 'level-1' }));
      assert.equal((await limiter.status({ ...USER, entityId: 'level-1' })).length, 8);
      await limiter.acquire(ask({ rpm: 6 }, { entityId: 'level-8' }));
      assert.deepEqual(refusers(await denial(limiter, ask({ rpm: 1 }, { entityId: 'level-1' }))), ['level-8 rpm']);
      assert.deepEqual(await limiter.available({ ...USER, entityId: 'level-7' }), { rpm: 0 });
      const own = (await limiter.status({ ...USER, entityId: 'level-7' })).map(({ available }) => available);
      assert.deepEqual(own, [6, 0]);
    },
  },
  {
    title: 'a ninth level, a parent that does not exist and a cycle of parents are refused',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await tower(limiter, 8);
      await assertRejects(limiter.entities.create({ id: 'level-0', parentId: 'level-1' }), 'input.invalid');
      await assertRejects(limiter.entities.create({ id: 'orphan', parentId: 'missing' }), 'input.invalid');
      await assertRejects(limiter.entities.create({ id: 'snake', parentId: 'snake' }), 'input.invalid');
      assert.deepEqual(await Promise.all(['level-0', 'orphan', 'snake'].map(async (id) => limiter.entities.get(id))), [
        null,
        null,
        null,
      ]);
    },
  },
  {
    title: 'a level in the middle that does not cascade ends the chain',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.entities.create({ id: 'company' });
      await limiter.entities.create({ id: 'team', parentId: 'company', cascade: false });
      await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await limiter.acquire(ask({ rpm: 4 }));
      assert.deepEqual(await limiter.available(PARENT), { rpm: 6 });
      assert.deepEqual(await limiter.available({ ...USER, entityId: 'company' }), { rpm: 10 });
    },
  },
  {
    title: 'an entity whose record is created after its first acquire cascades after the cache lifetime',
    run: async (fixture) => {
      const [limiter, other] = [await fixture.limited('rpm:10/day'), await fixture.limited('rpm:10/day')];
      await limiter.acquire(ask({ rpm: 1 }));
      await other.entities.create({ id: 'team' });
      await other.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await other.acquire(ask({ rpm: 2 }));
      assert.deepEqual(await other.available(PARENT), { rpm: 8 });
      await fixture.clock.advance(60_000);
      await limiter.acquire(ask({ rpm: 3 }));
      assert.deepEqual(await other.available(PARENT), { rpm: 5 });
    },
  },
  {
    title: 'siblings that ask concurrently share the tokens of their parent',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:60/min'], ['rpm:100/min']);
      const asks = times(120, async (at) => limiter.tryAcquire(ask({ rpm: 1 }, at % 2 === 0 ? USER : SIBLING)));
      const granted = (await Promise.all(asks)).filter((decision) => decision.granted).length;
      assert.equal(granted, 100);
      const left = await Promise.all([USER, SIBLING].map(async (who) => limiter.status(who)));
      const own = left.flatMap((statuses) => statuses.filter(({ entityId }) => entityId !== 'team'));
      assert.equal(
        own.reduce((sum, { available }) => sum + available, 0),
        20,
      );
    },
  },
  {
    title: 'an atomic acquire takes from all levels or from none',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpm:10/min'], ['rpm:12/min']);
      await limiter.acquire(ask({ rpm: 8 }, { atomic: true }));
      assert.deepEqual(refusers(await denial(limiter, ask({ rpm: 5 }, { ...SIBLING, atomic: true }))), ['team rpm']);
      assert.deepEqual([await limiter.available(PARENT), await limiter.available(USER)], [{ rpm: 4 }, { rpm: 2 }]);
    },
  },
];

export const cascade: readonly Case[] = [...spending, ...chains];
