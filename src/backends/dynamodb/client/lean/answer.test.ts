import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { failureOf } from '../failures.js';
import { LostAnswer } from '../lost-answer.js';
import { readAnswer } from './lean-transport.js';

const ITEM = { PK: { S: 'a' }, n: { N: '12345678901234567890' } };

const answerOf = (status: number, body: string, headers: Record<string, string> = {}) => ({
  status,
  headers,
  body: Buffer.from(body),
});

const thrownBy = (status: number, body: string, headers: Record<string, string> = {}): unknown => {
  try {
    return readAnswer(answerOf(status, body, headers));
  } catch (error) {
    return error;
  }
};

const failureBy = (status: number, body: object) => failureOf(thrownBy(status, JSON.stringify(body)), 'PutItem', 't');

describe('errors of DynamoDB', () => {
  const type = (name: string) => `com.amazonaws.dynamodb.v20120810#${name}`;

  test('a failed condition has the stored item', () => {
    const refusal = { __type: type('ConditionalCheckFailedException'), message: 'no' };
    expect(failureBy(400, { ...refusal, Item: ITEM })).toEqual({ kind: 'condition', item: ITEM });
    expect(failureBy(400, refusal)).toEqual({ kind: 'condition', item: undefined });
  });

  test('a cancelled transaction has its reasons', () => {
    const CancellationReasons = [{ Code: 'None' }, { Code: 'ConditionalCheckFailed', Message: 'no', Item: ITEM }];
    expect(failureBy(400, { __type: type('TransactionCanceledException'), CancellationReasons })).toEqual({
      kind: 'cancelled',
      reasons: [
        { code: 'None', item: undefined },
        { code: 'ConditionalCheckFailed', item: ITEM },
      ],
    });
  });

  test.each(['ThrottlingReasons', 'throttlingReasons'])('a throttled write names a hot key by %s', (field) => {
    const reasons = [{ reason: 'TableWriteKeyRangeThroughputExceeded', resource: 'arn' }];
    const throttled = { __type: type('ProvisionedThroughputExceededException'), [field]: reasons };
    expect(failureBy(400, throttled)).toMatchObject({ kind: 'throttled', hotKey: true });
  });

  test.each([
    ['com.amazon.coral.service#ExpiredTokenException', 400, 'fatal', 'backend.denied'],
    ['com.amazon.coral.service#InvalidSignatureException', 400, 'fatal', 'backend.denied'],
    ['com.amazon.coral.service#AccessDeniedException', 400, 'fatal', 'backend.denied'],
    ['com.amazon.coral.service#UnrecognizedClientException', 400, 'fatal', 'backend.denied'],
    ['com.amazon.coral.validate#ValidationException', 400, 'fatal', 'infrastructure.dynamodb'],
    ['ValidationException', 400, 'fatal', 'infrastructure.dynamodb'],
    [type('ResourceNotFoundException'), 400, 'fatal', 'schema.mismatch'],
    [type('TransactionConflictException'), 400, 'conflict', 'backend.unavailable'],
    [type('RequestLimitExceeded'), 400, 'throttled', 'backend.unavailable'],
    [type('InternalServerError'), 500, 'lost', 'backend.unavailable'],
    ['com.amazon.coral.availability#ThrottlingException', 400, 'throttled', 'backend.unavailable'],
  ])('the error %s with status %d is %s', (name, status, kind, code) => {
    expect(failureBy(status, { __type: name, message: 'why' })).toMatchObject({ kind, error: { code } });
  });

  test('the message of an error is kept, whether its name begins with a capital letter or not', () => {
    expect(thrownBy(400, '{"__type":"a#B","message":"why"}')).toMatchObject({ name: 'B', message: 'why' });
    expect(thrownBy(400, '{"__type":"a#B","Message":"why"}')).toMatchObject({ name: 'B', message: 'why' });
    const headers = { 'x-amzn-requestid': 'R1' };
    const $metadata = { httpStatusCode: 400, requestId: 'R1' };
    expect(thrownBy(400, '{"__type":"a#B"}', headers)).toMatchObject({ $metadata });
  });
});

test('an output is the JSON of the answer, without fields that are null', () => {
  const body = JSON.stringify({ Item: ITEM, LastEvaluatedKey: null });
  expect(readAnswer(answerOf(200, body))).toEqual({ Item: ITEM });
});

test('an answer whose checksum is of other bytes is lost, also if it is an error of DynamoDB', () => {
  const body = '{"Item":{}}';
  const right = { 'x-amz-crc32': String(crc32(body)) };
  expect(readAnswer(answerOf(200, body, right))).toEqual({ Item: {} });
  expect(thrownBy(200, '{"Item":null}', right)).toMatchObject({ name: 'LostAnswer' });
  expect(thrownBy(400, '{"__type":"a#ConditionalCheckFailedException"}', right)).toMatchObject({ name: 'LostAnswer' });
});

test.each([
  [200, ''],
  [200, '{"Item":'],
  [200, 'null'],
  [200, '[]'],
  [200, '"text"'],
  [204, ''],
  [302, ''],
  [400, ''],
  [400, '{"__type":7}'],
  [403, '{"message":"Forbidden"}'],
  [404, '<html>'],
  [502, '<html>'],
])('an answer with status %d and the body %j is lost', (status, body) => {
  expect(thrownBy(status, body)).toMatchObject({
    name: 'LostAnswer',
    message: expect.stringContaining(`${status}`) as string,
  });
});

test('an answer is read as it was sent, and every shorter part of it is lost, whatever its status', () => {
  const text = fc.string({ unit: 'binary', maxLength: 12 });
  const value = fc.oneof(
    text.map((S) => ({ S })),
    fc.bigInt().map((N) => ({ N: String(N) })),
    fc.boolean().map((BOOL) => ({ BOOL })),
    fc.array(text).map((SS) => ({ SS })),
  );
  const items = fc.array(fc.dictionary(text, value, { maxKeys: 4, noNullPrototype: true }), { maxLength: 3 });
  const check = (Items: readonly object[], cut: number, status: number): void => {
    const whole = Buffer.from(JSON.stringify({ Items }));
    expect(readAnswer({ status: 200, headers: {}, body: whole })).toEqual({ Items });
    const body = whole.subarray(0, cut % whole.length);
    expect(() => readAnswer({ status, headers: {}, body })).toThrow(LostAnswer);
  };
  fc.assert(fc.property(items, fc.nat(), fc.constantFrom(200, 400, 500), check));
});
