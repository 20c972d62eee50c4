import assert from 'node:assert/strict';
import { Limit } from '../../../core/limit.js';
import { ask, assertRejects, denial, listUsage, times, USER } from '../kit/asking.js';
import { type Case, type Fixture, limits } from '../kit/fixture.js';
import { SECRET, twoProcesses } from './portable-leases.js';

const RULES = ['rpd:10/day', 'tpd:1000/day', 'slots:4/concurrent'];

function portable(consume: Readonly<Record<string, number>>, more: object = {}) {
  return ask(consume, { portable: true, ...more });
}

/** Longer than the default lifetime of a lease. */
const PAST_EXPIRY_MS = 61_000;

const expiries: readonly Case[] = [
  {
    title: 'an expired portable lease keeps its rates, and a settle after that charges only what exceeds them',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const token = await (await here.acquire(portable({ tpd: 50, slots: 4 }))).token();
      await fixture.clock.advance(PAST_EXPIRY_MS);
      await here.acquire(ask({ slots: 1 }));
      const resumed = await there.leases.resume(token);
      assert.equal(resumed.state, 'expired');
      await resumed.settle({ tpd: 20 });
      assert.equal((await here.available(USER))['tpd'], 950);
      await resumed.commit({ tpd: 80 });
      assert.deepEqual([(await here.available(USER))['tpd'], (await here.available(USER))['slots']], [920, 3]);
    },
  },
  {
    title: 'where an expiry gives rates back, a commit after that charges the whole amount again, once',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES, { onExpiry: 'refund' });
      const token = await (await here.acquire(portable({ rpd: 1, tpd: 50, slots: 4 }))).token();
      await fixture.clock.advance(PAST_EXPIRY_MS);
      await here.acquire(ask({ slots: 1 }));
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 1000, slots: 3 });
      const resumed = await there.leases.resume(token);
      await resumed.settle({ tpd: 70 });
      await resumed.settle({ tpd: 70 });
      await resumed.commit();
      assert.deepEqual(await here.available(USER), { rpd: 9, tpd: 930, slots: 3 });
    },
  },
  {
    title: 'a settle between the expiry and the reclaim finds the holder, and charges the difference',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES, { onExpiry: 'refund' });
      const token = await (await here.acquire(portable({ tpd: 50, slots: 1 }))).token();
      await fixture.clock.advance(PAST_EXPIRY_MS);
      await (await there.leases.resume(token)).commit({ tpd: 70 });
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 930, slots: 4 });
    },
  },
  {
    title: 'a rollback after the expiry was reclaimed gives nothing back',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const token = await (await here.acquire(portable({ tpd: 50, slots: 4 }))).token();
      await fixture.clock.advance(PAST_EXPIRY_MS);
      await here.acquire(ask({ slots: 1 }));
      await (await there.leases.resume(token)).rollback();
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 950, slots: 3 });
    },
  },
  {
    title: 'an extension after the expiry was reclaimed is refused, and the expiry is counted once',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const token = await (await here.acquire(portable({ slots: 4 }))).token();
      await fixture.clock.advance(PAST_EXPIRY_MS);
      await here.acquire(ask({ slots: 1 }));
      await assertRejects((await there.leases.resume(token)).extend(), 'lease.closed');
      assert.deepEqual(
        (await listUsage(fixture, here)).map(({ expired }) => expired),
        [1],
      );
    },
  },
];

const levels: readonly Case[] = [
  {
    title: 'a resumed lease settles, commits and rolls back at every level of its cascade',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      const [kept, undone] = [
        await here.acquire(portable({ tpd: 50, slots: 1 })),
        await here.acquire(portable({ tpd: 30, slots: 1 })),
      ];
      const resumed = await there.leases.resume(await kept.token());
      await resumed.settle({ tpd: 200 });
      await resumed.commit();
      await (await there.leases.resume(await undone.token())).rollback();
      for (const entityId of ['user-1', 'team']) {
        assert.deepEqual(await here.available({ ...USER, entityId }), { rpd: 10, tpd: 800, slots: 4 });
      }
    },
  },
  {
    title: 'a level that takes another amount of its own keeps it, and a rollback returns it',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, ['rpd:10/day']);
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await here.config.setEntity('team', USER.resource, { limits: limits('rpd:90/day', 'usd:50/day') });
      const lease = await here.acquire(portable({ rpd: 2, usd: 5 }));
      const resumed = await there.leases.resume(await lease.token());
      await resumed.settle({ usd: 7 });
      assert.deepEqual(await here.available({ ...USER, entityId: 'team' }), { rpd: 88, usd: 43 });
      await resumed.rollback();
      assert.deepEqual(await here.available({ ...USER, entityId: 'team' }), { rpd: 90, usd: 50 });
    },
  },
  {
    title: 'a level whose limit has another cost keeps its own amount, until a total is stated or a difference added',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, []);
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await here.config.setSystem({ limits: [...limits('rpd:10/day'), Limit.perDay('usd', 100, { cost: 5 })] });
      await here.config.setEntity('team', USER.resource, {
        limits: [...limits('rpd:10/day'), Limit.perDay('usd', 100, { cost: 2 })],
      });
      const usd = async (): Promise<readonly unknown[]> => {
        const own = await here.available(USER);
        return [own['usd'], (await here.available({ ...USER, entityId: 'team' }))['usd']];
      };
      const [kept, stated] = [await here.acquire(portable({ rpd: 1 })), await here.acquire(portable({ rpd: 1 }))];
      assert.deepEqual(await usd(), [90, 96]);
      const resumed = await there.leases.resume(await kept.token());
      await resumed.adjust({ usd: 10 });
      assert.deepEqual(await usd(), [80, 86]);
      await resumed.commit();
      assert.deepEqual(await usd(), [80, 86]);
      await (await there.leases.resume(await stated.token())).settle({ usd: 7 });
      assert.deepEqual(await usd(), [78, 81]);
      await stated.rollback();
      assert.deepEqual(await usd(), [85, 88]);
    },
  },
  {
    title: 'a limit that a level got after the acquire gets nothing back, and is not shown as taken',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, ['rpd:10/day']);
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await here.config.setEntity('team', USER.resource, { limits: limits('rpd:90/day', 'usd:50/day') });
      const lease = await here.acquire(portable({ rpd: 2, usd: 5 }));
      assert.deepEqual(lease.consumed, { rpd: 2 });
      const token = await lease.token();
      await here.config.setEntity('user-1', USER.resource, { limits: limits('rpd:10/day', 'usd:40/day') });
      await here.acquire(ask({ usd: 20 }));
      const resumed = await there.leases.resume(token);
      assert.deepEqual(resumed.consumed, { rpd: 2 });
      await resumed.rollback();
      assert.deepEqual(await here.available({ ...USER, entityId: 'team' }), { rpd: 90, usd: 30 });
      assert.deepEqual(await here.available(USER), { rpd: 10, usd: 20 });
    },
  },
  {
    title: 'a lease with per-call limits is resumed on the bucket of these limits',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const request = portable({ tpd: 5 }, { limits: limits('tpd:7/day') });
      const lease = await here.acquire(request);
      await (await there.leases.resume(await lease.token())).commit({ tpd: 6 });
      await denial(here, ask({ tpd: 2 }, { limits: limits('tpd:7/day') }));
      assert.equal((await here.available(USER))['tpd'], 1000);
    },
  },
  {
    title: 'a portable lease that is acquired atomically is resumed at every level',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      const lease = await here.acquire(portable({ tpd: 50, slots: 2 }, { atomic: true }));
      await (await there.leases.resume(await lease.token())).commit({ tpd: 60 });
      for (const entityId of ['user-1', 'team']) {
        assert.deepEqual(await here.available({ ...USER, entityId }), { rpd: 10, tpd: 940, slots: 4 });
      }
    },
  },
  {
    title: 'a denied ask for a portable lease leaves no holder at any level',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await here.acquire(ask({ tpd: 990 }, { entityId: 'team' }));
      await denial(here, portable({ tpd: 20, slots: 1 }));
      await fixture.catchUp();
      assert.deepEqual((await here.leases.list()).items, []);
      assert.equal((await here.available(USER))['slots'], 4);
    },
  },
];

const changes: readonly Case[] = [
  {
    title: 'a lease that is resumed after the limits changed settles by the new limits',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      await here.config.setSystem({ limits: limits('tpd:1000/day') });
      const lease = await here.acquire(portable({ tpd: 50 }));
      const token = await lease.token();
      await there.config.setSystem({ limits: limits('tpd:400/day', 'usd:50/day') });
      const other = await fixture.limiter({ leaseSecrets: [SECRET] });
      await (await other.leases.resume(token)).commit({ tpd: 100, usd: 3 });
      assert.deepEqual(await other.available(USER), { tpd: 350, usd: 47 });
    },
  },
  {
    title: 'a limit that was removed since the acquire is not charged by a resumed lease',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      await here.config.setSystem({ limits: limits('rpd:10/day', 'tpd:1000/day') });
      const lease = await here.acquire(portable({ rpd: 1, tpd: 50 }));
      const token = await lease.token();
      await here.config.setSystem({ limits: limits('rpd:10/day') });
      await here.acquire(ask({ rpd: 1 }));
      const other = await fixture.limiter({ leaseSecrets: [SECRET] });
      await (await other.leases.resume(token)).rollback();
      assert.deepEqual(await other.available(USER), { rpd: 9 });
    },
  },
  {
    title: 'what was taken while a limit was unlimited is not given to the limit that replaced it',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      await here.config.setSystem({ limits: limits('tpd:unlimited', 'rpd:10/day') });
      const lease = await here.acquire(portable({ tpd: 700, rpd: 1 }));
      const token = await lease.token();
      await here.config.setSystem({ limits: limits('tpd:1000/day', 'rpd:10/day') });
      await here.acquire(ask({ tpd: 600 }));
      const other = await fixture.limiter({ leaseSecrets: [SECRET] });
      await (await other.leases.resume(token)).rollback();
      assert.deepEqual(await other.available(USER), { tpd: 400, rpd: 10 });
    },
  },
  {
    title: 'a reset forgets an open lease, and its later commit charges only what exceeds the grant',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ tpd: 50, slots: 2 }));
      const resumed = await there.leases.resume(await lease.token());
      await here.buckets.reset(USER);
      await resumed.commit({ tpd: 70 });
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 980, slots: 4 });
    },
  },
  {
    title: 'a reset keeps the trace of an ended lease, so that a repeated commit charges nothing',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES, { onExpiry: 'refund' });
      const lease = await here.acquire(portable({ tpd: 50, slots: 2 }));
      const token = await lease.token();
      await lease.commit({ tpd: 70 });
      await here.buckets.reset(USER);
      await (await there.leases.resume(token)).commit({ tpd: 70 });
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 1000, slots: 4 });
    },
  },
  {
    title: 'the end of a scope leaves a lease open whose token was taken',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ slots: 3 }));
      const token = await lease.token();
      await lease[Symbol.asyncDispose]();
      assert.equal((await there.available(USER))['slots'], 1);
      const resumed = await there.leases.resume(token);
      await resumed[Symbol.asyncDispose]();
      assert.deepEqual([(await there.available(USER))['slots'], resumed.state], [4, 'committed']);
    },
  },
  {
    title: 'run leaves a lease whose token was taken open, and rolls it back if the function throws',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const token = await here.run(portable({ tpd: 50, slots: 1 }), (lease) => lease.token());
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 950, slots: 3 });
      await (await there.leases.resume(token)).commit();
      const failed = here.run(portable({ tpd: 50, slots: 1 }), async (lease) => {
        await lease.token();
        throw new RangeError('the queue is down');
      });
      await assert.rejects(failed, RangeError);
      assert.deepEqual(await here.available(USER), { rpd: 10, tpd: 950, slots: 4 });
    },
  },
  ...[false, true].map((isPortable) => ({
    title: `run of a ${isPortable ? 'portable' : 'plain'} lease that throws gives back what only the parent took and was not settled`,
    run: async (fixture: Fixture) => {
      const here = await fixture.limiter({ leaseSecrets: [SECRET], limits: limits('rpd:100/day', 'tpd:1000/day') });
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await here.config.setEntity('team', USER.resource, { limits: limits('tpd:1000/day', 'usd:50/day') });
      const failed = here.run(
        ask({ rpd: 1, tpd: 500, usd: 3 }, isPortable ? { portable: true } : {}),
        async (lease) => {
          await lease.settle({ tpd: 100 });
          throw new RangeError('the provider is down');
        },
      );
      await assert.rejects(failed, RangeError);
      assert.deepEqual(await here.available({ ...USER, entityId: 'team' }), { tpd: 900, usd: 50 });
      const own = await here.buckets.get(USER);
      assert.deepEqual(
        own?.limits.map(({ available }) => available),
        [100, 900],
      );
    },
  })),
  {
    title:
      'a bucket with 1,000 holders denies a lease that no slot bounds as contended, reports it, and has room after a commit or an expiry',
    run: async (fixture) => {
      const reported: unknown[] = [];
      const options = { onError: (error: unknown) => reported.push(error) };
      const [here] = await twoProcesses(fixture, ['rpd:5000/day'], options);
      const first = await here.acquire(portable({ rpd: 1 }));
      await Promise.all(times(999, async () => here.acquire(portable({ rpd: 1 }))));
      const denied = await denial(here, portable({ rpd: 1 }));
      assert.deepEqual([denied.reason, reported.length], ['contended', 1]);
      assert.match(String(reported[0]), /1000 holders/);
      assert.equal((await denial(here, ask({ rpd: 1 }, { leaseTtlMs: 30_000 }))).reason, 'contended');
      await first.commit();
      await here.acquire(portable({ rpd: 1 }, { leaseTtlMs: 30_000 }));
      assert.equal((await denial(here, portable({ rpd: 1 }))).reason, 'contended');
      await here.acquire(ask({ rpd: 1 }));
      await fixture.clock.advance(31_000);
      await here.acquire(portable({ rpd: 1 }));
    },
  },
];

export const portableChanges: readonly Case[] = [...expiries, ...levels, ...changes];
