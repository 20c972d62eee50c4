import { expect, test } from 'vitest';
import { readinessOf } from './functions.js';
import { retainedIn } from './retained.js';

const state = { name: 'f', sha256: '', runtime: null, reason: null };

test.each([
  ['Active', 'Successful', 'ready'],
  ['Inactive', 'Successful', 'ready'],
  ['Pending', 'Successful', 'busy'],
  ['Active', 'InProgress', 'busy'],
  ['Active', 'Failed', 'failed'],
  ['Failed', 'Successful', 'failed'],
])('a function in state %s with update %s is %s', (status, update, kind) => {
  expect(readinessOf({ ...state, state: status, update }).kind).toBe(kind);
});

test('finds the resources that a template retains by either deletion policy', () => {
  const Resources = {
    Table: { DeletionPolicy: 'Retain' },
    Bucket: { DeletionPolicy: 'RetainExceptOnCreate' },
    Log: { DeletionPolicy: 'Delete' },
    Role: {},
  };
  expect(retainedIn(JSON.stringify({ Resources }))).toEqual(['Table', 'Bucket']);
  expect(retainedIn('Resources:\n  Table:\n    DeletionPolicy: Retain\n  Rule: { Name: !Ref Table }')).toEqual([
    'Table',
  ]);
  expect(retainedIn('Resources:\n  Table: {}')).toEqual([]);
  expect(retainedIn('')).toEqual([]);
  expect(retainedIn('{ not: [closed')).toEqual([]);
});
