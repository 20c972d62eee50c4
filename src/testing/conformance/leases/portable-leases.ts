import assert from 'node:assert/strict';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { LimiterOptions } from '../../../limiter/options.js';
import { ask, assertRejects, listUsage, tokensOf, USER } from '../kit/asking.js';
import { type Case, type Fixture, limits } from '../kit/fixture.js';

export const SECRET = 'a secret of the conformance suite';

/** Two limiters with the same limits and secret, like two processes. */
export async function twoProcesses(
  fixture: Fixture,
  rules: readonly string[],
  options: LimiterOptions = {},
): Promise<readonly [RateLimiter, RateLimiter]> {
  const common: LimiterOptions = { leaseSecrets: [SECRET], limits: limits(...rules), ...options };
  return [await fixture.limiter(common), await fixture.limiter(common)];
}

const RULES = ['rpd:10/day', 'tpd:1000/day', 'slots:4/concurrent'];

function portable(consume: Readonly<Record<string, number>>, more: object = {}) {
  return ask(consume, { portable: true, ...more });
}

const resuming: readonly Case[] = [
  {
    title: 'a resumed lease shows the id, the amounts and the expiry of the lease that the token was made of',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ rpd: 1, tpd: 50, slots: 2 }, { leaseTtlMs: 20_000 }));
      await fixture.clock.advance(1_000);
      const resumed = await there.leases.resume(await lease.token());
      assert.deepEqual(
        [resumed.id, resumed.entityId, resumed.resource, resumed.state],
        [lease.id, 'user-1', USER.resource, 'open'],
      );
      assert.deepEqual(resumed.consumed, { rpd: 1, tpd: 50, slots: 2 });
      assert.deepEqual(resumed.expiresAt, new Date(fixture.clock.now() + 19_000));
    },
  },
  {
    title: 'a resumed lease shows what another process has settled since the token was made',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50 }));
      const token = await lease.token();
      await lease.settle({ tpd: 70 });
      await lease.adjust({ rpd: 3 });
      assert.deepEqual((await there.leases.resume(token)).consumed, { tpd: 70, rpd: 3 });
    },
  },
  {
    title: 'a commit of a resumed lease keeps the rates and gives the slots back',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50, slots: 2 }));
      await (await there.leases.resume(await lease.token())).commit();
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 950, slots: 4 });
    },
  },
  {
    title: 'a commit of a resumed lease with totals settles what the first process took',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ rpd: 1, tpd: 50, slots: 1 }));
      await (await there.leases.resume(await lease.token())).commit({ tpd: 400 });
      assert.deepEqual(await here.available(USER), { rpd: 9, tpd: 600, slots: 4 });
    },
  },
  {
    title: 'a rollback of a resumed lease gives everything back',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ rpd: 1, tpd: 50, slots: 2 }));
      await lease.adjust({ tpd: 100 });
      await (await there.leases.resume(await lease.token())).rollback();
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 1000, slots: 4 });
    },
  },
  {
    title: 'settles of two processes are absolute: the last one stands',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50 }));
      const resumed = await there.leases.resume(await lease.token());
      for (const tpd of [300, 300, 0, 120]) {
        await resumed.settle({ tpd });
        await lease.settle({ tpd });
        assert.equal((await here.available(USER))['tpd'], 1000 - tpd);
      }
    },
  },
  {
    title: 'an adjust with an operation id counts once, whichever process repeats it',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50 }));
      const resumed = await there.leases.resume(await lease.token());
      await lease.adjust({ tpd: 100 }, { operationId: 'attempt-1' });
      await resumed.adjust({ tpd: 100 }, { operationId: 'attempt-1' });
      await resumed.adjust({ tpd: -30 }, { operationId: 'attempt-2' });
      await lease.adjust({ tpd: -30 }, { operationId: 'attempt-2' });
      assert.deepEqual([lease.consumed, resumed.consumed], [{ tpd: 120 }, { tpd: 120 }]);
      assert.equal((await here.available(USER))['tpd'], 880);
    },
  },
  {
    title: 'an adjust is recognized as repeated after three others, and after the lease was committed',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50 }));
      const resumed = await there.leases.resume(await lease.token());
      for (const operationId of ['a', 'b', 'c', 'd']) await lease.adjust({ tpd: 1 }, { operationId });
      await lease.commit();
      await resumed.adjust({ tpd: 1 }, { operationId: 'a' });
      assert.equal((await here.available(USER))['tpd'], 946);
    },
  },
  {
    title: 'adjusts without an operation id each count, and give back at most what was taken',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50 }));
      const resumed = await there.leases.resume(await lease.token());
      await lease.adjust({ tpd: 20 });
      await resumed.adjust({ tpd: 20 });
      assert.equal((await here.available(USER))['tpd'], 910);
      await lease.adjust({ tpd: -90 });
      await resumed.adjust({ tpd: -90 });
      assert.deepEqual([(await here.available(USER))['tpd'], resumed.consumed['tpd'] ?? 0], [1000, 0]);
    },
  },
  {
    title:
      'an operation id that is empty, too long or has other characters is refused, and so is any of a lease that is not portable',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50 }));
      for (const operationId of ['', 'a b', 'x'.repeat(65), 'a|b', 7]) {
        await assertRejects(lease.adjust({ tpd: 1 }, { operationId: operationId as string }), 'input.invalid');
      }
      const plain = await here.acquire(ask({ tpd: 50 }));
      await assertRejects(plain.adjust({ tpd: 1 }, { operationId: 'a' }), 'input.invalid');
    },
  },
  {
    title: 'a release by either process gives the slots back once, and the lease stays open for settle',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50, slots: 3 }));
      const resumed = await there.leases.resume(await lease.token());
      await resumed.release();
      await lease.release();
      await resumed.settle({ tpd: 80 });
      assert.equal(resumed.state, 'open');
      await lease.commit();
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 920, slots: 4 });
    },
  },
  {
    title: 'an extension by a resumed lease moves the expiry for every process',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ slots: 4 }, { leaseTtlMs: 6_000 }));
      const token = await lease.token();
      await (await there.leases.resume(token)).extend(30_000);
      await fixture.clock.advance(20_000);
      const later = await here.leases.resume(token);
      assert.deepEqual([later.state, later.expiresAt], ['open', new Date(fixture.clock.now() + 10_000)]);
      assert.equal((await here.tryAcquire(ask({ slots: 1 }))).granted, false);
    },
  },
  {
    title: 'an extension without a time uses the lifetime that the lease was acquired with',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ slots: 1 }, { leaseTtlMs: 9_000 }));
      const resumed = await there.leases.resume(await lease.token());
      await fixture.clock.advance(4_000);
      await resumed.extend();
      assert.deepEqual(resumed.expiresAt, new Date(fixture.clock.now() + 9_000));
    },
  },
];

const ends: readonly Case[] = [
  {
    title: 'a commit that another process repeats changes nothing and succeeds',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50, slots: 1 }));
      const token = await lease.token();
      const early = await there.leases.resume(token);
      await lease.commit({ tpd: 60 });
      await early.commit({ tpd: 60 });
      const late = await there.leases.resume(token);
      assert.deepEqual([late.state, late.consumed], ['committed', { tpd: 60 }]);
      await late.commit({ tpd: 60 });
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 940, slots: 4 });
    },
  },
  {
    title: 'a rollback that another process repeats gives nothing back twice',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const other = await here.acquire(ask({ tpd: 500 }));
      const lease = await here.acquire(portable({ tpd: 50, slots: 1 }));
      const resumed = await there.leases.resume(await lease.token());
      await lease.rollback();
      await resumed.rollback();
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 500, slots: 4 });
      await other.rollback();
    },
  },
  {
    title: 'after a commit, every other operation of another process is refused as lease.closed',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50, slots: 1 }));
      const resumed = await there.leases.resume(await lease.token());
      await lease.commit();
      await assertRejects(resumed.rollback(), 'lease.closed');
      await assertRejects(resumed.settle({ tpd: 1 }), 'lease.closed');
      await assertRejects(resumed.adjust({ tpd: 1 }), 'lease.closed');
      await assertRejects(resumed.extend(), 'lease.closed');
      await resumed.release();
      assert.equal(resumed.state, 'committed');
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 950, slots: 4 });
    },
  },
  {
    title: 'a commit after the rollback of another process is refused as lease.closed and charges nothing',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50, slots: 1 }));
      const resumed = await there.leases.resume(await lease.token());
      await resumed.rollback();
      await assertRejects(lease.commit({ tpd: 90 }), 'lease.closed');
      assert.equal(lease.state, 'rolled-back');
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 1000, slots: 4 });
    },
  },
  {
    title: 'of a commit and a rollback at the same time one wins, at every level',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      const lease = await here.acquire(portable({ tpd: 50, slots: 1 }));
      const resumed = await there.leases.resume(await lease.token());
      const ended = await Promise.allSettled([lease.commit({ tpd: 80 }), resumed.rollback()]);
      assert.deepEqual(ended.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
      const left = ended[0]?.status === 'fulfilled' ? 920 : 1000;
      for (const entityId of ['user-1', 'team']) {
        const { limits: balances = [] } = (await here.buckets.get({ ...USER, entityId })) ?? {};
        const found = Object.fromEntries(balances.map(({ limit, available }) => [limit.name, available]));
        assert.deepEqual(found, { rpd: 10, tpd: left, slots: 4 });
      }
    },
  },
  {
    title: 'a lease that has ended is not listed, is not counted as a holder and holds no slot',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      const [first, second] = [await here.acquire(portable({ slots: 2 })), await here.acquire(portable({ slots: 2 }))];
      await first.commit();
      await second.rollback();
      await fixture.catchUp();
      assert.deepEqual((await here.leases.list(USER)).items, []);
      assert.deepEqual((await here.leases.list()).items, []);
      assert.equal((await here.buckets.get(USER))?.holders, 0);
      await here.acquire(ask({ slots: 4 }));
    },
  },
  {
    title: 'the trace of an ended lease is removed after its expiry, gives nothing back, and counts as no expiry',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES, { onExpiry: 'refund' });
      await (await here.acquire(portable({ tpd: 50, slots: 2 }))).commit({ tpd: 90 });
      await fixture.clock.advance(61_000);
      await here.acquire(ask({ slots: 4 }));
      await here.tryAcquire(ask({ slots: 1 }));
      assert.equal((await here.available(USER))['tpd'], 910);
      assert.deepEqual(
        (await listUsage(fixture, here)).map(({ expired }) => expired),
        [0],
      );
    },
  },
  {
    title: 'a commit that is repeated after the expiry of the lease, within 60 s of the first, charges once',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50, slots: 1 }, { leaseTtlMs: 60_000 }));
      const token = await lease.token();
      await fixture.clock.advance(59_900);
      await lease.commit({ tpd: 90 });
      await fixture.clock.advance(59_000);
      await here.acquire(ask({ slots: 4 }));
      await here.tryAcquire(ask({ slots: 1 }));
      const late = await there.leases.resume(token);
      assert.equal(late.state, 'committed');
      await late.commit({ tpd: 90 });
      const { limits: balances = [] } = (await here.buckets.get(USER)) ?? {};
      assert.equal(balances.find(({ limit }) => limit.name === 'tpd')?.consumed, 90);
    },
  },
  {
    title: 'of many ended leases the newest traces stay, and a repeat without a trace gives nothing back',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      await here.acquire(ask({ tpd: 500 }));
      const tokens: string[] = [];
      for (let at = 0; at <= 101; at++) {
        await fixture.clock.advance(1);
        const lease = await here.acquire(portable({ tpd: 2, slots: 1 }));
        tokens.push(await lease.token());
        await lease.rollback();
      }
      const oldest = await there.leases.resume(tokens[0] ?? '');
      const newest = await there.leases.resume(tokens.at(-1) ?? '');
      assert.deepEqual([oldest.state, newest.state], ['expired', 'rolled-back']);
      await oldest.rollback();
      await newest.rollback();
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 500, slots: 4 });
    },
  },
  {
    title: 'a lease without slots and without a lifetime of its own has a holder and can be resumed',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, ['rpd:10/day']);
      const lease = await here.acquire(portable({ rpd: 2 }));
      const [listed] = (await there.leases.list(USER)).items;
      assert.deepEqual([listed?.id, listed?.portable, listed?.amounts], [lease.id, true, { rpd: 2 }]);
      await (await there.leases.resume(await lease.token())).rollback();
      assert.deepEqual(await here.available(USER), { rpd: 10 });
    },
  },
  {
    title: 'usage counts what a resumed lease has settled, and one acquire',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ rpd: 1, tpd: 50 }));
      const resumed = await there.leases.resume(await lease.token());
      await resumed.commit({ tpd: 70 });
      await resumed.commit({ tpd: 70 });
      const usages = await listUsage(fixture, here);
      assert.deepEqual([tokensOf(usages), usages.map(({ acquires }) => acquires)], [[{ rpd: 1, tpd: 70 }], [1]]);
    },
  },
];

export const portableLeases: readonly Case[] = [...resuming, ...ends];
