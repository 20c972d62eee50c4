import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditRecord, EntityRecord } from '../../../../src/backend.js';
import type { StoredConfig } from '../../../../src/core/config/config.js';
import { isHeadgateError } from '../../../../src/core/errors.js';
import { Limit } from '../../../../src/core/limit.js';
import { findEngine } from '../../../../src/testing/dynamodb/index.js';
import {
  allPages,
  change,
  enter,
  freshId,
  openStores,
  START_MS,
  startTable,
  type Stores,
  type TestTable,
} from '../../../support/dynamodb/stores.js';

const found = findEngine();
const suite = found.status === 'available' ? describe : describe.skip;
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

const PLAIN = { name: null, parentId: null, cascade: false, metadata: {} } as const;
const rpm = (amount: number) => ({ limits: [Limit.perMinute('rpm', amount)] });
const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const SYSTEM = { kind: 'system' } as const;

suite(`the stores of several processes on one table${reason}`, () => {
  let table: TestTable;
  let processes: readonly [Stores, Stores, Stores, Stores];

  beforeAll(async () => {
    table = await startTable();
    const open = (): Stores => openStores(table.transport);
    processes = [open(), open(), open(), open()];
  });
  afterAll(async () => table[Symbol.asyncDispose]());

  describe('config', () => {
    test('concurrent writers of one level take each version once, and leave one audit record each', async () => {
      const { call, admin } = await enter(processes[0]);
      const written = await Promise.all(
        times(24, async (at) => processes[at % 4]!.config.write(admin(), SYSTEM, rpm(at + 1))),
      );
      const versions = written.map(({ v }) => v).toSorted((a, b) => a - b);
      expect(versions).toEqual(times(24, (at) => at + 1));
      const last = written.find(({ v }) => v === 24);
      expect(await processes[0].config.read(call, SYSTEM)).toEqual(last);
      const records = await allPages<AuditRecord>((page) => processes[1].audit.list(call, '$SYSTEM', page));
      expect(records).toHaveLength(24);
      // Each write saw the one before it: the records form one chain.
      const after = new Map(records.map((record) => [JSON.stringify(record.after), record]));
      let text = JSON.stringify({ limits: [String(last?.limits?.[0])] });
      for (let steps = 0; steps < 24; steps++) text = JSON.stringify(after.get(text)?.before ?? null);
      expect(text).toBe('null');
    });

    test('two fields of one level that are set concurrently are both kept', async () => {
      const { call, admin } = await enter(processes[0]);
      for (let round = 1; round <= 10; round++) {
        const onUnavailable = round % 2 === 0 ? 'allow' : 'local';
        await Promise.all([
          processes[0].config.write(admin(), SYSTEM, rpm(round)),
          processes[1].config.write(admin(), SYSTEM, { onUnavailable }),
        ]);
        const stored = (await processes[2].config.read(call, SYSTEM)) as StoredConfig;
        expect([String(stored.limits), stored.onUnavailable]).toEqual([`rpm:${round}/min`, onUnavailable]);
      }
    });

    test('concurrent writes to several levels of one namespace take different versions', async () => {
      const { admin } = await enter(processes[0]);
      const written = await Promise.all(
        times(20, async (at) =>
          processes[at % 4]!.config.write(admin(), { kind: 'resource', resource: `r${at}` }, rpm(1)),
        ),
      );
      expect(new Set(written.map(({ v }) => v)).size).toBe(20);
    });

    test('of several equal concurrent writes only the first changes something', async () => {
      const { call, admin } = await enter(processes[0]);
      const written = await Promise.all(processes.map(async ({ config }) => config.write(admin(), SYSTEM, rpm(7))));
      expect(written.map(({ v }) => v)).toEqual([1, 1, 1, 1]);
      expect(await allPages((page) => processes[0].audit.list(call, null, page))).toHaveLength(1);
    });
  });

  describe('entities', () => {
    test('a child that is created while its parent is deleted is refused, or keeps its parent', async () => {
      const { call, admin } = await enter(processes[0]);
      for (let round = 0; round < 25; round++) {
        const [parent, child] = [`parent-${round}`, `child-${round}`];
        await processes[0].entities.create(admin(), { ...PLAIN, id: parent });
        const [created, deleted] = await Promise.allSettled([
          processes[1].entities.create(admin(), { ...PLAIN, id: child, parentId: parent }),
          processes[2].entities.delete(admin(), parent),
        ]);
        if (created.status === 'rejected') expect(isHeadgateError(created.reason, 'input.invalid')).toBe(true);
        if (deleted.status === 'rejected') expect(isHeadgateError(deleted.reason, 'entity.conflict')).toBe(true);
        expect(created.status).not.toBe(deleted.status);
        const there = await processes[3].entities.readMany(call, [parent, child]);
        expect(there.map((entity) => entity !== undefined)).toEqual(
          created.status === 'fulfilled' ? [true, true] : [false, false],
        );
      }
    });

    test('a parent whose children are created, moved and deleted concurrently can be deleted after the last one', async () => {
      const { call, admin } = await enter(processes[0]);
      for (const id of ['team', 'club']) await processes[0].entities.create(admin(), { ...PLAIN, id });
      await Promise.all(
        times(12, async (at) => {
          const id = `user-${at}`;
          const { entities } = processes[at % 4]!;
          await entities.create(admin(), { ...PLAIN, id, parentId: 'team' });
          if (at % 2 === 0) await entities.update(admin(), id, { parentId: 'club' }, null);
          if (at % 3 === 0) await entities.update(admin(), id, { parentId: null }, null);
          await entities.delete(admin(), id);
        }),
      );
      for (const id of ['team', 'club']) await processes[1].entities.delete(admin(), id);
      expect(await allPages((page) => processes[2].entities.list(call, page))).toEqual([]);
    });

    test('concurrent moves that would close a circle are not all made', async () => {
      const { call, admin } = await enter(processes[0]);
      for (let round = 0; round < 15; round++) {
        const ids = ['a', 'b', 'c'].map((name) => `${name}-${round}`);
        for (const id of ids) await processes[0].entities.create(admin(), { ...PLAIN, id });
        await Promise.allSettled(
          ids.map(async (id, at) =>
            processes[at]!.entities.update(admin(), id, { parentId: ids[(at + 1) % 3] ?? null }, null),
          ),
        );
        const there = (await processes[3].entities.readMany(call, ids)) as readonly EntityRecord[];
        expect(there.filter(({ parentId }) => parentId === null).length).toBeGreaterThan(0);
      }
    });

    test('of several updates of the same version one succeeds, and the others are refused', async () => {
      const { call, admin } = await enter(processes[0]);
      await processes[0].entities.create(admin(), { ...PLAIN, id: 'user-1' });
      const outcomes = await Promise.allSettled(
        times(8, async (at) => processes[at % 4]!.entities.update(admin(), 'user-1', { name: `${at}` }, 1)),
      );
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      expect(refused).toHaveLength(7);
      for (const { reason: why } of refused) expect(isHeadgateError(why, 'entity.conflict')).toBe(true);
      expect((await processes[0].entities.read(call, 'user-1'))?.version).toBe(2);
      expect(await allPages((page) => processes[0].audit.list(call, 'user-1', page))).toHaveLength(2);
    });

    test('a parent keeps its version while its children are created and deleted', async () => {
      const { call, admin } = await enter(processes[0]);
      await processes[0].entities.create(admin(), { ...PLAIN, id: 'team' });
      await processes[0].entities.create(admin(), { ...PLAIN, id: 'user-1', parentId: 'team' });
      const renamed = await processes[1].entities.update(admin(), 'team', { name: 'Team' }, 1);
      await processes[0].entities.delete(admin(), 'user-1');
      expect(await processes[2].entities.read(call, 'team')).toEqual(renamed);
      await processes[2].entities.delete(admin(), 'team');
    });

    test('an entity with a child is not deleted although the index does not show the child yet', async () => {
      const blind = openStores(table.transport, async (operation, input, forward) => {
        const output = await forward(input);
        return operation === 'Query' && 'IndexName' in input && input.IndexName === 'GSI1'
          ? { ...output, Items: [] }
          : output;
      });
      const { admin } = await enter(processes[0]);
      await processes[0].entities.create(admin(), { ...PLAIN, id: 'team' });
      await processes[0].entities.create(admin(), { ...PLAIN, id: 'user-1', parentId: 'team' });
      await expect(blind.entities.delete(admin(), 'team')).rejects.toThrow('it has children');
    });
  });

  describe('namespaces', () => {
    test('a name that several callers register concurrently gets one id, and one audit record', async () => {
      const name = `name-${freshId()}`;
      const given = await Promise.all(
        times(12, async (at) => processes[at % 4]!.namespaces.register(change(), name, freshId())),
      );
      expect(new Set(given.map(({ id }) => id)).size).toBe(1);
      const page = { limit: 100, after: null };
      expect((await processes[0].namespaces.audit(change(), name, page)).items).toHaveLength(1);
    });

    test('of a concurrent registration and recovery of one name, one gets it', async () => {
      for (let round = 0; round < 10; round++) {
        const [name, id] = [`name-${freshId()}`, freshId()];
        await processes[0].namespaces.register(change(), name, id);
        await processes[0].namespaces.delete(change(), name);
        const [recovered, registered] = await Promise.allSettled([
          processes[1].namespaces.recover(change(), id),
          processes[2].namespaces.register(change(), name, freshId()),
        ]);
        const active = await processes[3].namespaces.read(change(), name);
        if (recovered.status === 'fulfilled') expect(active?.id).toBe(id);
        else expect(isHeadgateError(recovered.reason, 'namespace.conflict')).toBe(true);
        expect(registered.status === 'fulfilled' && registered.value.id).toBe(active?.id);
      }
    });
  });

  describe('consistent reads', () => {
    test('a process that made a change reads consistently for acquires until no read can be stale', async () => {
      const consistent: unknown[] = [];
      const stores = openStores(table.transport, async (operation, input, forward) => {
        if (operation === 'BatchGetItem' && 'RequestItems' in input) {
          consistent.push(
            ...Object.values(input.RequestItems ?? {}).map((keys) => 'ConsistentRead' in keys && keys.ConsistentRead),
          );
        }
        return forward(input);
      });
      const { call, admin } = await enter(stores);
      await stores.config.readFor(call, 'user-1', 'gpt-4');
      await stores.entities.create(admin(), { ...PLAIN, id: 'user-1' });
      await stores.config.readFor(call, 'user-1', 'gpt-4');
      await stores.config.readFor({ ...call, nowMs: START_MS + 10_000 }, 'user-1', 'gpt-4');
      expect(consistent).toEqual([false, true, false]);
      await stores.config.readFor({ ...call, nowMs: START_MS + 10_000 }, 'user-1', 'gpt-4', undefined, true);
      expect(consistent.at(-1)).toBe(true);
    });
  });
});
