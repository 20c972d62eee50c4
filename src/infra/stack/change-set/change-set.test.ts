import { describe, expect, test } from 'vitest';
import { dataLosses, isTagOnly, changeSetStateOf } from './change-set.js';
import type { ResourceChange, ChangeSet } from '../stack-tools.js';

const changeSet = (parts: Partial<ChangeSet>): ChangeSet => ({
  id: 'c',
  status: '',
  reason: null,
  changes: [],
  ...parts,
});

const change = (parts: Partial<ResourceChange>): ResourceChange => ({
  action: 'Modify',
  logicalId: 'Table',
  physicalId: 'headgate',
  type: 'AWS::DynamoDB::Table',
  replacement: 'no',
  scope: ['Properties'],
  ...parts,
});

describe('the state of a change set', () => {
  test.each([
    ["The submitted information didn't contain changes. Submit different information to create a change set.", 'empty'],
    ['No updates are to be performed.', 'empty'],
    ['Parameters: [Colour] do not exist in the template', 'failed'],
    [null, 'failed'],
  ])('a change set that failed with %j is %s', (reason, kind) => {
    expect(changeSetStateOf(changeSet({ status: 'FAILED', reason })).kind).toBe(kind);
  });

  test.each(['CREATE_PENDING', 'CREATE_IN_PROGRESS'])('a change set that is %s is pending', (status) => {
    expect(changeSetStateOf(changeSet({ status }))).toEqual({ kind: 'pending' });
  });

  test('a complete change set has its changes', () => {
    const changes = [change({})];
    expect(changeSetStateOf(changeSet({ status: 'CREATE_COMPLETE', changes }))).toEqual({ kind: 'ready', changes });
  });

  test('a change set that was deleted meanwhile is a failure, not one to wait for', () => {
    expect(changeSetStateOf(changeSet({ status: 'DELETE_COMPLETE' }))).toMatchObject({ kind: 'failed' });
  });
});

describe('changes that lose data', () => {
  test.each([
    ['a replaced table', change({ replacement: 'yes' })],
    ['a table that may be replaced', change({ replacement: 'conditional' })],
    ['a removed table', change({ action: 'Remove', replacement: null, scope: [] })],
    ['a removed archive', change({ action: 'Remove', type: 'AWS::S3::Bucket', replacement: null })],
  ])('%s loses data', (_, one) => {
    expect(dataLosses([change({}), one])).toEqual([one]);
  });

  test.each([
    ['a table that is changed in place', change({})],
    ['a new table', change({ action: 'Add', replacement: null })],
    ['a replaced function', change({ type: 'AWS::Lambda::Function', replacement: 'yes' })],
  ])('%s loses no data', (_, one) => {
    expect(dataLosses([one])).toEqual([]);
  });
});

test.each<[what: string, parts: Partial<ResourceChange>, tagsOnly: boolean]>([
  ['changes tags only', { scope: ['Tags'] }, true],
  ['also changes properties', { scope: ['Properties', 'Tags'] }, false],
  ['may be replaced', { scope: ['Tags'], replacement: 'conditional' }, false],
  ['is new', { action: 'Add', replacement: null, scope: [] }, false],
  ['has no scope', { scope: [] }, false],
])('isTagOnly of a resource that %s is %j', (...[, parts, tagsOnly]) => {
  expect(isTagOnly(change(parts))).toBe(tagsOnly);
});
