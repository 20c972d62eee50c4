import assert from 'node:assert/strict';
import type { NewEntity } from '../../../limiter/api/entities-api.js';
import { ask, assertRejects, denial, times, tokensOf, listUsage } from '../kit/asking.js';
import type { Case } from '../kit/fixture.js';

function nested(levels: number): Readonly<Record<string, unknown>> {
  let value: Record<string, unknown> = {};
  for (let level = 1; level < levels; level++) value = { in: value };
  return value;
}

const metadata: readonly Case[] = [
  {
    title: 'an entity keeps a copy of its metadata: changing the object that was passed or read does not change it',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const given = { tags: ['a'], deep: { n: 1 } };
      const created = await limiter.entities.create({ id: 'user-1', metadata: given });
      given.tags.push('given');
      (created.metadata['tags'] as string[]).push('created');
      const read = (await limiter.entities.get('user-1')) ?? assert.fail('not there');
      (read.metadata['deep'] as { n: number }).n = 2;
      await fixture.catchUp();
      const [listed = assert.fail('not listed')] = (await limiter.entities.list()).items;
      (listed.metadata['tags'] as string[]).pop();
      assert.deepEqual((await limiter.entities.get('user-1'))?.metadata, { tags: ['a'], deep: { n: 1 } });
    },
  },
  {
    title: 'metadata is stored as JSON represents it',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const odd = { none: undefined, at: new Date(0), nan: Number.NaN, list: [undefined], 'a.b#c': { '': '😀' } };
      await limiter.entities.create({ id: 'user-1', metadata: odd });
      const kept = { at: '1970-01-01T00:00:00.000Z', nan: null, list: [null], 'a.b#c': { '': '😀' } };
      assert.deepEqual((await limiter.entities.get('user-1'))?.metadata, kept);
    },
  },
  {
    title: 'metadata of 500 levels is kept, and deeper metadata is refused as bad input',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'user-1', metadata: nested(500) });
      assert.deepEqual((await limiter.entities.get('user-1'))?.metadata, nested(500));
      for (const levels of [501, 2_000, 4_000, 20_000]) {
        const deep = { metadata: nested(levels) };
        await assertRejects(limiter.entities.create({ id: 'user-2', ...deep }), 'input.invalid');
        await assertRejects(limiter.entities.update('user-1', deep), 'input.invalid');
      }
      assert.equal(await limiter.entities.get('user-2'), null);
    },
  },
  {
    title: 'metadata that JSON cannot represent as an object is refused',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const circle: Record<string, unknown> = {};
      circle['self'] = circle;
      await limiter.entities.create({ id: 'user-1', metadata: { tier: 'gold' } });
      for (const bad of [circle, { n: 1n }, [], 'text', null, new Date(0), { toJSON: () => 'text' }]) {
        await assertRejects(limiter.entities.create({ id: 'user-2', metadata: bad as never }), 'input.invalid');
        await assertRejects(limiter.entities.update('user-1', { metadata: bad as never }), 'input.invalid');
      }
      assert.equal(await limiter.entities.get('user-2'), null);
      assert.deepEqual((await limiter.entities.get('user-1'))?.metadata, { tier: 'gold' });
    },
  },
];

const updates: readonly Case[] = [
  {
    title: 'fields that an update leaves out stay, and the version increases by one',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'team' });
      const given = { id: 'user-1', name: 'Ann', parentId: 'team', cascade: true, metadata: { tier: 'gold' } };
      let expected = await limiter.entities.create(given);
      for (const change of [{ name: 'Bea' }, { cascade: false }, { metadata: { n: 1 } }, {}, { name: undefined }]) {
        await fixture.clock.advance(1_000);
        const updated = await limiter.entities.update('user-1', change as { name: string });
        const name = change.name ?? expected.name;
        expected = { ...expected, ...change, name, version: expected.version + 1 };
        assert.deepEqual(updated, expected);
        assert.deepEqual(await limiter.entities.get('user-1'), expected);
      }
    },
  },
  {
    title: 'an update removes a name and a parent that are null',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: 'user-1', name: 'Ann', parentId: 'team', cascade: true });
      await limiter.entities.update('user-1', { name: null });
      await limiter.entities.update('user-1', { parentId: null });
      const { name, parentId, cascade } = (await limiter.entities.get('user-1')) ?? assert.fail('not there');
      assert.deepEqual({ name, parentId, cascade }, { name: null, parentId: null, cascade: true });
    },
  },
  {
    title: 'an update replaces all metadata',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'user-1', metadata: { tier: 'gold', deep: { a: 1 } } });
      await limiter.entities.update('user-1', { metadata: { deep: { b: 2 } } });
      assert.deepEqual((await limiter.entities.get('user-1'))?.metadata, { deep: { b: 2 } });
    },
  },
  {
    title: 'an update succeeds with the current version, and changes nothing with any other version',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'user-1', name: 'Ann' });
      const updated = await limiter.entities.update('user-1', { name: 'Bea', version: 1 });
      for (const version of [1, 3]) {
        await assertRejects(limiter.entities.update('user-1', { name: 'Cid', version }), 'entity.conflict');
      }
      assert.deepEqual(await limiter.entities.get('user-1'), updated);
    },
  },
  {
    title: 'one of several updates with the same version succeeds',
    run: async (fixture) => {
      const limiters = [await fixture.limiter(), await fixture.limiter()];
      const [limiter = assert.fail('no limiter')] = limiters;
      await limiter.entities.create({ id: 'user-1' });
      const outcomes = await Promise.allSettled(
        times(6, async (at) => limiters[at % 2]?.entities.update('user-1', { name: `${at}`, version: 1 })),
      );
      const won = outcomes.flatMap((outcome, at) => (outcome.status === 'fulfilled' ? [`${at}`] : []));
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      assert.equal(won.length, 1);
      for (const { reason } of refused) await assertRejects(Promise.reject(reason), 'entity.conflict');
      const { name, version } = (await limiter.entities.get('user-1')) ?? assert.fail('not there');
      assert.deepEqual([name, version], [won[0], 2]);
    },
  },
  {
    title: 'concurrent updates without a version all take effect',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'user-1' });
      const updated = await Promise.all(times(5, async (at) => limiter.entities.update('user-1', { name: `${at}` })));
      assert.deepEqual(
        updated.map(({ version }) => version).toSorted((a, b) => a - b),
        [2, 3, 4, 5, 6],
      );
      assert.equal((await limiter.entities.get('user-1'))?.version, 6);
    },
  },
  {
    title: 'an entity without a record can be neither updated nor deleted, although it has spent',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.acquire(ask({ rpm: 1 }));
      await assertRejects(limiter.entities.update('user-1', { name: 'Ann' }), 'entity.missing');
      await assertRejects(limiter.entities.update('user-1', { name: 'Ann', version: 1 }), 'entity.missing');
      await assertRejects(limiter.entities.delete('user-1'), 'entity.missing');
      assert.equal(await limiter.entities.get('user-1'), null);
    },
  },
];

const deletions: readonly Case[] = [
  {
    title: 'a deleted entity is not found, and creating it again restores none of its fields',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'user-1', name: 'Ann', metadata: { tier: 'gold' } });
      await limiter.entities.update('user-1', { name: 'Bea' });
      await limiter.entities.delete('user-1');
      await fixture.catchUp();
      assert.equal(await limiter.entities.get('user-1'), null);
      assert.deepEqual((await limiter.entities.list()).items, []);
      await fixture.clock.advance(1_000);
      const anew = await limiter.entities.create({ id: 'user-1' });
      const nothing = { name: null, parentId: null, cascade: false, metadata: {} };
      assert.deepEqual(anew, { id: 'user-1', ...nothing, createdAt: new Date(fixture.clock.now()), version: 1 });
    },
  },
  {
    title: 'the bucket and the usage of a deleted entity stay',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpd:10/day');
      await limiter.entities.create({ id: 'user-1' });
      await limiter.acquire(ask({ rpd: 8 }));
      await limiter.entities.delete('user-1');
      await denial(limiter, ask({ rpd: 3 }));
      await limiter.acquire(ask({ rpd: 2 }));
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{ rpd: 10 }]);
    },
  },
  {
    title: 'an entity can be deleted only after its children were deleted or moved',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'team' });
      for (const id of ['user-1', 'user-2']) await limiter.entities.create({ id, parentId: 'team' });
      await fixture.catchUp();
      await assertRejects(limiter.entities.delete('team'), 'entity.conflict');
      await limiter.entities.delete('user-1');
      await fixture.catchUp();
      await assertRejects(limiter.entities.delete('team'), 'entity.conflict');
      assert.equal((await limiter.entities.get('user-2'))?.parentId, 'team');
      await limiter.entities.update('user-2', { parentId: null });
      await fixture.catchUp();
      await limiter.entities.delete('team');
      assert.equal(await limiter.entities.get('team'), null);
    },
  },
  {
    title: 'one of several concurrent deletions of an entity succeeds',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'user-1' });
      const outcomes = await Promise.allSettled(times(5, async () => limiter.entities.delete('user-1')));
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      assert.equal(refused.length, 4);
      for (const { reason } of refused) await assertRejects(Promise.reject(reason), 'entity.missing');
    },
  },
];

const LEGAL_ID = `!"$%&'()*+,-./09:;<=>?@AZ[\\]^_\`az{|}~`;

const input: readonly Case[] = [
  {
    title: 'an entity id may contain every legal character and may have 256 characters',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const long = 'x'.repeat(256);
      await limiter.entities.create({ id: long });
      await limiter.entities.create({ id: LEGAL_ID, parentId: long, name: 'odd' });
      assert.equal((await limiter.entities.get(LEGAL_ID))?.name, 'odd');
      await fixture.catchUp();
      assert.equal((await limiter.entities.children(long)).items[0]?.id, LEGAL_ID);
      assert.equal((await limiter.audit.list({ entityId: LEGAL_ID })).items.length, 1);
      await limiter.entities.delete(LEGAL_ID);
      assert.equal(await limiter.entities.get(LEGAL_ID), null);
    },
  },
  {
    title: 'malformed entities and updates are refused, and nothing is written',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const before = await limiter.entities.create({ id: 'user-1', name: 'Ann' });
      for (const id of ['', 'a b', 'a#b', '$SYSTEM', 'Zoë', 'x'.repeat(257), 7, null, undefined]) {
        await assertRejects(limiter.entities.create({ id } as NewEntity), 'input.invalid');
        await assertRejects(limiter.entities.get(id as string), 'input.invalid');
        await assertRejects(limiter.entities.update(id as string, { name: 'x' }), 'input.invalid');
        await assertRejects(limiter.entities.delete(id as string), 'input.invalid');
        await assertRejects(limiter.entities.children(id as string), 'input.invalid');
      }
      for (const bad of [{ name: 5 }, { cascade: 'yes' }, { parentId: '' }, { parentId: 'a#b' }, { cascade: null }]) {
        await assertRejects(limiter.entities.create({ id: 'user-2', ...bad } as NewEntity), 'input.invalid');
        await assertRejects(limiter.entities.update('user-1', bad as never), 'input.invalid');
      }
      for (const version of [0, -1, 1.5, '1', null]) {
        await assertRejects(limiter.entities.update('user-1', { name: 'x', version } as never), 'input.invalid');
      }
      for (const bad of [null, undefined, 'x']) {
        await assertRejects(limiter.entities.create(bad as never), 'input.invalid');
        await assertRejects(limiter.entities.update('user-1', bad as never), 'input.invalid');
      }
      await fixture.catchUp();
      assert.deepEqual((await limiter.entities.list()).items, [before]);
    },
  },
];

export const entityRecords: readonly Case[] = [...metadata, ...updates, ...deletions, ...input];
