import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditRecord, Call, EntityRecord, UsageQuery, UsageRecord } from '../../../../src/backend.js';
import { deadlineIn } from '../../../../src/machine-time.js';
import { encodeUsage } from '../../../../src/backends/dynamodb/table/records.js';
import { Limit } from '../../../../src/core/limit.js';
import { AUDIT_LIFE_MS, usageLifeMs } from '../../../../src/core/usage/usage.js';
import { findEngine } from '../../../../src/testing/dynamodb/index.js';
import {
  allPages,
  enter,
  openStores,
  START_MS,
  startTable,
  type Stores,
  TABLE_NAME,
  type Tap,
  type TestTable,
} from '../../../support/dynamodb/stores.js';

const found = findEngine();
const suite = found.status === 'available' ? describe : describe.skip;
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

const HOUR_MS = 3_600_000;
const HOUR_START_MS = Math.floor(START_MS / HOUR_MS) * HOUR_MS;
const PLAIN = { name: null, parentId: null, cascade: false, metadata: {} } as const;
const LIMITS = { limits: [Limit.perMinute('rpm', 1)] };
const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

/** Limits every query to one row. */
const oneRow: Tap = async (operation, input, forward) =>
  forward(operation === 'Query' ? { ...input, Limit: 1 } : input);

/** Counts the read units and the requests. */
function metered(): { readonly tap: Tap; readonly spent: { units: number; requests: number } } {
  const spent = { units: 0, requests: 0 };
  const tap: Tap = async (_operation, input, forward) => {
    const output = await forward({ ...input, ReturnConsumedCapacity: 'TOTAL' });
    const consumed = 'ConsumedCapacity' in output ? [output.ConsumedCapacity].flat() : [];
    for (const part of consumed) spent.units += part?.CapacityUnits ?? 0;
    spent.requests += 1;
    return output;
  };
  return { tap, spent };
}

suite(`lists and reads of the stores${reason}`, () => {
  let table: TestTable;
  let stores: Stores;
  let slow: Stores;

  beforeAll(async () => {
    table = await startTable();
    stores = openStores(table.transport);
    slow = openStores(table.transport, oneRow);
  });
  afterAll(async () => table[Symbol.asyncDispose]());

  /** Lists with several page sizes, and with queries of one row. */
  const expectPages = async (
    list: (of: Stores, page: never) => unknown,
    expected: readonly unknown[],
  ): Promise<void> => {
    for (const limit of [3, 20, 1_000]) {
      expect(await allPages((page) => list(stores, page as never), limit)).toEqual(expected);
    }
    expect(await allPages((page) => list(slow, page as never), 9)).toEqual(expected);
  };

  test('entities, configs and audit records of all partitions are listed in order, each once', async () => {
    const { call, admin } = await enter(stores);
    const ids = times(40, (at) => `user-${(at * 7) % 40}`);
    for (const id of ids) await stores.entities.create(admin(), { ...PLAIN, id });
    for (const entityId of ids.slice(0, 20)) {
      await stores.config.write(admin(), { kind: 'entity', entityId, resource: 'gpt-4' }, LIMITS);
    }
    await stores.config.write(admin(), { kind: 'entity', entityId: ids[0]!, resource: 'gpt-4' }, { limits: null });
    const entities = (await stores.entities.readMany(call, ids.toSorted())) as readonly EntityRecord[];
    await expectPages((of, page) => of.entities.list(call, page), entities);
    await expectPages((of, page) => of.config.list(call, 'gpt-4', page), ids.slice(1, 20).toSorted());
    const audit = await allPages<AuditRecord>((page) => stores.audit.list(call, null, page));
    expect(audit.map(({ action }) => action)).toEqual([
      ...times(40, () => 'entity.create'),
      ...times(20, () => 'config.set'),
      'config.delete',
    ]);
    expect(audit.map(({ id }) => id)).toEqual(audit.map(({ id }) => id).toSorted());
    await expectPages((of, page) => of.audit.list(call, null, page), audit);
    const newestFirst = (page: object) => ({ ...page, isDescending: true }) as never;
    await expectPages((of, page) => of.audit.list(call, null, newestFirst(page)), audit.toReversed());
    const levels = await allPages((page) => stores.config.all(call, page));
    expect(levels).toHaveLength(19);
    await expectPages((of, page) => of.config.all(call, page), levels);
  });

  test('a page is full although the index still has deleted records', async () => {
    const { call, admin } = await enter(stores);
    for (const at of times(9, Number)) await stores.entities.create(admin(), { ...PLAIN, id: `user-${at}` });
    const gone = new Set(['user-1', 'user-2', 'user-5']);
    const lagging = openStores(table.transport, async (operation, input, forward) => {
      const output = await forward(input);
      if (operation !== 'BatchGetItem' || !('Responses' in output)) return output;
      const items = output.Responses?.[TABLE_NAME] ?? [];
      return { ...output, Responses: { [TABLE_NAME]: items.filter((item) => !gone.has(item['entity_id']?.S ?? '')) } };
    });
    const first = await lagging.entities.list(call, { limit: 4, after: null });
    expect(first.items.map(({ id }) => id)).toEqual(['user-0', 'user-3', 'user-4', 'user-6']);
    const rest = await lagging.entities.list(call, { limit: 4, after: first.next });
    expect([rest.items.map(({ id }) => id), rest.next]).toEqual([['user-7', 'user-8'], null]);
  });

  test('an audit record is listed for ninety days, whether or not it has been removed', async () => {
    const { call, admin } = await enter(stores);
    await stores.entities.create(admin(), { ...PLAIN, id: 'user-1' });
    const shownAt = async (nowMs: number, subject: string | null) =>
      (await stores.audit.list({ ...call, nowMs }, subject, { limit: 9, after: null })).items.length;
    for (const subject of ['user-1', null]) {
      expect(await shownAt(START_MS + AUDIT_LIFE_MS, subject)).toBe(1);
      expect(await shownAt(START_MS + AUDIT_LIFE_MS + 1, subject)).toBe(0);
    }
  });

  describe('usage queries', () => {
    let call: Call;
    const all: UsageRecord[] = [];

    beforeAll(async () => {
      ({ call } = await enter(stores));
      for (const hour of times(6, Number)) {
        for (const entityId of ['a', 'a!', 'b', ...times(6, (at) => `user-${at}`)]) {
          const consumedMilli = new Map([['rpm', 1_000n * 10n ** 20n + BigInt(hour)]]);
          const startMs = HOUR_START_MS + hour * HOUR_MS;
          all.push({ entityId, resource: 'gpt-4', window: 'hourly', startMs, consumedMilli, acquires: 2, expired: 1 });
        }
      }
      const others = [
        { ...all[0]!, window: 'daily' as const },
        { ...all[0]!, resource: 'gpt-4o' },
      ];
      for (const record of [...all, ...others]) {
        const Item = encodeUsage(call.namespaceId, record);
        await table.transport.send('PutItem', { TableName: TABLE_NAME, Item }, deadlineIn(9_000));
      }
    });

    const query = (overrides: Partial<UsageQuery>): UsageQuery => ({
      entityId: null,
      resource: 'gpt-4',
      window: 'hourly',
      fromMs: 0,
      toMs: Number.MAX_SAFE_INTEGER,
      ...overrides,
    });
    const PARTIES = [
      ['all entities', null],
      ['one entity', 'a'],
    ] as const;
    const later: Call['nowMs'] = HOUR_START_MS + 6 * HOUR_MS;

    test('usage of a resource is listed by time, then by entity, page by page', async () => {
      await expectPages((of, page) => of.usage.query({ ...call, nowMs: later }, query({}), page), all);
    });

    test('usage of an entity is listed by time, page by page', async () => {
      const ofOne = query({ entityId: 'a!' });
      const expected = all.filter(({ entityId }) => entityId === 'a!');
      await expectPages((of, page) => of.usage.query({ ...call, nowMs: later }, ofOne, page), expected);
    });

    test.each(PARTIES)('usage of %s contains the windows that begin within the range', async (_, entityId) => {
      const hours = async (fromMs: number, toMs: number): Promise<number[]> => {
        const range = query({ entityId, fromMs: HOUR_START_MS + fromMs, toMs: HOUR_START_MS + toMs });
        const records = await allPages<UsageRecord>((page) =>
          stores.usage.query({ ...call, nowMs: later }, range, page),
        );
        return [...new Set(records.map(({ startMs }) => (startMs - HOUR_START_MS) / HOUR_MS))];
      };
      expect(await hours(HOUR_MS, 3 * HOUR_MS)).toEqual([1, 2]);
      expect(await hours(HOUR_MS + 1, 3 * HOUR_MS + 1)).toEqual([2, 3]);
      expect(await hours(3 * HOUR_MS, HOUR_MS)).toEqual([]);
      expect(await hours(-9e15, 9e15)).toEqual([0, 1, 2, 3, 4, 5]);
    });

    test.each(PARTIES)(
      'usage of %s is listed until it expires, whether or not it has been removed',
      async (_, entityId) => {
        const nowMs = HOUR_START_MS + usageLifeMs('hourly') + 4 * HOUR_MS;
        const records = await allPages<UsageRecord>((page) =>
          stores.usage.query({ ...call, nowMs }, query({ entityId }), page),
        );
        expect([...new Set(records.map(({ startMs }) => (startMs - HOUR_START_MS) / HOUR_MS))]).toEqual([4, 5]);
      },
    );
  });

  test('the config levels of an entity cost 2.5 units and one request, those of its parent 1.5', async () => {
    const { tap, spent } = metered();
    const { call, admin } = await enter(stores);
    await stores.config.write(admin(), { kind: 'system' }, LIMITS);
    const other = openStores(table.transport, tap);
    await other.namespaces.read(call, `case-${call.namespaceId}`);
    Object.assign(spent, { units: 0, requests: 0 });
    const { levels } = await other.config.readFor(call, 'user-1', 'gpt-4');
    expect(spent).toEqual({ units: 2.5, requests: 1 });
    const parent = await other.config.readFor(call, 'team', 'gpt-4', levels);
    expect(spent).toEqual({ units: 4, requests: 2 });
    expect(parent.levels.system).toEqual(levels.system);
  });
});
