import assert from 'node:assert/strict';
import { ask, assertRejects, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { collect } from '../kit/tenant.js';
import { SECRET, twoProcesses } from './portable-leases.js';

const RULES = ['rpd:10/day', 'slots:9/concurrent'];

function portable(consume: Readonly<Record<string, number>>, more: object = {}) {
  return ask(consume, { portable: true, ...more });
}

const tokens: readonly Case[] = [
  {
    title: 'a token of another namespace is refused',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      const token = await (await here.acquire(portable({ slots: 1 }))).token();
      const elsewhere = await here.in(await fixture.register());
      await assertRejects(elsewhere.leases.resume(token), 'lease.token-invalid');
    },
  },
  {
    title: 'a token is accepted with its secret as the current or the previous one, and refused without it',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ slots: 1 }));
      const token = await lease.token();
      const next = 'the secret that replaces it';
      const rotated = await fixture.limiter({ limits: limits(...RULES), leaseSecrets: [next, SECRET] });
      assert.equal((await rotated.leases.resume(token)).id, lease.id);
      const newer = await (await rotated.leases.resume(token)).token();
      const after = await fixture.limiter({ limits: limits(...RULES), leaseSecrets: [next] });
      assert.equal((await after.leases.resume(newer)).id, lease.id);
      await assertRejects(after.leases.resume(token), 'lease.token-invalid');
      await assertRejects(here.leases.resume(newer), 'lease.token-invalid');
    },
  },
  {
    title: 'a token that is altered in any character is refused, and the lease stays as it was',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ rpd: 1, slots: 1 }));
      const token = await lease.token();
      for (let at = 0; at < token.length; at++) {
        const altered = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
        await assertRejects(there.leases.resume(altered), 'lease.token-invalid');
      }
      await (await there.leases.resume(token)).rollback();
      assert.deepEqual(await here.available(USER), { rpd: 10, slots: 9 });
    },
  },
  {
    title: 'text that is no token is refused',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      const token = await (await here.acquire(portable({ slots: 1 }))).token();
      for (const text of [
        '',
        'x',
        '..',
        'hgl1',
        token.slice(1),
        `${token}.`,
        `${token}A`,
        token.toUpperCase(),
        null,
        7,
      ]) {
        await assertRejects(here.leases.resume(text as string), 'lease.token-invalid');
      }
    },
  },
  {
    title: 'a token needs a secret and a portable lease',
    run: async (fixture) => {
      const plain = await fixture.limiter({ limits: limits(...RULES) });
      const unsigned = await plain.acquire(portable({ slots: 1 }));
      await assertRejects(unsigned.token(), 'input.invalid');
      await assertRejects(plain.leases.resume('hgl1.e30.e30'), 'input.invalid');
      const [here] = await twoProcesses(fixture, RULES);
      await assertRejects((await here.acquire(ask({ slots: 1 }))).token(), 'input.invalid');
      await assertRejects(here.acquire(ask({ slots: 1 }, { portable: 'yes' as never })), 'input.invalid');
    },
  },
];

const lists: readonly Case[] = [
  {
    title: 'the leases of an entity are listed over all its resources, in pages',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      const expected: (readonly [string, string])[] = [];
      for (const resource of ['claude', 'claude-3', 'gpt-4']) {
        for (let count = 0; count < 3; count++) {
          const { id } = await here.acquire(ask({ slots: 1 }, { resource }));
          expected.push([resource, id]);
          await fixture.clock.advance(1);
        }
      }
      await here.acquire(ask({ slots: 1 }, { entityId: 'user-10' }));
      await fixture.catchUp();
      for (const limit of [1, 2, 3, 4, 100]) {
        const found = await collect(here.leases.list({ entityId: USER.entityId, limit }));
        assert.deepEqual(
          found.map(({ resource, id }) => [resource, id]),
          expected,
        );
      }
    },
  },
  {
    title: 'the leases of a namespace are listed over all entities, in pages, without those of other namespaces',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      const elsewhere = await here.in(await fixture.register());
      await elsewhere.acquire(ask({ slots: 1 }));
      const expected: (readonly [string, string, string])[] = [];
      for (const entityId of ['user-1', 'user-1!', 'user-2']) {
        for (const resource of ['claude', 'gpt-4']) {
          for (let count = 0; count < 2; count++) {
            const { id } = await here.acquire(ask({ slots: 1 }, { entityId, resource }));
            expected.push([entityId, resource, id]);
            await fixture.clock.advance(1);
          }
        }
        await here.acquire(ask({ rpd: 1 }, { entityId, resource: 'unheld' }));
      }
      await fixture.catchUp();
      for (const limit of [1, 3, 100]) {
        const found = await collect(here.leases.list({ limit }));
        assert.deepEqual(
          found.map(({ entityId, resource, id }) => [entityId, resource, id].join(' ')).toSorted(),
          expected.map((lease) => lease.join(' ')).toSorted(),
        );
      }
    },
  },
  {
    title: 'a list of the leases of a namespace continues after a lease that ended between two pages',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      const taken: Awaited<ReturnType<typeof here.acquire>>[] = [];
      for (let count = 0; count < 4; count++) {
        taken.push(await here.acquire(ask({ slots: 1 })));
        await fixture.clock.advance(1);
      }
      await fixture.catchUp();
      const { items, next } = await here.leases.list({ limit: 2 });
      await taken[1]?.commit();
      const rest = await here.leases.list({ after: next ?? '' });
      assert.deepEqual(
        [...items, ...rest.items].map(({ id }) => id),
        taken.map(({ id }) => id),
      );
    },
  },
  {
    title: 'a lease that cascades is listed for each of its levels',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      const { id } = await here.acquire(portable({ rpd: 1, slots: 2 }));
      await fixture.catchUp();
      const found = await collect(here.leases.list());
      assert.deepEqual(
        found
          .toSorted((a, b) => (a.entityId < b.entityId ? -1 : 1))
          .map((lease) => [lease.id, lease.entityId, lease.portable, lease.amounts]),
        [
          [id, 'team', true, { rpd: 1, slots: 2 }],
          [id, 'user-1', true, { rpd: 1, slots: 2 }],
        ],
      );
    },
  },
];

const releases: readonly Case[] = [
  {
    title: 'a release by id ends a lease at every level as its expiry would, once',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      const lease = await here.acquire(ask({ rpd: 1, slots: 2 }));
      await here.acquire(ask({ slots: 1 }));
      await fixture.catchUp();
      assert.equal(await there.leases.release(lease.id), true);
      assert.equal(await there.leases.release(lease.id), false);
      for (const entityId of ['user-1', 'team']) {
        assert.deepEqual(await here.available({ ...USER, entityId }), { rpd: 9, slots: 8 });
      }
      await assertRejects(lease.extend(), 'lease.closed');
    },
  },
  {
    title: 'a release by id gives rates back where an expiry does',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES, { onExpiry: 'refund' });
      const lease = await here.acquire(portable({ rpd: 4, slots: 2 }));
      assert.equal(await here.leases.release(lease.id, USER), true);
      assert.deepEqual(await here.available(USER), { rpd: 10, slots: 9 });
    },
  },
  {
    title: 'a release by id looks only at the buckets that it names',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ slots: 2 }));
      await fixture.catchUp();
      assert.equal(await here.leases.release(lease.id, { entityId: 'user-2' }), false);
      assert.equal(await here.leases.release(lease.id, { ...USER, resource: 'claude' }), false);
      assert.equal(await here.leases.release(lease.id, { entityId: USER.entityId }), true);
      assert.equal((await here.available(USER))['slots'], 9);
    },
  },
  {
    title: 'a release by id of a lease that has ended finds no lease, and its repeated commit still succeeds',
    run: async (fixture) => {
      const [here, there] = await twoProcesses(fixture, RULES);
      const lease = await here.acquire(portable({ rpd: 2, slots: 2 }));
      const token = await lease.token();
      await lease.commit();
      assert.equal(await here.leases.release(lease.id, USER), false);
      await (await there.leases.resume(token)).commit();
      assert.deepEqual(await here.available(USER), { rpd: 8, slots: 9 });
    },
  },
  {
    title: 'a release by id is audited at every level that has the lease, and only if it ended the lease',
    run: async (fixture) => {
      const [here] = await twoProcesses(fixture, RULES, { principal: 'operator', caller: 'job-7' });
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      const lease = await here.acquire(portable({ rpd: 2, slots: 3 }));
      const expiresAt = lease.expiresAt?.toISOString();
      await fixture.catchUp();
      for (let call = 0; call < 2; call++) await here.leases.release(lease.id);
      await fixture.catchUp();
      const before = { resource: USER.resource, lease: lease.id, caller: 'job-7', expiresAt };
      for (const entityId of ['user-1', 'team']) {
        const { items } = await here.audit.list({ entityId });
        const records = items.filter(({ action }) => action === 'lease.release');
        assert.deepEqual(
          records.map((record) => [record.principal, record.before, record.after]),
          [['operator', { ...before, amountsMilli: { rpd: '2000', slots: '3000' } }, null]],
        );
      }
    },
  },
  {
    title: 'a release by an illegal id or name is refused',
    run: async (fixture) => {
      const { leases } = await fixture.limiter();
      for (const id of ['', 'short', 'x'.repeat(12), '###########', 7]) {
        await assertRejects(leases.release(id as string), 'input.invalid');
      }
      await assertRejects(leases.release('0Abcdefgh12', { entityId: '' }), 'input.invalid');
      await assertRejects(leases.release('0Abcdefgh12', { resource: 'gpt-4' }), 'input.invalid');
    },
  },
];

export const portableLists: readonly Case[] = [...tokens, ...lists, ...releases];
