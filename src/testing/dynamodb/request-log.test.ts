import { expect, test } from 'vitest';
import { parseConsumed, ProxyLog } from './request-log.js';

const request = (operation: string) => ({ operation, body: { TableName: 'a' } });

test('requests are counted per operation and in total', () => {
  const log = new ProxyLog(false);
  for (const operation of ['GetItem', 'UpdateItem', 'UpdateItem']) log.add(request(operation), []);
  expect([log.count(), log.count('UpdateItem'), log.count('Query')]).toEqual([3, 2, 0]);
  expect(log.byOperation()).toEqual({ GetItem: 1, UpdateItem: 2 });
  expect(log.recorded).toEqual([]);
});

test('read units and write units are added up separately', () => {
  const log = new ProxyLog(true);
  log.add(request('UpdateItem'), [])!.consumed = [{ CapacityUnits: 1 }];
  log.add(request('TransactWriteItems'), [])!.consumed = [{ CapacityUnits: 4 }, { CapacityUnits: 2 }];
  log.add(request('BatchGetItem'), [])!.consumed = [{ CapacityUnits: 2.5 }];
  log.add(request('UpdateItem'), ['lose-request']);
  expect(log.consumed()).toEqual({ readUnits: 2.5, writeUnits: 7 });
});

test('a cleared log is empty', () => {
  const log = new ProxyLog(true);
  log.add(request('UpdateItem'), [])!.consumed = [{ CapacityUnits: 1 }];
  log.clear();
  expect([log.count(), log.recorded, log.consumed()]).toEqual([0, [], { readUnits: 0, writeUnits: 0 }]);
});

test('the consumed capacity of an answer is a single value, a list, or absent', () => {
  const consumed = { TableName: 'a', CapacityUnits: 1 };
  expect(parseConsumed({ ConsumedCapacity: consumed })).toEqual([consumed]);
  expect(parseConsumed({ ConsumedCapacity: [consumed, consumed] })).toEqual([consumed, consumed]);
  expect(parseConsumed({})).toEqual([]);
});
