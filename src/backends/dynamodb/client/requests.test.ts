import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { stopDeadlines, stopTimers, until } from '../../../../tests/support/models/hand-time.js';
import {
  clientOf,
  type ShardEngine,
  startShardEngine,
  TABLE_NAME,
} from '../../../../tests/support/dynamodb/shard/shard-engine.js';
import { fault, type FaultProxy, findEngine, startFaultProxy } from '../../../testing/dynamodb/index.js';
import { keyItem, type RecordKey } from '../table/keys.js';
import { deadlineIn } from '../../../machine-time.js';
import { deleteItems, readItems } from './batches.js';
import { readItem, send, sendRepeatable, type Table } from './requests.js';
import { sdkTransport } from './sdk-transport.js';

const found = findEngine();
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

describe.skipIf(found.status === 'unavailable')(`requests${reason}`, () => {
  let engine: ShardEngine;
  let proxy: FaultProxy;
  let client: DynamoDBClient;
  /** Behind the proxy, without pauses. */
  let table: Table;

  beforeAll(async () => {
    engine = await startShardEngine();
    proxy = await startFaultProxy(engine.engine.endpoint);
    client = clientOf(engine.engine, proxy.endpoint);
    table = { name: TABLE_NAME, transport: sdkTransport({ client }), random: () => 0 };
  });
  afterEach(() => {
    proxy.heal();
    proxy.requests.clear();
  });
  afterAll(async () => {
    client?.destroy();
    await proxy?.stop();
    await engine?.[Symbol.asyncDispose]();
  });

  /**
   * A store that always gives this answer at once. With the longest pauses, the number of attempts before the deadline
   * is known.
   */
  const answering = (answer: (input: Readonly<Record<string, unknown>>) => unknown): Table => ({
    name: TABLE_NAME,
    random: () => 1,
    transport: { ...table.transport, send: async (_, input) => answer(input as never) as never },
  });
  const keyOf = (name: string): RecordKey => ({ PK: `requests/${name}`, SK: '#STATE' });
  const put = async (keys: readonly RecordKey[]): Promise<void> => {
    for (const key of keys) await engine.send('PutItem', { TableName: TABLE_NAME, Item: keyItem(key) });
  };
  const namesOf = (
    items: readonly (Record<string, { S?: string | undefined }> | undefined)[],
  ): (string | undefined)[] => items.map((item) => item?.['PK']?.S);

  test('a request asks for a field that proves its answer, and an answer without it counts as lost', async () => {
    const asked: unknown[] = [];
    const store = answering((input) => {
      asked.push(input['ReturnConsumedCapacity']);
      return {};
    });
    const answer = await send(store, 'GetItem', { TableName: TABLE_NAME, Key: {} }, deadlineIn(1_000));
    expect(asked).toEqual(['TOTAL']);
    expect(answer).toMatchObject({ ok: false, failure: { kind: 'lost' } });
  });

  describe('reading many items', () => {
    test('items are returned in the order of their keys, including repeated keys and keys without an item', async () => {
      const [a, b, none] = [keyOf('many-a'), keyOf('many-b'), keyOf('many-none')];
      await put([a, b]);
      expect(namesOf(await readItems(table, [b, none, a, b], deadlineIn(9_000)))).toEqual([
        b.PK,
        undefined,
        a.PK,
        b.PK,
      ]);
      expect(await readItems(table, [], deadlineIn(9_000))).toEqual([]);
      expect(proxy.requests.count('BatchGetItem')).toBe(1);
    });

    test('more than 100 keys are read in several requests, and unprocessed keys are requested again', async () => {
      const keys = Array.from({ length: 120 }, (_, at) => keyOf(`left-${at}`));
      const there = keys.filter((_, at) => at % 3 === 0);
      await put(there);
      proxy.inject(fault.processOnly(40));
      const names = namesOf(await readItems(table, keys, deadlineIn(9_000)));
      expect(names).toEqual(keys.map((key) => (there.includes(key) ? key.PK : undefined)));
      // 100 keys at 40 a time, and 20.
      expect(proxy.requests.count('BatchGetItem')).toBe(4);
    });

    test('reading fails as throttled if keys stay unprocessed until the deadline', async () => {
      using time = stopDeadlines();
      const never = answering((input) => {
        time.pass(60);
        return { UnprocessedKeys: input['RequestItems'] };
      });
      const late = readItems(never, [keyOf('never')], deadlineIn(100));
      await expect(late).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'throttled' });
    });
  });

  describe('deleting many items', () => {
    test('deleting continues until no key is unprocessed', async () => {
      const keys = Array.from({ length: 30 }, (_, at) => keyOf(`delete-${at}`));
      await put(keys);
      proxy.inject(fault.processOnly(10));
      await deleteItems(table, keys, deadlineIn(9_000));
      expect(namesOf(await readItems(engine.table, keys, deadlineIn(9_000)))).toEqual(keys.map(() => undefined));
      expect(proxy.requests.count('BatchWriteItem')).toBe(4);
    });

    test('deleting fails as throttled if keys stay unprocessed until the deadline', async () => {
      using time = stopDeadlines();
      const never = answering((input) => {
        time.pass(60);
        return { UnprocessedItems: input['RequestItems'] };
      });
      const late = deleteItems(never, [keyOf('never')], deadlineIn(100));
      await expect(late).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'throttled' });
    });
  });

  describe('repeatable requests', () => {
    const key = keyOf('repeatable');
    const read = { TableName: TABLE_NAME, Key: keyItem(key) };

    test.each([
      ['throttled', () => fault.throttle()],
      ['lost on the way', () => fault.loseRequest()],
      ['served without an answer', () => fault.loseAnswer()],
      ['refused with an error of the server', () => fault.serverError()],
    ])('a repeatable request is sent again after it was %s', async (_, make) => {
      await put([key]);
      proxy.inject(make(), { operations: ['GetItem'], times: 2 });
      expect(await readItem(table, key, deadlineIn(9_000))).toEqual(keyItem(key));
      expect(proxy.requests.count('GetItem')).toBe(3);
    });

    test('a repeatable request is given up after six attempts, with the error of the last', async () => {
      proxy.inject(fault.throttle(), { operations: ['GetItem'] });
      await expect(readItem(table, key, deadlineIn(9_000))).rejects.toMatchObject({ kind: 'throttled' });
      expect(proxy.requests.count('GetItem')).toBe(6);
    });

    test('a repeatable request is given up if the next attempt would be after the deadline', async () => {
      using time = stopDeadlines();
      let attempts = 0;
      const failing = answering(() => {
        attempts += 1;
        time.pass(30);
        throw Object.assign(new Error('out'), { name: 'InternalServerError', $metadata: { httpStatusCode: 500 } });
      });
      // The first pause is of 25 ms, the second of 50.
      await expect(readItem(failing, key, deadlineIn(100))).rejects.toMatchObject({ kind: 'server' });
      expect(attempts).toBe(2);
    });

    test('a repeatable request is not sent again after a fatal failure', async () => {
      proxy.inject(fault.accessDenied(), { operations: ['GetItem'] });
      await expect(readItem(table, key, deadlineIn(9_000))).rejects.toMatchObject({ code: 'backend.denied' });
      expect(proxy.requests.count('GetItem')).toBe(1);
    });

    test('a repeatable write returns a failed condition', async () => {
      await put([key]);
      const input = { TableName: TABLE_NAME, Item: keyItem(key), ConditionExpression: 'attribute_not_exists(PK)' };
      expect(await sendRepeatable(table, 'PutItem', input, deadlineIn(9_000))).toMatchObject({
        failure: { kind: 'condition' },
      });
      expect(proxy.requests.count('PutItem')).toBe(1);
    });

    test('reading an item that does not exist returns undefined', async () => {
      expect(await readItem(table, keyOf('nothing'), deadlineIn(9_000))).toBeUndefined();
      expect(await send(table, 'GetItem', read, deadlineIn(9_000))).toMatchObject({ ok: true });
    });
  });

  describe('deadlines', () => {
    const read = { TableName: TABLE_NAME, Key: keyItem(keyOf('deadline')) };

    test('a request whose deadline has passed is not sent', async () => {
      const answer = await send(table, 'GetItem', read, deadlineIn(-1));
      expect(answer).toMatchObject({ ok: false, failure: { kind: 'unreached', error: { kind: 'timeout' } } });
      expect(proxy.requests.count()).toBe(0);
    });

    test('a request without an answer ends at its deadline', async () => {
      using time = stopTimers();
      const held = proxy.inject(fault.holdAnswer(), { operations: ['GetItem'] });
      const answer = send(table, 'GetItem', read, deadlineIn(80));
      await until(() => held.fired > 0);
      time.pass(80);
      expect(await answer).toMatchObject({ ok: false, failure: { kind: 'lost', error: { kind: 'timeout' } } });
      held.release();
    });
  });
});
