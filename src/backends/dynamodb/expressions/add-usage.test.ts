import { expect, test } from 'vitest';
import type { UsageRecord } from '../../../backend.js';
import { index } from '../table/keys.js';
import { buildAddUsage } from './add-usage.js';

const TARGET = { tableName: 'limits', ns: 'ns1' };

const HOUR: UsageRecord = {
  entityId: 'user-1',
  resource: 'gpt-4',
  window: 'hourly',
  startMs: Date.UTC(2027, 0, 15, 8),
  consumedMilli: new Map<string, number | bigint>([
    ['in-put.tokens', 2n ** 60n],
    ['rpm', -1_000],
    ['same', 0],
  ]),
  acquires: 2,
  expired: 0,
};

test('usage is added to an hourly record on condition of the last counted change of each bucket shard', () => {
  const spans = new Map([
    ['q_0', { first: 'label/1', last: 'label/5' }],
    ['q_3~AbCd1234', { first: 'label/2', last: 'label/2' }],
  ]);
  expect(buildAddUsage(TARGET, HOUR, spans)).toEqual({
    TableName: 'limits',
    Key: { PK: { S: 'ns1/ENTITY#user-1' }, SK: { S: '#USAGE#gpt-4#hourly#2027-01-15T08:00:00.000Z' } },
    UpdateExpression: 'SET #a2 = :v4, #a3 = :v5, #a4 = :v6, #a5 = :v7, #a6 = :v8 ADD ac :v0, #a0 :v1, #a1 :v2',
    ConditionExpression: '(attribute_not_exists(#a2) OR #a2 < :v3) AND (attribute_not_exists(#a3) OR #a3 < :v5)',
    ExpressionAttributeNames: {
      '#a0': 'u_in-put.tokens',
      '#a1': 'u_rpm',
      '#a2': 'q_0',
      '#a3': 'q_3~AbCd1234',
      '#a4': 'ttl',
      '#a5': 'GSI2PK',
      '#a6': 'GSI2SK',
    },
    ExpressionAttributeValues: {
      ':v0': { N: '2' },
      ':v1': { N: '1152921504606846976' },
      ':v2': { N: '-1000' },
      ':v3': { S: 'label/1' },
      ':v4': { S: 'label/5' },
      ':v5': { S: 'label/2' },
      ':v6': { N: String(Date.UTC(2027, 0, 15, 9) / 1_000 + 90 * 86_400) },
      ':v7': { S: index.resourceOf('ns1', 'gpt-4', 'user-1') },
      ':v8': { S: 'USAGE#hourly#2027-01-15T08:00:00.000Z#user-1' },
    },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
});

test('only a monthly record is in the index of all records of its namespace', () => {
  const spans = new Map([['q_0', { first: 'label/1', last: 'label/1' }]]);
  const namesOf = (window: UsageRecord['window']) =>
    Object.values(buildAddUsage(TARGET, { ...HOUR, window }, spans).ExpressionAttributeNames ?? {});
  expect(namesOf('monthly')).toEqual(expect.arrayContaining(['GSI4PK', 'GSI4SK']));
  expect(namesOf('daily')).not.toContain('GSI4PK');
});
