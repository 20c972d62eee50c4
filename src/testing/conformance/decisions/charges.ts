import assert from 'node:assert/strict';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertExactWait, assertRejects, denial, listUsage, refusers, tokensOf, USER } from '../kit/asking.js';
import { type Case, type Fixture, limits } from '../kit/fixture.js';

const TEAM = { entityId: 'team', resource: USER.resource } as const;
const DAY_MS = 86_400_000;

/** `user-1` under `team`, with their limits. */
async function family(fixture: Fixture, child: string[], parent: string[]): Promise<RateLimiter> {
  const limiter = await fixture.limiter();
  await limiter.config.setEntityDefault('team', { limits: limits(...parent) });
  await limiter.config.setEntityDefault('user-1', { limits: limits(...child) });
  await limiter.entities.create({ id: 'team' });
  await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
  return limiter;
}

const charging: readonly Case[] = [
  {
    title: 'a charge takes from a bucket, and creates a bucket that does not exist',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.charge({ ...USER, amounts: { tpd: 30 } });
      assert.deepEqual(await limiter.available(USER), { tpd: 70 });
      await limiter.charge({ ...USER, amounts: { tpd: 5 } });
      assert.deepEqual(await limiter.available(USER), { tpd: 65 });
    },
  },
  {
    title: 'a charge above the balance is a debt, which refill pays back before anything is granted',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 10 }));
      await limiter.charge({ ...USER, amounts: { rpm: 80 } });
      assert.deepEqual(await limiter.available(USER), { rpm: -30 });
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 31_000);
    },
  },
  {
    title: 'a charge larger than the capacity is never refused',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.charge({ ...USER, amounts: { rpm: 1_000_000 } });
      assert.deepEqual(await limiter.available(USER), { rpm: -999_940 });
    },
  },
  {
    title: 'a charge changes only the limits that it names',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:9/day', 'tpd:100/day@7');
      await limiter.charge({ ...USER, amounts: { rpd: 2 } });
      assert.deepEqual(await limiter.available(USER), { rpd: 7, tpd: 100 });
    },
  },
  {
    title: 'a charge and a credit find a limit that another process has just set',
    run: async (fixture) => {
      const [other, here] = [await fixture.limited('rpd:9/day'), await fixture.limiter()];
      await other.config.setSystem({ limits: limits('rpd:9/day') });
      await here.acquire(ask({ rpd: 1 }));
      await other.config.setSystem({ limits: limits('rpd:9/day', 'usd:100/day') });
      await fixture.clock.advance(1_000);
      await here.charge({ ...USER, amounts: { usd: 40 } });
      await here.credit({ ...USER, amounts: { usd: 10 }, id: 'once' });
      assert.deepEqual(await here.available(USER), { rpd: 8, usd: 70 });
    },
  },
  {
    title: 'a process without limits charges limits that another process has just set',
    run: async (fixture) => {
      const [other, here] = [await fixture.limiter(), await fixture.limiter()];
      await assertRejects(here.charge({ ...USER, amounts: { usd: 1 } }), 'limits.missing');
      await other.config.setSystem({ limits: limits('usd:100/day') });
      await fixture.clock.advance(1_000);
      await here.charge({ ...USER, amounts: { usd: 40 } });
      assert.deepEqual(await here.available(USER), { usd: 60 });
    },
  },
  {
    title: 'a charge of an unlimited limit counts as usage, and nothing else',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:unlimited');
      await limiter.charge({ ...USER, amounts: { tpm: 400 } });
      await limiter.credit({ ...USER, amounts: { tpm: 150 } });
      assert.deepEqual(await limiter.available(USER), { tpm: Infinity });
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpm: 250 }]);
    },
  },
  {
    title: 'a charge counts as usage, and not as an acquire',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.charge({ ...USER, amounts: { tpd: 30 } });
      await limiter.charge({ ...USER, amounts: { tpd: 3 }, id: 'a' });
      const usage = await listUsage(fixture, limiter);
      assert.deepEqual(
        usage.map(({ tokens, acquires }) => ({ tokens, acquires })),
        [{ tokens: { tpd: 33 }, acquires: 0 }],
      );
    },
  },
  {
    title: 'a charge of 0 changes nothing and creates no bucket',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.charge({ ...USER, amounts: { tpd: 0 } });
      assert.equal(await limiter.buckets.get(USER), null);
    },
  },
  {
    title: 'charges and acquires of one bucket that start together all count',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:1000/day');
      const charges = Array.from({ length: 20 }, async () => limiter.charge({ ...USER, amounts: { tpd: 7 } }));
      const takes = Array.from({ length: 20 }, async () => limiter.acquire(ask({ tpd: 3 })));
      await Promise.all([...charges, ...takes]);
      assert.deepEqual(await limiter.available(USER), { tpd: 800 });
    },
  },
];

const crediting: readonly Case[] = [
  {
    title: 'a credit gives back what was taken',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.acquire(ask({ tpd: 90 }));
      await limiter.credit({ ...USER, amounts: { tpd: 40 } });
      assert.deepEqual(await limiter.available(USER), { tpd: 50 });
      await limiter.acquire(ask({ tpd: 50 }));
      await denial(limiter, ask({ tpd: 1 }));
    },
  },
  {
    title: 'a credit never lifts a balance above the capacity',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.acquire(ask({ tpd: 10 }));
      await limiter.credit({ ...USER, amounts: { tpd: 5_000 } });
      assert.deepEqual(await limiter.available(USER), { tpd: 100 });
      await limiter.acquire(ask({ tpd: 100 }));
      await denial(limiter, ask({ tpd: 1 }));
    },
  },
  {
    title: 'a credit of a bucket that does not exist leaves it full',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.credit({ ...USER, amounts: { tpd: 40 } });
      assert.deepEqual(await limiter.available(USER), { tpd: 100 });
      await limiter.acquire(ask({ tpd: 100 }));
      await denial(limiter, ask({ tpd: 1 }));
    },
  },
  {
    title: 'a credit reduces a debt',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.charge({ ...USER, amounts: { rpm: 100 } });
      await limiter.credit({ ...USER, amounts: { rpm: 30 } });
      assert.deepEqual(await limiter.available(USER), { rpm: -10 });
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 11_000);
    },
  },
  {
    title: 'a credit wakes a call of the same process that waits for tokens',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.acquire(ask({ tpd: 100 }));
      const waiting = limiter.acquire(ask({ tpd: 10 }, { wait: { timeoutMs: DAY_MS } }));
      await fixture.asleep(1);
      await limiter.credit({ ...USER, amounts: { tpd: 10 } });
      assert.deepEqual((await waiting).consumed, { tpd: 10 });
    },
  },
];

const cascading: readonly Case[] = [
  {
    title: 'a charge reaches every level of the chain that has the limit',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpd:10/day', 'tpd:100/day'], ['tpd:150/day']);
      await limiter.charge({ ...USER, amounts: { rpd: 4, tpd: 60 } });
      assert.deepEqual(await limiter.available(TEAM), { tpd: 90 });
      const own = await limiter.status(USER);
      assert.deepEqual(
        own.map(({ entityId, limit, available }) => `${entityId} ${limit.name} ${available}`),
        ['user-1 rpd 6', 'user-1 tpd 40', 'team tpd 90'],
      );
    },
  },
  {
    title: 'a charge with an id reaches every level once, also when it is repeated',
    run: async (fixture) => {
      const limiter = await family(fixture, ['tpd:100/day'], ['tpd:150/day']);
      for (let sent = 0; sent < 3; sent++) await limiter.charge({ ...USER, amounts: { tpd: 60 }, id: 'invoice-17' });
      assert.deepEqual(await limiter.available(TEAM), { tpd: 90 });
      assert.deepEqual(await limiter.available(USER), { tpd: 40 });
    },
  },
  {
    title: 'a charge can bring the parent into debt, which then refuses the child',
    run: async (fixture) => {
      const limiter = await family(fixture, ['tpd:100/day'], ['tpd:150/day']);
      await limiter.charge({ ...TEAM, amounts: { tpd: 151 } });
      assert.deepEqual(refusers(await denial(limiter, ask({ tpd: 1 }))), ['team tpd']);
    },
  },
  {
    title: 'a limit that only the parent has can be charged by the child',
    run: async (fixture) => {
      const limiter = await family(fixture, ['rpd:10/day'], ['tpd:150/day']);
      await limiter.charge({ ...USER, amounts: { tpd: 50 }, id: 'a' });
      assert.deepEqual(await limiter.available(TEAM), { tpd: 100 });
    },
  },
];

const once: readonly Case[] = [
  {
    title: 'a charge with an id counts once, from whatever process it is repeated',
    run: async (fixture) => {
      const [first, second] = [await fixture.limited('tpd:100/day'), await fixture.limited('tpd:100/day')];
      await first.charge({ ...USER, amounts: { tpd: 30 }, id: 'a' });
      await second.charge({ ...USER, amounts: { tpd: 30 }, id: 'a' });
      assert.deepEqual(await first.available(USER), { tpd: 70 });
      assert.deepEqual(tokensOf(await listUsage(fixture, first)), [{ tpd: 30 }]);
    },
  },
  {
    title: 'a credit with an id counts once',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.acquire(ask({ tpd: 100 }));
      for (let sent = 0; sent < 3; sent++) await limiter.credit({ ...USER, amounts: { tpd: 25 }, id: 'refund-1' });
      assert.deepEqual(await limiter.available(USER), { tpd: 25 });
    },
  },
  {
    title: 'charges with the same id that start together count once',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await Promise.all(
        Array.from({ length: 5 }, async () => limiter.charge({ ...USER, amounts: { tpd: 30 }, id: 'a' })),
      );
      assert.deepEqual(await limiter.available(USER), { tpd: 70 });
    },
  },
  {
    title: 'charges with different ids, of other entities and of other resources, all count',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.charge({ ...USER, amounts: { tpd: 10 }, id: 'a' });
      await limiter.charge({ ...USER, amounts: { tpd: 10 }, id: 'b' });
      await limiter.charge({ entityId: 'user-2', resource: USER.resource, amounts: { tpd: 10 }, id: 'a' });
      await limiter.charge({ entityId: USER.entityId, resource: 'o1', amounts: { tpd: 10 }, id: 'a' });
      assert.deepEqual(await limiter.available(USER), { tpd: 80 });
      assert.deepEqual(await limiter.available({ ...USER, entityId: 'user-2' }), { tpd: 90 });
      assert.deepEqual(await limiter.available({ ...USER, resource: 'o1' }), { tpd: 90 });
    },
  },
  {
    title: 'an id that was used for other amounts, or for a credit, is refused and counts nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:9/day', 'tpd:100/day');
      await limiter.charge({ ...USER, amounts: { tpd: 10, rpd: 1 }, id: 'a' });
      await assertRejects(limiter.charge({ ...USER, amounts: { tpd: 11, rpd: 1 }, id: 'a' }), 'input.invalid');
      await assertRejects(limiter.credit({ ...USER, amounts: { tpd: 10, rpd: 1 }, id: 'a' }), 'input.invalid');
      await limiter.charge({ ...USER, amounts: { rpd: 1, tpd: 10 }, id: 'a' });
      assert.deepEqual(await limiter.available(USER), { rpd: 8, tpd: 90 });
    },
  },
  {
    title: 'an id counts again after 24 hours, and not a second earlier',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day:1000');
      await limiter.charge({ ...USER, amounts: { tpd: 1_000 }, id: 'a' });
      await fixture.clock.advance(DAY_MS - 1_000);
      await limiter.charge({ ...USER, amounts: { tpd: 1_000 }, id: 'a' });
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ tpd: 1_000 }]);
      await fixture.clock.advance(2_000);
      await limiter.charge({ ...USER, amounts: { tpd: 1_000 }, id: 'a' });
      assert.equal((await limiter.buckets.get(USER))?.limits[0]?.consumed, 2_000);
    },
  },
  {
    title: 'a reset keeps the receipts: a repeated charge still counts once',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.charge({ ...USER, amounts: { tpd: 30 }, id: 'a' });
      await limiter.buckets.reset(USER);
      await limiter.charge({ ...USER, amounts: { tpd: 30 }, id: 'a' });
      assert.deepEqual(await limiter.available(USER), { tpd: 100 });
    },
  },
  {
    title: 'a charge by newer limits settles the bucket first',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setSystem({ limits: limits('tpd:100/day') });
      await limiter.acquire(ask({ tpd: 10 }));
      await fixture.clock.advance(1_000);
      await limiter.config.setSystem({ limits: limits('tpd:50/day', 'rpd:9/day') });
      await limiter.charge({ ...USER, amounts: { tpd: 5, rpd: 1 }, id: 'a' });
      assert.deepEqual(await limiter.available(USER), { tpd: 45, rpd: 8 });
    },
  },
];

const refusing: readonly Case[] = [
  {
    title: 'a charge of slots, of an unknown limit, or of nothing is refused before anything is written',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:9/day', 'slots:2/concurrent');
      for (const amounts of [{ slots: 1 }, { rpn: 1 }, {}, { rpd: 1, slots: 1 }, { rpd: -1 }, { rpd: 0.5 }]) {
        await assertRejects(limiter.charge({ ...USER, amounts }), 'input.invalid');
        await assertRejects(limiter.credit({ ...USER, amounts }), 'input.invalid');
      }
      for (const id of ['', 'a b', 'a#b', 'ä', 'x'.repeat(129)]) {
        await assertRejects(limiter.charge({ ...USER, amounts: { rpd: 1 }, id }), 'input.invalid');
      }
      assert.equal(await limiter.buckets.get(USER), null);
    },
  },
  {
    title: 'a charge of an entity without limits is refused as an acquire is',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await assertRejects(limiter.charge({ ...USER, amounts: { rpd: 1 } }), 'limits.missing');
    },
  },
  {
    title: 'a purge removes the receipts of a namespace',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpd:100/day');
      await limiter.charge({ ...USER, amounts: { tpd: 30 }, id: 'a' });
      const space = await limiter.namespaces.get(fixture.namespace);
      await fixture.catchUp();
      await limiter.namespaces.delete(fixture.namespace);
      await limiter.namespaces.purge(space?.id ?? '');
      assert.deepEqual(await limiter.namespaces.purge(space?.id ?? ''), { removed: 0 });
    },
  },
];

export const charges: readonly Case[] = [...charging, ...crediting, ...cascading, ...once, ...refusing];
