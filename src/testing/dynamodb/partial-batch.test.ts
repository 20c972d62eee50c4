import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DynamoRequest } from './dynamo-request.js';
import { joinBatch, splitBatch } from './partial-batch.js';

const batchGet = (tables: Readonly<Record<string, readonly string[]>>): DynamoRequest => ({
  operation: 'BatchGetItem',
  body: {
    RequestItems: Object.fromEntries(
      Object.entries(tables).map(([table, keys]) => [table, { Keys: keys, ConsistentRead: true }]),
    ),
    ReturnConsumedCapacity: 'TOTAL',
  },
});

test('a batch of reads is split after its first keys, across tables, and keeps its settings', () => {
  expect(splitBatch(batchGet({ a: ['1', '2'], b: ['3', '4'], c: ['5'] }), 3)).toEqual({
    processed: {
      RequestItems: { a: { Keys: ['1', '2'], ConsistentRead: true }, b: { Keys: ['3'], ConsistentRead: true } },
      ReturnConsumedCapacity: 'TOTAL',
    },
    unprocessed: { b: { Keys: ['4'], ConsistentRead: true }, c: { Keys: ['5'], ConsistentRead: true } },
    field: 'UnprocessedKeys',
  });
});

test('a batch of writes is split after its first writes', () => {
  const request = { operation: 'BatchWriteItem', body: { RequestItems: { a: ['put 1', 'put 2', 'put 3'] } } };
  expect(splitBatch(request, 1)).toEqual({
    processed: { RequestItems: { a: ['put 1'] } },
    unprocessed: { a: ['put 2', 'put 3'] },
    field: 'UnprocessedItems',
  });
});

test('a batch that is small enough, and a request that is not a batch, is not split', () => {
  expect(splitBatch(batchGet({ a: ['1', '2'] }), 2)).toBeNull();
  expect(splitBatch({ operation: 'UpdateItem', body: { TableName: 'a' } }, 1)).toBeNull();
});

test('a split neither loses nor duplicates a key', () => {
  const tables = fc.dictionary(fc.stringMatching(/^[a-z]{3}$/), fc.array(fc.string(), { minLength: 1, maxLength: 5 }));
  const keysIn = (requests: unknown): string[] =>
    Object.entries(requests as Record<string, { Keys: string[] }>).flatMap(([table, { Keys }]) =>
      Keys.map((key) => `${table} ${key}`),
    );
  fc.assert(
    fc.property(tables, fc.integer({ min: 1, max: 10 }), (keys, count) => {
      const request = batchGet(keys);
      const split = splitBatch(request, count);
      if (split === null) return;
      const processed = keysIn(split.processed['RequestItems']);
      expect(processed).toHaveLength(count);
      expect([...processed, ...keysIn(split.unprocessed)].toSorted()).toEqual(
        keysIn(request.body['RequestItems']).toSorted(),
      );
    }),
  );
});

test('the joined answer also lists what the engine itself left unprocessed', () => {
  const split = splitBatch(batchGet({ a: ['1', '2', '3'] }), 2)!;
  const answer = { Responses: { a: ['item 1'] }, UnprocessedKeys: { a: { Keys: ['2'], ConsistentRead: true } } };
  expect(joinBatch(answer, split)).toEqual({
    Responses: { a: ['item 1'] },
    UnprocessedKeys: { a: { Keys: ['2', '3'], ConsistentRead: true } },
  });
});
