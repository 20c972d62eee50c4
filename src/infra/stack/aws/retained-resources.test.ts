import { expect, test } from 'vitest';
import { retainedIn } from './retained-resources.js';

test('the resources that a template retains are found by either deletion policy', () => {
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
