import { expect, test } from 'vitest';
import { parseConsumed, ProxyLog } from './request-log.js';

const request = (operation: string) => ({ operation, body: { TableName: 'a' } });

test('requests are counted by operation and in all', () => {
  const log = new ProxyLog(false);
  for (const operation of ['GetItem', 'UpdateItem', 'UpdateItem']) log.add(request(operation), []);
  expect([log.count(), log.count('UpdateItem'), log.count('Query')]).toEqual([3, 2, 0]);
  expect(log.byOperation()).toEqual({ GetItem: 1, UpdateItem: 2 });
  expect(log.recorded).toEqual([]);
});

test('units of reads and writes are added up apart', () => {
  const log = new ProxyLog(true);
  log.add(request('UpdateItem'), [])!.consumed = [{ CapacityUnits: 1 }];
  log.add(request('TransactWriteItems'), [])!.consumed = [{ CapacityUnits: 4 }, { CapacityUnits: 2 }];
  log.add(request('BatchGetItem'), [])!.consumed = [{ CapacityUnits: 2.5 }];
  log.add(request('UpdateItem'), ['lose-request']);
  expect(log.consumed()).toEqual({ readUnits: 2.5, writeUnits: 7 });
});

test('a cleared log starts from nothing', () => {
  const log = new ProxyLog(true);
  log.add(request('UpdateItem'), [])!.consumed = [{ CapacityUnits: 1 }];
  log.clear();
  expect([log.count(), log.recorded, log.consumed()]).toEqual([0, [], { readUnits: 0, writeUnits: 0 }]);
});

test('an answer says what it consumed once, in a list, or not at all', () => {
  const consumed = { TableName: 'a', CapacityUnits: 1 };
  expect(parseConsumed({ ConsumedCapacity: consumed })).toEqual([consumed]);
  expect(parseConsumed({ ConsumedCapacity: [consumed, consumed] })).toEqual([consumed, consumed]);
  expect(parseConsumed({})).toEqual([]);
});
