import { expect, test } from 'vitest';
import { matchesFilter } from './filter-pattern.js';

const RECORD = {
  eventName: 'MODIFY',
  count: 7,
  none: null,
  tags: ['a', 'b'],
  dynamodb: { Keys: { SK: { S: '#AUDIT#01' } }, NewImage: { flag: { BOOL: true } } },
};

test.each<[pattern: object, matches: boolean]>([
  [{ eventName: ['INSERT', 'MODIFY'] }, true],
  [{ eventName: ['INSERT'] }, false],
  [{ eventName: ['MODIFY'], count: [8] }, false],
  [{ dynamodb: { Keys: { SK: { S: [{ prefix: '#AUDIT#' }] } } } }, true],
  [{ dynamodb: { Keys: { SK: { S: [{ prefix: '#STATE' }] } } } }, false],
  [{ dynamodb: { Keys: { SK: { S: [{ suffix: '01' }] } } } }, true],
  [{ dynamodb: { OldImage: { SK: { S: [{ prefix: '' }] } } } }, false],
  [{ dynamodb: { OldImage: { SK: { S: [{ exists: false }] } } } }, true],
  [{ dynamodb: { Keys: [{ exists: true }] } }, false],
  [{ dynamodb: { NewImage: { flag: { BOOL: [true] } } } }, true],
  [{ count: [{ numeric: ['>', 0, '<=', 7] }] }, true],
  [{ count: [{ numeric: ['>', 7] }] }, false],
  [{ count: [{ numeric: ['=', 7] }] }, true],
  [{ dynamodb: { Keys: { SK: { S: [{ numeric: ['>', 0] }] } } } }, false],
  [{ eventName: [{ 'anything-but': ['INSERT', 'REMOVE'] }] }, true],
  [{ eventName: [{ 'anything-but': 'MODIFY' }] }, false],
  [{ missing: [{ 'anything-but': 'MODIFY' }] }, false],
  [{ eventName: [{ 'equals-ignore-case': 'modify' }] }, true],
  [{ none: [null] }, true],
  [{ missing: [null] }, false],
  [{ tags: ['b'] }, true],
  [{ $or: [{ count: [1] }, { eventName: ['MODIFY'] }] }, true],
])('matching a record with the filter %j gives %s', (pattern, matches) => {
  expect(matchesFilter(pattern, RECORD)).toBe(matches);
});

test.each([[{}], [{ count: [] }], [{ count: [{ above: 1 }] }], [{ count: [{ numeric: ['~', 1] }] }], [{ count: 7 }]])(
  'the filter %j is refused',
  (pattern) => {
    expect(() => matchesFilter(pattern, RECORD)).toThrow(TypeError);
  },
);
