import { describe, expect, test } from 'vitest';
import { dataLosses, isTagOnly, readState } from './change-set.js';
import type { Change, ChangeSet } from './cloudformation.js';

const changeSet = (parts: Partial<ChangeSet>): ChangeSet => ({
  id: 'c',
  status: '',
  reason: null,
  changes: [],
  ...parts,
});

const change = (parts: Partial<Change>): Change => ({
  action: 'Modify',
  logicalId: 'Table',
  physicalId: 'headgate',
  type: 'AWS::DynamoDB::Table',
  replacement: 'no',
  scope: ['Properties'],
  ...parts,
});

describe('a change set', () => {
  test.each([
    ["The submitted information didn't contain changes. Submit different information to create a change set.", 'empty'],
    ['No updates are to be performed.', 'empty'],
    ['Parameters: [Colour] do not exist in the template', 'failed'],
    [null, 'failed'],
  ])('that failed with %j is %s', (reason, kind) => {
    expect(readState(changeSet({ status: 'FAILED', reason })).kind).toBe(kind);
  });

  test.each(['CREATE_PENDING', 'CREATE_IN_PROGRESS'])('%s is not known yet', (status) => {
    expect(readState(changeSet({ status }))).toEqual({ kind: 'pending' });
  });

  test('that is complete has its changes', () => {
    const changes = [change({})];
    expect(readState(changeSet({ status: 'CREATE_COMPLETE', changes }))).toEqual({ kind: 'ready', changes });
  });

  test('that somebody deleted meanwhile is a failure, not one to wait for', () => {
    expect(readState(changeSet({ status: 'DELETE_COMPLETE' }))).toMatchObject({ kind: 'failed' });
  });
});

describe('data is out of reach', () => {
  test.each([
    ['a replaced table', change({ replacement: 'yes' })],
    ['a table that may be replaced', change({ replacement: 'conditional' })],
    ['a removed table', change({ action: 'Remove', replacement: null, scope: [] })],
    ['a removed archive', change({ action: 'Remove', type: 'AWS::S3::Bucket', replacement: null })],
  ])('by %s', (_, one) => {
    expect(dataLosses([change({}), one])).toEqual([one]);
  });

  test.each([
    ['a table that is changed in place', change({})],
    ['a new table', change({ action: 'Add', replacement: null })],
    ['a replaced function', change({ type: 'AWS::Lambda::Function', replacement: 'yes' })],
  ])('not by %s', (_, one) => {
    expect(dataLosses([one])).toEqual([]);
  });
});

test.each<[what: string, parts: Partial<Change>, tagsOnly: boolean]>([
  ['changes tags only', { scope: ['Tags'] }, true],
  ['changes properties, too', { scope: ['Properties', 'Tags'] }, false],
  ['may be replaced', { scope: ['Tags'], replacement: 'conditional' }, false],
  ['is new', { action: 'Add', replacement: null, scope: [] }, false],
  ['says nothing of what changes', { scope: [] }, false],
])('a resource that %s is tags only: %j', (...[, parts, tagsOnly]) => {
  expect(isTagOnly(change(parts))).toBe(tagsOnly);
});
