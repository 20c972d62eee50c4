import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { askForProof, findMissingPart } from './requests.js';
import type { Operation } from './transport.js';

const TABLE = 'limits';
const KEYS = [{ PK: { S: 'a' } }, { PK: { S: 'b' } }];
const BATCH = { RequestItems: { [TABLE]: { Keys: KEYS } } };

describe('requests', () => {
  test.each<Operation>(['DeleteItem', 'GetItem', 'PutItem', 'TransactWriteItems', 'UpdateItem'])(
    'a request of %s asks for the consumed capacity, because its answer could be empty otherwise',
    (operation) => {
      const asked = askForProof(operation, { TableName: TABLE });
      expect(asked).toEqual({ TableName: TABLE, ReturnConsumedCapacity: 'TOTAL' });
      expect(findMissingPart(operation, asked, {})).toBe('ConsumedCapacity');
      expect(findMissingPart(operation, asked, { ConsumedCapacity: {} })).toBeNull();
    },
  );

  test('a request that asks for the consumed capacity itself is not changed', () => {
    const input = { TableName: TABLE, Key: {}, ReturnConsumedCapacity: 'INDEXES' as const };
    expect(askForProof('UpdateItem', input)).toEqual(input);
  });

  test.each<[Operation, object, string]>([
    ['UpdateItem', { ReturnValues: 'ALL_NEW' }, 'Attributes'],
    ['BatchWriteItem', {}, 'UnprocessedItems'],
    ['CreateTable', {}, 'TableDescription'],
    ['DescribeTable', {}, 'Table'],
    ['Query', {}, 'Items'],
    ['Query', { Select: 'COUNT' }, 'Count'],
    ['Scan', {}, 'Items'],
    ['UpdateTimeToLive', {}, 'TimeToLiveSpecification'],
  ])('a request of %s with %j is not changed, and its answer must have %s', (operation, input, field) => {
    expect(askForProof(operation, input as never)).toBe(input);
    expect(findMissingPart(operation, input, { [field]: 0 })).toBeNull();
    for (const output of [{}, { [field]: null }, { $metadata: {} }]) {
      expect(findMissingPart(operation, input, output)).toBe(field);
    }
  });
});

describe('answers to BatchGetItem', () => {
  test('an answer to BatchGetItem is complete with an empty list, and without a list only if no key was processed', () => {
    const none = { UnprocessedKeys: BATCH.RequestItems };
    const one = { UnprocessedKeys: { [TABLE]: { Keys: KEYS.slice(1) } } };
    expect(findMissingPart('BatchGetItem', BATCH, { Responses: { [TABLE]: [] } })).toBeNull();
    expect(findMissingPart('BatchGetItem', BATCH, none)).toBeNull();
    expect(findMissingPart('BatchGetItem', BATCH, one)).toBe('Responses.limits');
    expect(findMissingPart('BatchGetItem', BATCH, { Responses: {}, ...one })).toBe('Responses.limits');
  });

  test('an answer to BatchGetItem needs a list for each requested table', () => {
    const names = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 4 });
    const check = (tables: readonly string[]): void => {
      const input = { RequestItems: Object.fromEntries(tables.map((name) => [name, { Keys: KEYS }])) };
      const whole = Object.fromEntries(tables.map((name) => [name, []]));
      expect(findMissingPart('BatchGetItem', input, { Responses: whole })).toBeNull();
      const [first = '', ...rest] = Object.keys(whole);
      const part = Object.fromEntries(rest.map((name) => [name, []]));
      expect(findMissingPart('BatchGetItem', input, { Responses: part })).toBe(`Responses.${first}`);
    };
    fc.assert(fc.property(names, check), { examples: [[['toString', ' ']]] });
  });
});
