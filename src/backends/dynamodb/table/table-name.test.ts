import { expect, test } from 'vitest';
import { parseDynamoDBAddress } from '../address.js';
import { createTable, dynamodb } from '../index.js';

const REASON = '3 to 255 letters, digits, "_", "." or "-"';

test.each(['ab', 'a b', 'tä', '', 'x'.repeat(256)])(
  'the table name %j is refused with its reason, wherever it is given',
  async (name) => {
    expect(() => dynamodb({ table: name })).toThrow(`Expected \`table\` to be the name of a DynamoDB table: ${REASON}`);
    await expect(createTable({ tableName: name })).rejects.toThrow(REASON);
  },
);

test('an address whose table has too short a name says so', () => {
  expect(() => parseDynamoDBAddress('dynamodb://ab?region=eu-west-1')).toThrow(
    `Expected \`store\` to be an address whose table has ${REASON}, got "dynamodb://ab?region=eu-west-1"`,
  );
});

test.each(['abc', 'a_b.c-d', 'arn:aws:dynamodb:eu-west-1:123456789012:table/limits'])(
  '%s is the name of a table',
  (name) => {
    expect(parseDynamoDBAddress(`dynamodb://${name}`)).toMatchObject({ table: name });
  },
);
