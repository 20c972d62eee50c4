import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertRejects, COUNTS_ACQUIRES, denial, refusers, tokensOf, listUsage, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { balancesOf } from '../usage/buckets.js';
import { STORED_LEVELS } from '../config/config-levels.js';

const HUGE = 1e12;
const TEAM = { entityId: 'team', resource: USER.resource } as const;

/** Sets the limits of the system, a second later: versions of one instant have no order between processes. */
async function change(
  fixture: { readonly clock: { advance(ms: number): Promise<void> } },
  limiter: RateLimiter,
  rules: string[],
) {
  await fixture.clock.advance(1_000);
  await limiter.config.setSystem({ limits: limits(...rules) });
}

const asking: readonly Case[] = [
  {
    title: 'an unlimited limit never refuses, however much is asked, and counts it',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:unlimited');
      for (let taken = 1; taken <= 3; taken++) {
        const lease = await limiter.acquire(ask({ tpm: HUGE }));
        assert.deepEqual(lease.consumed, { tpm: HUGE });
      }
      await limiter.acquire(ask({ tpm: 0 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpm: 3 * HUGE }]);
    },
  },
  {
    title: 'an unlimited limit leaves the answers of the others as they are, and a denial counts nothing of it',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min:2', 'tpm:unlimited');
      for (let taken = 0; taken < 2; taken++) await limiter.acquire(ask({ rpm: 1, tpm: 500 }));
      const denied = await denial(limiter, ask({ rpm: 1, tpm: 500 }));
      assert.deepEqual([refusers(denied), denied.retryAfterMs], [['user-1 rpm'], 1_000]);
      assert.equal((await denial(limiter, ask({ rpm: 3, tpm: 500 }))).reason, 'impossible');
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpm: 2, tpm: 1_000 }]);
    },
  },
  {
    title: 'an unlimited limit is taken without a wait, also by a caller that would wait',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:unlimited');
      await limiter.acquire(ask({ tpm: HUGE }, { wait: { timeoutMs: 5_000 } }));
      assert.equal(await limiter.timeUntilAvailable(ask({ tpm: HUGE })), 0);
    },
  },
  {
    title: 'an unlimited limit takes its default cost, and a name that no limit has stays an error',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:9/day', 'tpm:unlimited@7');
      const lease = await limiter.acquire(ask({ rpd: 1 }));
      assert.deepEqual(lease.consumed, { rpd: 1, tpm: 7 });
      await assertRejects(limiter.acquire(ask({ tpn: 1 })), 'input.invalid');
    },
  },
  {
    title: 'an unlimited limit given with a call counts in the usage of the resource',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:5/min');
      const own = [Limit.unlimited('tpm')];
      for (let taken = 0; taken < 2; taken++) await limiter.acquire(ask({ tpm: 500 }, { limits: own }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpm: 1_000 }]);
      assert.deepEqual(await limiter.available(USER), { tpm: 5 });
    },
  },
  {
    title: 'all levels of a transaction count an unlimited limit',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:5/day', 'tpm:unlimited');
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      for (let taken = 0; taken < 2; taken++) await limiter.acquire(ask({ rpd: 1, tpm: 40 }, { atomic: true }));
      for (const { entityId } of [USER, TEAM]) {
        assert.deepEqual(tokensOf(await listUsage(fixture, limiter, { entityId })), [{ rpd: 2, tpm: 80 }]);
      }
    },
  },
];

const looking: readonly Case[] = [
  {
    title: 'statuses leave an unlimited limit out, and available tells Infinity for it',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:9/day', 'tpm:unlimited');
      const decision = await limiter.tryAcquire(ask({ rpd: 1, tpm: 500 }));
      const told = [decision.statuses, await limiter.status(USER), await limiter.peek(ask({ rpd: 1, tpm: 5 }))];
      for (const statuses of told) {
        assert.deepEqual(
          statuses.map(({ limit }) => limit.name),
          ['rpd'],
        );
      }
      assert.deepEqual(await limiter.available(USER), { rpd: 8, tpm: Infinity });
    },
  },
  {
    title: 'available tells the tightest level where another one is unlimited',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setEntityDefault('team', { limits: limits('tpd:100/day') });
      await limiter.config.setEntityDefault('user-1', { limits: limits('tpd:unlimited') });
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await limiter.acquire(ask({ tpd: 40 }));
      assert.deepEqual(await limiter.available(USER), { tpd: 60 });
      assert.deepEqual(refusers(await denial(limiter, ask({ tpd: 61 }))), ['team tpd']);
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpd: 40 }]);
    },
  },
  {
    title: 'a bucket shows what was consumed of an unlimited limit, and the capacity of a resource leaves it out',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:9/day', 'tpm:unlimited');
      await limiter.acquire(ask({ rpd: 2, tpm: 500 }));
      assert.deepEqual(balancesOf(await limiter.buckets.get(USER)), ['rpd 7 2', 'tpm Infinity 500']);
      // The capacity of a resource is read from an index, which may lag.
      await fixture.catchUp();
      assert.deepEqual(await limiter.resources.capacity(USER.resource), {
        rpd: { capacity: 9, available: 7, entities: 1 },
      });
    },
  },
  {
    title: 'a reset leaves an unlimited limit and its counter as they are',
    alone: COUNTS_ACQUIRES,
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:9/day', 'tpm:unlimited');
      await limiter.acquire(ask({ rpd: 2, tpm: 500 }));
      assert.equal(await limiter.buckets.reset(USER), true);
      assert.deepEqual(balancesOf(await limiter.buckets.get(USER)), ['rpd 9 2', 'tpm Infinity 500']);
      await limiter.acquire(ask({ rpd: 9, tpm: 1 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpd: 11, tpm: 501 }]);
    },
  },
];

const correcting: readonly Case[] = [
  {
    title: 'settle, adjust, commit and rollback change what an unlimited limit counts, and nothing else',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:unlimited');
      const take = async () => limiter.acquire(ask({ tpm: 100 }));
      await (await take()).settle({ tpm: 1_500 });
      await (await take()).adjust({ tpm: -30 });
      await (await take()).commit({ tpm: 7 });
      await (await take()).rollback();
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpm: 1_577 }]);
      assert.deepEqual(await limiter.available(USER), { tpm: Infinity });
    },
  },
  {
    title:
      'an expiry that refunds takes back what was counted of an unlimited limit, and a late settle counts it again',
    run: async (fixture) => {
      const limiter = await fixture.limiter({
        limits: limits('tpm:unlimited', 'slots:1/concurrent'),
        onExpiry: 'refund',
      });
      const lost = await limiter.acquire(ask({ tpm: 100, slots: 1 }, { leaseTtlMs: 5_000 }));
      await fixture.clock.advance(5_000);
      await limiter.acquire(ask({ tpm: 1, slots: 1 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpm: 1 }]);
      await lost.settle({ tpm: 250 });
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpm: 251 }]);
    },
  },
];

const changing: readonly Case[] = [
  ...STORED_LEVELS.map(({ source, ref, set }): Case => ({
    title: `an unlimited limit of the ${source} level lifts a limit of a live bucket, which starts full when it returns`,
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await set(limiter, 'rpd:2/day', 'tpd:9/day@1');
      await (await limiter.acquire(ask({ rpd: 2, tpd: 1 }))).settle({ rpd: 50 });
      await denial(limiter, ask({ rpd: 1 }));
      await fixture.clock.advance(1_000);
      await set(limiter, 'rpd:unlimited', 'tpd:9/day@1');
      assert.deepEqual((await limiter.config.get(ref))?.limits?.map(String), ['rpd:unlimited', 'tpd:9/day@1']);
      await limiter.acquire(ask({ rpd: 1_000, tpd: 2 }));
      await fixture.clock.advance(1_000);
      await set(limiter, 'rpd:2/day', 'tpd:9/day@1');
      assert.deepEqual(await limiter.available(USER), { rpd: 2, tpd: 6 });
      await limiter.acquire(ask({ rpd: 2, tpd: 0 }));
      await denial(limiter, ask({ rpd: 1 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpd: 1_052, tpd: 3 }]);
    },
  })),
  {
    title: 'slots that are held while their limit is lifted are held when it returns',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await change(fixture, limiter, ['rpd:99/day@1', 'slots:2/concurrent']);
      const held = await limiter.acquire(ask({ slots: 1 }));
      await change(fixture, limiter, ['rpd:99/day@1', 'slots:unlimited']);
      for (let taken = 0; taken < 5; taken++) await limiter.acquire(ask({ slots: 1 }));
      await change(fixture, limiter, ['rpd:99/day@1', 'slots:2/concurrent']);
      assert.equal((await limiter.available(USER))['slots'], 1);
      await held.commit();
      assert.equal((await limiter.available(USER))['slots'], 2);
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpd: 6, slots: 5 }]);
    },
  },
  {
    title: 'a release of slots whose limit was lifted meanwhile gives nothing to it',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await change(fixture, limiter, ['slots:2/concurrent']);
      const held = await limiter.acquire(ask({ slots: 2 }));
      await change(fixture, limiter, ['slots:unlimited']);
      await limiter.acquire(ask({ slots: 3 }));
      await held.release();
      assert.deepEqual((await limiter.leases.list(USER)).items, []);
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ slots: 3 }]);
    },
  },
  {
    title: 'a process that still remembers the limit is not refused once it is lifted, and what it takes counts',
    run: async (fixture) => {
      const [writer, old] = [await fixture.limiter(), await fixture.limiter()];
      await change(fixture, writer, ['rpd:9/day', 'tpd:10/day']);
      await old.acquire(ask({ tpd: 10 }));
      await change(fixture, writer, ['rpd:9/day', 'tpd:unlimited']);
      await writer.acquire(ask({ tpd: 1 }));
      const lease = await old.acquire(ask({ tpd: 10 }));
      assert.deepEqual(lease.consumed, { tpd: 10 });
      await lease.settle({ tpd: 400 });
      assert.deepEqual(tokensOf(await listUsage(fixture, writer)), [{ tpd: 411 }]);
    },
  },
  {
    title: 'a lease of before the limit was lifted settles into the usage',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await change(fixture, limiter, ['rpd:9/day', 'tpd:10/day']);
      const [more, less] = [await limiter.acquire(ask({ tpd: 5 })), await limiter.acquire(ask({ tpd: 5 }))];
      await change(fixture, limiter, ['rpd:9/day', 'tpd:unlimited']);
      await limiter.acquire(ask({ rpd: 1 }));
      await more.settle({ tpd: 900 });
      await less.rollback();
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpd: 1, tpd: 900 }]);
    },
  },
  {
    title: 'a lease of while the limit was lifted gives back what it counted, and no tokens to the limit that returned',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await change(fixture, limiter, ['tpd:unlimited']);
      const lease = await limiter.acquire(ask({ tpd: 500 }));
      await change(fixture, limiter, ['tpd:10/day']);
      await limiter.acquire(ask({ tpd: 10 }));
      await lease.rollback();
      await denial(limiter, ask({ tpd: 1 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpd: 10 }]);
    },
  },
];

export const unlimited: readonly Case[] = [...asking, ...looking, ...correcting, ...changing];
