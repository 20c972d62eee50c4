import { expect, test } from 'vitest';
import { readinessOf } from './stack-tools.js';

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
