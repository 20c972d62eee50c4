import { expect, test } from 'vitest';
import type { DynamoRequest } from './dynamo-request.js';
import { buildServerError, buildThrottling, buildTransactionConflict } from './error-answers.js';

const TABLE_ARN = 'arn:aws:dynamodb:us-east-1:123456789012:table/tenants';

const update: DynamoRequest = { operation: 'UpdateItem', body: { TableName: 'tenants' } };
const query: DynamoRequest = { operation: 'Query', body: { TableName: 'tenants' } };
const transaction: DynamoRequest = {
  operation: 'TransactWriteItems',
  body: {
    TransactItems: [
      { Update: { TableName: 'tenants' } },
      { Put: { TableName: 'audit' } },
      { Put: { TableName: 'tenants' } },
    ],
  },
};

test('a throttling error names the hot key range of the table that was written', () => {
  expect(buildThrottling(update)).toMatchObject({
    status: 400,
    body: {
      __type: 'com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException',
      ThrottlingReasons: [{ reason: 'TableWriteKeyRangeThroughputExceeded', resource: TABLE_ARN }],
    },
  });
});

test('a throttling error distinguishes reads from writes and indexes from tables', () => {
  const { body } = buildThrottling(query, { limit: 'AccountLimitExceeded', index: 'GSI1' });
  expect(body['ThrottlingReasons']).toEqual([
    { reason: 'IndexReadAccountLimitExceeded', resource: `${TABLE_ARN}/index/GSI1` },
  ]);
});

test('a throttling error names each table of a batch or transaction once', () => {
  const batch = { operation: 'BatchGetItem', body: { RequestItems: { a: {}, b: {} } } };
  expect(resources(buildThrottling(batch))).toEqual(['table/a', 'table/b']);
  expect(resources(buildThrottling(transaction))).toEqual(['table/tenants', 'table/audit']);
});

test('the reasons field of ThrottlingException begins in lower case, as in the service', () => {
  const { body } = buildThrottling(update, { error: 'ThrottlingException' });
  expect(Object.keys(body)).toEqual(['__type', 'message', 'throttlingReasons']);
});

test('a throttling error can have no reasons', () => {
  expect(Object.keys(buildThrottling(update, { limit: null }).body)).toEqual(['__type', 'message']);
});

test('a transaction conflict of a single write is a TransactionConflictException', () => {
  expect(buildTransactionConflict(update).body['__type']).toBe(
    'com.amazonaws.dynamodb.v20120810#TransactionConflictException',
  );
});

test('a transaction conflict of a transaction cancels it, with a reason for every item', () => {
  const { body } = buildTransactionConflict(transaction, [0, 2]);
  expect(body).toMatchObject({
    __type: 'com.amazonaws.dynamodb.v20120810#TransactionCanceledException',
    Message: expect.stringContaining('[TransactionConflict, None, TransactionConflict]'),
    CancellationReasons: [{ Code: 'TransactionConflict' }, { Code: 'None' }, { Code: 'TransactionConflict' }],
  });
});

test.each([500, 503] as const)('a server error has the status %i', (status) => {
  expect(buildServerError(status).status).toBe(status);
});

function resources({ body }: ReturnType<typeof buildThrottling>): string[] {
  return (body['ThrottlingReasons'] as { resource: string }[]).map(({ resource }) => resource.split(':').at(-1)!);
}
