import { expect, test } from 'vitest';
import { parseRequest } from './dynamo-request.js';

test('the operation is the part of the target after the version', () => {
  expect(parseRequest('DynamoDB_20120810.UpdateItem', Buffer.from('{"TableName":"a"}'))).toMatchObject({
    operation: 'UpdateItem',
    body: { TableName: 'a' },
  });
});

test.each(['', 'no json', '[]', 'null'])('a body like %j has no fields', (text) => {
  expect(parseRequest('', Buffer.from(text))).toMatchObject({ operation: '', body: {} });
});
