import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RecordStep } from '../bucket/writes/record-write.js';
import { renderAnew, renderSteps } from './dynamodb-executor.js';

const attributes = fc.oneof(
  fc.constantFrom(
    'rf',
    'w',
    'ttl',
    'b_rpm_tk',
    'b_a-b.c_tk',
    'b_a_long_name_tc',
    'h_lease-1',
    'h_lease-2',
    '#a0',
    ':v0',
  ),
  fc.string({ minLength: 1, maxLength: 6 }),
);
/** Few values, so that many are used twice: one text and one number print the same. */
const numbers = fc.constantFrom(0, 1, -1, 7, 2n ** 60n);
const values = fc.oneof(numbers, fc.constantFrom('1', '7', '"7', ''));
const steps = fc.array(
  fc.oneof(
    fc.record({ op: fc.constantFrom('equal', 'other', 'set'), attribute: attributes, value: values }),
    fc.record({
      op: fc.constantFrom('at-least', 'at-most', 'absent-or-at-most', 'add'),
      attribute: attributes,
      value: numbers,
    }),
    fc.record({ op: fc.constantFrom('absent', 'remove'), attribute: attributes, value: fc.constant(null) }),
  ),
  { maxLength: 50 },
) as fc.Arbitrary<readonly RecordStep[]>;

test('a write is rendered to the same bytes with the cached text of its shape as without the cache', () => {
  // Enough writes that the cache is full and starts anew several times.
  fc.assert(
    fc.property(steps, (write) => {
      const expected = JSON.stringify(renderAnew(write));
      expect(JSON.stringify(renderSteps(write))).toBe(expected);
      expect(JSON.stringify(renderSteps(write))).toBe(expected);
    }),
    { numRuns: 1_000 },
  );
});

test('two writes of one shape share the text and keep their own names and values', () => {
  const write = (leaseId: string, amount: number): readonly RecordStep[] => [
    { op: 'absent', attribute: `h_${leaseId}`, value: null },
    { op: 'add', attribute: 'b_rpm_tk', value: amount },
  ];
  const [first, second] = [renderSteps(write('one', -1)), renderSteps(write('two', -2))];
  expect(second).toMatchObject({
    UpdateExpression: first.UpdateExpression,
    ConditionExpression: first.ConditionExpression,
    ExpressionAttributeNames: { '#a0': 'h_two' },
    ExpressionAttributeValues: { ':v0': { N: '-2' } },
  });
  expect(first.ExpressionAttributeNames).toEqual({ '#a0': 'h_one' });
});

test('two values that became equal are sent once although writes of the same names had different ones before', () => {
  const write = (least: number, most: number): readonly RecordStep[] => [
    { op: 'at-least', attribute: 'b_rpm_tk', value: least },
    { op: 'at-most', attribute: 'b_rpm_tk', value: most },
  ];
  expect(renderSteps(write(1, 2)).ConditionExpression).toBe('b_rpm_tk >= :v0 AND b_rpm_tk <= :v1');
  expect(renderSteps(write(2, 2))).toEqual({
    ConditionExpression: 'b_rpm_tk >= :v0 AND b_rpm_tk <= :v0',
    ExpressionAttributeValues: { ':v0': { N: '2' } },
  });
});
