import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditRecord } from '../../../../src/backend.js';
import { isHeadgateError } from '../../../../src/core/errors.js';
import { Limit } from '../../../../src/core/limit.js';
import { deadlineIn } from '../../../../src/machine-time.js';
import { encodeUsage } from '../../../../src/backends/dynamodb/table/records.js';
import { findEngine } from '../../../../src/testing/dynamodb/index.js';
import {
  allPages,
  change,
  connectionLost,
  enter,
  freshId,
  NO_PAUSES,
  openStores,
  START_MS,
  startTable,
  type Stores,
  TABLE_NAME,
  type Tap,
  type TestTable,
  transactionConflict,
} from '../../../support/dynamodb/stores.js';
import { stopDeadlines } from '../../../support/models/hand-time.js';

const found = findEngine();
const suite = found.status === 'available' ? describe : describe.skip;
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

const PLAIN = { name: null, parentId: null, cascade: false, metadata: {} } as const;
const LIMITS = { limits: [Limit.perMinute('rpm', 1)] };
const SYSTEM = { kind: 'system' } as const;

/** Time that the test moves. No real request takes as long, and three attempts exceed it. */
const TIME_MS = 60_000;
const ATTEMPT_MS = 25_000;

/** Loses every other transaction: before it reaches the store, or only its answer. */
function losing(when: 'before' | 'after', token: 'kept' | 'replaced'): Tap {
  let isLost = false;
  return async (operation, input, forward) => {
    if (operation !== 'TransactWriteItems') return forward(input);
    const sent = token === 'kept' ? input : { ...input, ClientRequestToken: freshId() };
    isLost = !isLost;
    if (!isLost) return forward(sent);
    if (when === 'after') await forward(sent);
    throw connectionLost();
  };
}

/** Processes one key or item of each batch and leaves the others unprocessed. */
const oneByOne: Tap = async (operation, input, forward) => {
  if (operation === 'BatchGetItem' && 'RequestItems' in input) {
    const { Keys = [], ...rest } = (input.RequestItems?.[TABLE_NAME] ?? {}) as { Keys?: unknown[] };
    const output = await forward({
      RequestItems: { [TABLE_NAME]: { ...rest, Keys: Keys.slice(0, 1) } },
    } as typeof input);
    const left = { [TABLE_NAME]: { ...rest, Keys: Keys.slice(1) } };
    return Keys.length > 1 ? { ...output, UnprocessedKeys: left } : output;
  }
  if (operation === 'BatchWriteItem' && 'RequestItems' in input) {
    const items = (input.RequestItems?.[TABLE_NAME] ?? []) as unknown[];
    const output = await forward({ RequestItems: { [TABLE_NAME]: items.slice(0, 1) } } as typeof input);
    return items.length > 1 ? { ...output, UnprocessedItems: { [TABLE_NAME]: items.slice(1) } } : output;
  }
  return forward(input);
};

suite(`the stores while requests go wrong${reason}`, () => {
  let table: TestTable;
  let sound: Stores;

  beforeAll(async () => {
    table = await startTable();
    sound = openStores(table.transport);
  });
  afterAll(async () => table[Symbol.asyncDispose]());

  const auditOf = async (call: Parameters<Stores['audit']['list']>[0], subject: string | null) =>
    allPages<AuditRecord>((page) => sound.audit.list(call, subject, page));

  describe.each([
    ['before it was written', 'before', 'kept'],
    ['after it was written', 'after', 'kept'],
    ['after it was written, without idempotency tokens', 'after', 'replaced'],
  ] as const)('answers that are lost %s', (_, when, token) => {
    test('a config change whose answer is lost takes one version and leaves one audit record', async () => {
      const stores = openStores(table.transport, losing(when, token), NO_PAUSES);
      const { call, admin } = await enter(sound);
      for (let v = 1; v <= 3; v++) {
        const written = await stores.config.write(admin(), SYSTEM, { limits: [Limit.perMinute('rpm', v)] });
        expect(written.v).toBe(v);
        expect(await sound.config.read(call, SYSTEM)).toEqual(written);
      }
      expect((await stores.config.write(admin(), SYSTEM, { limits: null })).v).toBe(4);
      expect((await auditOf(call, null)).map(({ action }) => action)).toEqual([
        'config.set',
        'config.set',
        'config.set',
        'config.delete',
      ]);
    });

    test('each entity change whose answer is lost leaves one audit record, and the number of children stays right', async () => {
      const stores = openStores(table.transport, losing(when, token), NO_PAUSES);
      const { call, admin } = await enter(sound);
      await stores.entities.create(admin(), { ...PLAIN, id: 'team' });
      await stores.entities.create(admin(), { ...PLAIN, id: 'user-1', parentId: 'team' });
      const updated = await stores.entities.update(admin(), 'user-1', { name: 'Ann', parentId: null }, 1);
      expect(await sound.entities.read(call, 'user-1')).toEqual(updated);
      await stores.entities.delete(admin(), 'user-1');
      await stores.entities.delete(admin(), 'team');
      expect((await auditOf(call, null)).map(({ action, subject }) => `${action} ${subject}`)).toEqual([
        'entity.create team',
        'entity.create user-1',
        'entity.update user-1',
        'entity.delete user-1',
        'entity.delete team',
      ]);
    });

    test('each namespace change whose answer is lost leaves one audit record', async () => {
      const { namespaces } = openStores(table.transport, losing(when, token), NO_PAUSES);
      const [name, id] = [`name-${freshId()}`, freshId()];
      const registered = await namespaces.register(change(), name, id);
      expect(registered).toEqual({ id, name, status: 'active', createdAtMs: START_MS });
      expect((await namespaces.delete(change(), name)).status).toBe('deleted');
      expect(await namespaces.recover(change(), id)).toEqual(registered);
      await namespaces.delete(change(), name);
      expect(await namespaces.purge(change(), id)).toBe(0);
      const { items } = await sound.namespaces.audit(change(), name, { limit: 100, after: null });
      expect(items.map(({ action }) => action)).toEqual([
        'namespace.register',
        'namespace.delete',
        'namespace.recover',
        'namespace.delete',
        'namespace.purge',
      ]);
    });
  });

  test('a change whose answer is lost counts once, although another client changes the namespace meanwhile', async () => {
    const { call, admin } = await enter(sound);
    let isFirst = true;
    const stores = openStores(table.transport, async (operation, input, forward) => {
      if (operation !== 'TransactWriteItems' || !isFirst) return forward(input);
      isFirst = false;
      await forward({ ...input, ClientRequestToken: freshId() });
      await sound.config.write(admin(), SYSTEM, { limits: [Limit.perMinute('rpm', 9)] });
      throw connectionLost();
    });
    expect((await stores.config.write(admin(), SYSTEM, LIMITS)).v).toBe(1);
    expect(await sound.config.read(call, SYSTEM)).toMatchObject({ v: 2, limits: [{ capacity: 9 }] });
    expect(await auditOf(call, null)).toHaveLength(2);
  });

  test('transactions that conflict are retried until the timeout, and then fail as contended', async () => {
    using time = stopDeadlines();
    let left = 3;
    const stores = openStores(
      table.transport,
      async (operation, input, forward) => {
        if (operation !== 'TransactWriteItems' || left === 0) return forward(input);
        left -= 1;
        time.pass(ATTEMPT_MS);
        throw transactionConflict(3);
      },
      NO_PAUSES,
    );
    const { admin } = await enter(sound);
    expect((await stores.config.write(admin({ timeoutMs: 2 * TIME_MS }), SYSTEM, LIMITS)).v).toBe(1);
    left = Infinity;
    const late = stores.config.write(admin({ timeoutMs: TIME_MS }), SYSTEM, { limits: null });
    await expect(late).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'contended' });
  });

  test.each(['ProvisionedThroughputExceeded', 'ThrottlingError'])(
    'a change that %s cancels is written once there is capacity again, and otherwise fails as throttled',
    async (code) => {
      using time = stopDeadlines();
      let left = 2;
      const throttled: Tap = async (operation, input, forward) => {
        if (operation !== 'TransactWriteItems' || left-- <= 0) return forward(input);
        time.pass(ATTEMPT_MS);
        throw Object.assign(new Error('Transaction cancelled'), {
          name: 'TransactionCanceledException',
          CancellationReasons: [{ Code: 'None' }, { Code: code }],
        });
      };
      const stores = openStores(table.transport, throttled, NO_PAUSES);
      const { admin } = await enter(sound);
      expect((await stores.config.write(admin({ timeoutMs: TIME_MS }), SYSTEM, LIMITS)).v).toBe(1);
      left = Infinity;
      const late = stores.config.write(admin({ timeoutMs: TIME_MS }), SYSTEM, { limits: null });
      await expect(late).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'throttled' });
    },
  );

  test('a write that always finds a newer version fails as contended, and changes nothing', async () => {
    using time = stopDeadlines();
    const { call, admin } = await enter(sound);
    const overtaken: Tap = async (operation, input, forward) => {
      const other = { kind: 'resource', resource: freshId() } as const;
      if (operation !== 'TransactWriteItems') return forward(input);
      await sound.config.write(admin(), other, LIMITS);
      return forward(input).finally(() => time.pass(ATTEMPT_MS));
    };
    const stores = openStores(table.transport, overtaken, NO_PAUSES);
    const late = stores.config.write(admin({ timeoutMs: TIME_MS }), SYSTEM, LIMITS);
    await expect(late).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'contended' });
    expect(await sound.config.read(call, SYSTEM)).toBeUndefined();
  });

  test('a change with a missing parent is refused without a transaction', async () => {
    let transactions = 0;
    const stores = openStores(table.transport, async (operation, input, forward) => {
      if (operation === 'TransactWriteItems') transactions += 1;
      return forward(input);
    });
    const { admin } = await enter(sound);
    const refused = stores.entities.create(admin(), { ...PLAIN, id: 'user-1', parentId: 'missing' });
    await expect(refused).rejects.toSatisfy((error) => isHeadgateError(error, 'input.invalid'));
    expect(transactions).toBe(0);
  });

  test('unprocessed keys are read again', async () => {
    const stores = openStores(table.transport, oneByOne, NO_PAUSES);
    const { call, admin } = await enter(sound);
    await sound.entities.create(admin(), { ...PLAIN, id: 'team' });
    await sound.entities.create(admin(), { ...PLAIN, id: 'user-1', parentId: 'team', cascade: true });
    const levels = [
      { kind: 'entity', entityId: 'user-1', resource: 'gpt-4' },
      { kind: 'entity_default', entityId: 'user-1' },
      { kind: 'resource', resource: 'gpt-4' },
      SYSTEM,
    ] as const;
    for (const level of levels) await sound.config.write(admin(), level, LIMITS);
    const read = await stores.config.readFor(call, 'user-1', 'gpt-4');
    expect(read.entity).toMatchObject({ parentId: 'team', cascade: true });
    const { entity, entityDefault, resource, system } = read.levels;
    expect([entity, entityDefault, resource, system].map((config) => config?.v)).toEqual([1, 2, 3, 4]);
    expect(await allPages((page) => stores.entities.list(call, page), 1)).toHaveLength(2);
  });

  test('keys that stay unprocessed are an error, not missing records', async () => {
    using time = stopDeadlines();
    const neverProcessed: Tap = async (operation, input, forward) => {
      if (operation !== 'BatchGetItem' || !('RequestItems' in input)) return forward(input);
      time.pass(ATTEMPT_MS);
      return { UnprocessedKeys: input.RequestItems } as Awaited<ReturnType<typeof forward>>;
    };
    const stores = openStores(table.transport, neverProcessed, NO_PAUSES);
    const { call } = await enter(sound);
    const late = stores.config.readFor({ ...call, timeoutMs: TIME_MS }, 'user-1', 'gpt-4');
    await expect(late).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'throttled' });
  });

  test('a purge removes all records of its namespace, also unprocessed ones, and none of another namespace', async () => {
    const [gone, kept] = [await enter(sound), await enter(sound)];
    const put = async (ns: string) => {
      for (const window of ['hourly', 'daily', 'monthly'] as const) {
        const counts = { consumedMilli: new Map(), acquires: 1, expired: 0 };
        const record = { entityId: 'spender', resource: 'gpt-4', window, startMs: START_MS, ...counts };
        await table.transport.send(
          'PutItem',
          { TableName: TABLE_NAME, Item: encodeUsage(ns, record) },
          deadlineIn(9_000),
        );
      }
    };
    for (const { id, admin } of [gone, kept]) {
      await put(id);
      for (let at = 0; at < 30; at++) await sound.entities.create(admin(), { ...PLAIN, id: `user-${at}` });
      await sound.config.write(admin(), SYSTEM, LIMITS);
      await sound.managed.mark({ ...admin() }, { key: 'system', value: {} });
    }
    const stores = openStores(table.transport, oneByOne, NO_PAUSES);
    const { name } = await sound.namespaces.delete(change(), `case-${gone.id}`);
    expect(await stores.namespaces.purge(change(), gone.id)).toBe(3 + 30 + 1 + 31 + 1);
    expect(await stores.namespaces.purge(change(), gone.id)).toBe(0);
    expect((await sound.namespaces.audit(change(), name, { limit: 9, after: null })).items).toHaveLength(3);
    const left = await table.transport.send(
      'Scan' as never,
      { TableName: TABLE_NAME } as never,
      performance.now() + 9_000,
    );
    const keys = ((left as { Items?: { PK: { S: string } }[] }).Items ?? []).map(({ PK }) => PK.S);
    expect(keys.filter((key) => key.startsWith(`${gone.id}/`))).toEqual([]);
    expect(keys.filter((key) => key.startsWith(`${kept.id}/`))).toHaveLength(3 + 30 + 1 + 31 + 1 + 1);
  });

  test('a purge may take longer than its timeout, which bounds each request', async () => {
    const { id, admin } = await enter(sound);
    for (let at = 0; at < 8; at++) await sound.entities.create(admin(), { ...PLAIN, id: `user-${at}` });
    await sound.namespaces.delete(change(), `case-${id}`);
    using time = stopDeadlines();
    const slow = openStores(table.transport, async (_, input, forward) =>
      forward(input).finally(() => time.pass(ATTEMPT_MS)),
    );
    expect(await slow.namespaces.purge(change({ timeoutMs: TIME_MS }), id)).toBe(16);
  });
});
