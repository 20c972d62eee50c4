import assert from 'node:assert/strict';
import type { AdminCall, ManagedMark, ManagedRecord } from '../../../backend.js';
import type { ErrorCode } from '../../../core/error-codes.js';
import { assertRejects, times } from '../kit/asking.js';
import { type Fixture, type Case, limits } from '../kit/fixture.js';
import { collect, collectPages } from '../kit/tenant.js';

let changes = 0;

/** An administrative call with a mark. */
function marking({ call }: Fixture, mark: ManagedMark | null): AdminCall {
  changes += 1;
  return { ...call(), principal: null, auditId: `audit-${String(changes).padStart(9, '0')}`, managed: mark };
}

async function marksOf({ backend, call }: Fixture, limit = 1_000): Promise<ManagedRecord[]> {
  return collectPages(limit, (page) => backend.managed.list(call(), page));
}

/** Accepts a store that throws synchronously and one that rejects. */
async function refused(work: () => unknown, code: ErrorCode): Promise<void> {
  await assertRejects((async () => work())(), code);
}

const ENTITY = { id: 'user-1', name: null, parentId: null, cascade: false, metadata: {} };
const MARK = { key: 'record#user-1', value: { name: 'Ann' } };
const FORGET = { key: MARK.key, value: null };
const OTHER = { key: 'system', value: { limits: ['rpm:1/min'] } };

const alone: readonly Case[] = [
  {
    title: 'the list of marks shows the last mark of each key until it is removed',
    run: async (fixture) => {
      const { managed } = fixture.backend;
      const value = { limits: ['a:1/min'], deep: { list: [1, null, 'é', { ['__proto__']: 'x' }] }, empty: {} };
      await managed.mark(fixture.call(), { key: 'system', value: { limits: [] } });
      await managed.mark(fixture.call(), { key: 'system', value });
      await managed.mark(fixture.call(), MARK);
      assert.deepEqual(await marksOf(fixture), [MARK, { key: 'system', value }]);
      await managed.mark(fixture.call(), { key: 'system', value: null });
      await managed.mark(fixture.call(), { key: 'resource#never', value: null });
      assert.deepEqual(await marksOf(fixture), [MARK]);
    },
  },
  {
    title: 'marks are listed in the order of their keys, page by page, each once',
    run: async (fixture) => {
      const keys = times(25, (at) => `resource#${'!-~zZ'.charAt(at % 5)}${at}`);
      for (const key of keys) await fixture.backend.managed.mark(fixture.call(), { key, value: { key } });
      const expected = keys.toSorted().map((key) => ({ key, value: { key } }));
      for (const limit of [1, 7, 25, 26, 1_000]) assert.deepEqual(await marksOf(fixture, limit), expected);
    },
  },
  {
    title: 'a store keeps a copy of a mark: changing the object that was passed or read does not change it',
    run: async (fixture) => {
      const value = { limits: ['rpm:1/min'] };
      await fixture.backend.managed.mark(fixture.call(), { key: 'system', value });
      value.limits.push('given');
      const [read = assert.fail('not listed')] = await marksOf(fixture);
      (read.value as { limits: string[] }).limits.push('read');
      assert.deepEqual(await marksOf(fixture), [{ key: 'system', value: { limits: ['rpm:1/min'] } }]);
    },
  },
  {
    title: 'a mark adds no audit record, and is visible only in its namespace',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await fixture.backend.managed.mark(fixture.call(), MARK);
      await fixture.catchUp();
      assert.deepEqual(await collect(limiter.audit.list()), []);
      const name = await fixture.register();
      const { id = '' } = (await limiter.namespaces.get(name)) ?? {};
      const elsewhere = await fixture.backend.managed.list(
        { ...fixture.call(), namespaceId: id },
        { limit: 9, after: null },
      );
      assert.deepEqual(elsewhere, { items: [], next: null });
    },
  },
  {
    title: 'marks are purged with their namespace',
    run: async (fixture) => {
      const { namespaces } = await fixture.limiter({ namespace: 'default' });
      for (const key of ['system', 'resource#a'])
        await fixture.backend.managed.mark(fixture.call(), { key, value: {} });
      const { id } = await namespaces.delete(fixture.namespace);
      await fixture.catchUp();
      assert.deepEqual(await namespaces.purge(id), { removed: 2 });
      await fixture.catchUp();
      assert.deepEqual(await namespaces.purge(id), { removed: 0 });
    },
  },
];

const withChanges: readonly Case[] = [
  {
    title: 'creating, updating and deleting an entity writes its mark',
    run: async (fixture) => {
      const { entities } = fixture.backend;
      await fixture.backend.managed.mark(fixture.call(), OTHER);
      await entities.create(marking(fixture, MARK), ENTITY);
      assert.deepEqual(await marksOf(fixture), [MARK, OTHER]);
      const changed = { key: MARK.key, value: { name: 'Bea' } };
      await entities.update(marking(fixture, changed), 'user-1', { name: 'Bea' }, 1);
      assert.deepEqual(await marksOf(fixture), [changed, OTHER]);
      await entities.update(marking(fixture, null), 'user-1', { name: 'Cid' }, null);
      assert.deepEqual(await marksOf(fixture), [changed, OTHER]);
      await entities.delete(marking(fixture, FORGET), 'user-1');
      assert.deepEqual(await marksOf(fixture), [OTHER]);
    },
  },
  {
    title: 'a refused change of an entity neither writes nor removes a mark',
    run: async (fixture) => {
      const { entities } = fixture.backend;
      await entities.create(marking(fixture, null), { ...ENTITY, id: 'team' });
      await entities.create(marking(fixture, MARK), { ...ENTITY, parentId: 'team' });
      const wrong = { key: MARK.key, value: { wrong: true } };
      const team = { key: 'record#team', value: { wrong: true } };
      await refused(() => entities.create(marking(fixture, wrong), ENTITY), 'entity.exists');
      await refused(
        () => entities.create(marking(fixture, team), { ...ENTITY, id: 'x', parentId: 'y' }),
        'input.invalid',
      );
      await refused(() => entities.update(marking(fixture, wrong), 'user-1', {}, 7), 'entity.conflict');
      await refused(() => entities.update(marking(fixture, wrong), 'missing', {}, null), 'entity.missing');
      await refused(() => entities.update(marking(fixture, team), 'team', { parentId: 'user-1' }, 1), 'input.invalid');
      await refused(() => entities.delete(marking(fixture, team), 'team'), 'entity.conflict');
      await refused(() => entities.delete(marking(fixture, FORGET), 'missing'), 'entity.missing');
      assert.deepEqual(await marksOf(fixture), [MARK]);
    },
  },
  {
    title: 'a change of limits writes its mark, and only the mark if the limits stay the same',
    run: async (fixture) => {
      const { config } = fixture.backend;
      const limiter = await fixture.limiter();
      const level = { kind: 'system' } as const;
      const change = { limits: limits('rpm:1/min') };
      const written = await config.write(marking(fixture, OTHER), level, change);
      assert.deepEqual(await marksOf(fixture), [OTHER]);
      const again = { key: 'system', value: { limits: ['again'] } };
      assert.deepEqual(await config.write(marking(fixture, again), level, change), written);
      assert.deepEqual(await marksOf(fixture), [again]);
      await config.write(marking(fixture, null), level, change);
      assert.deepEqual(await marksOf(fixture), [again]);
      const nothing = { limits: null, onUnavailable: null };
      await config.write(
        marking(fixture, { key: 'resource#a', value: {} }),
        { kind: 'resource', resource: 'a' },
        nothing,
      );
      await config.write(marking(fixture, { key: 'system', value: null }), level, nothing);
      assert.deepEqual(await marksOf(fixture), [{ key: 'resource#a', value: {} }]);
      await fixture.catchUp();
      const actions = (await collect(limiter.audit.list())).map(({ action }) => action);
      assert.deepEqual(actions, ['config.set', 'config.delete']);
      assert.equal((await config.write(marking(fixture, null), level, change)).v, written.v + 2);
    },
  },
];

const races: readonly Case[] = [
  {
    title: 'a mark is read by its key, consistent with the last write',
    run: async (fixture) => {
      const { managed: store } = fixture.backend;
      assert.equal(await store.read(fixture.call(), MARK.key), undefined);
      await store.mark(fixture.call(), MARK);
      await store.mark(fixture.call(), OTHER);
      assert.deepEqual(await store.read(fixture.call(), MARK.key), MARK);
      await store.mark(fixture.call(), FORGET);
      assert.equal(await store.read(fixture.call(), MARK.key), undefined);
    },
  },
  {
    title: 'a write whose mark is not the one that the caller saw changes nothing',
    run: async (fixture) => {
      const { managed: store, entities, config } = fixture.backend;
      const limiter = await fixture.limiter();
      await entities.create(marking(fixture, MARK), ENTITY);
      await config.write(marking(fixture, OTHER), { kind: 'system' }, { limits: limits('rpm:1/min') });
      const own = [await limiter.entities.get('user-1'), await limiter.config.get('system')];
      for (const seen of [null, {}, { name: 'Bea' }, { name: 'Ann', parent: 'x' }, 'Ann']) {
        const stale = { key: MARK.key, value: { stale: true }, seen };
        const staleLimits = { key: OTHER.key, value: { stale: true }, seen };
        await refused(() => store.mark(fixture.call(), stale), 'backend.unavailable');
        await refused(() => store.mark(fixture.call(), { ...stale, value: null }), 'backend.unavailable');
        await refused(
          () => entities.update(marking(fixture, stale), 'user-1', { name: 'x' }, 1),
          'backend.unavailable',
        );
        await refused(() => entities.delete(marking(fixture, stale), 'user-1'), 'backend.unavailable');
        const change = { limits: limits('rpm:2/min') };
        const write = (): unknown => config.write(marking(fixture, staleLimits), { kind: 'system' }, change);
        await refused(write, 'backend.unavailable');
      }
      const early = { key: 'record#new', value: {}, seen: {} };
      await refused(() => entities.create(marking(fixture, early), { ...ENTITY, id: 'new' }), 'backend.unavailable');
      assert.deepEqual([await limiter.entities.get('user-1'), await limiter.config.get('system')], own);
      assert.deepEqual(await marksOf(fixture), [MARK, OTHER]);
      assert.equal(await limiter.entities.get('new'), null);
    },
  },
  {
    title: 'a write replaces the mark that the caller saw, whatever the order of its fields',
    run: async (fixture) => {
      const { managed: store, entities } = fixture.backend;
      const first = { key: MARK.key, value: { name: 'Ann', metadata: { a: 1, b: [{ c: 2, d: 3 }] } }, seen: null };
      await entities.create(marking(fixture, first), ENTITY);
      const seen = { metadata: { b: [{ d: 3, c: 2 }], a: 1 }, name: 'Ann' };
      await store.mark(fixture.call(), { key: MARK.key, value: { n: 1 }, seen });
      await entities.delete(marking(fixture, { ...FORGET, seen: { n: 1 } }), 'user-1', 1);
      assert.deepEqual(await marksOf(fixture), []);
      await store.mark(fixture.call(), { key: MARK.key, value: null, seen: null });
    },
  },
  {
    title: 'one of several writers that saw the same mark replaces it',
    run: async (fixture) => {
      const { managed: store } = fixture.backend;
      await store.mark(fixture.call(), OTHER);
      const marks = times(8, (by) => ({ key: OTHER.key, value: { by }, seen: OTHER.value }));
      const results = await Promise.allSettled(marks.map(async (mark) => store.mark(fixture.call(), mark)));
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
      const winner = results.findIndex(({ status }) => status === 'fulfilled');
      assert.deepEqual(await marksOf(fixture), [{ key: OTHER.key, value: { by: winner } }]);
    },
  },
  {
    title: 'an entity is deleted with its current version, or without a version',
    run: async (fixture) => {
      const { entities } = fixture.backend;
      const limiter = await fixture.limiter();
      await entities.create(marking(fixture, null), ENTITY);
      await entities.update(marking(fixture, null), 'user-1', { name: 'Bea' }, 1);
      await refused(() => entities.delete(marking(fixture, null), 'user-1', 1), 'entity.conflict');
      assert.equal((await limiter.entities.get('user-1'))?.name, 'Bea');
      await entities.delete(marking(fixture, null), 'user-1', 2);
      await entities.create(marking(fixture, null), ENTITY);
      await entities.delete(marking(fixture, null), 'user-1', null);
      assert.equal(await limiter.entities.get('user-1'), null);
    },
  },
];

export const managed: readonly Case[] = [...alone, ...withChanges, ...races];
