import { StackStatus } from '@aws-sdk/client-cloudformation';
import { describe, expect, test } from 'vitest';
import type { Stack } from '../stack-tools.js';
import { decideDeploy, endingOf, hasFailed, isHeadgates } from './stack-status.js';

function stackOf(status: string, parts: Partial<Stack> = {}): Stack {
  const tags = { 'headgate:version': '1.2.3' };
  const plain = { id: 'arn:x', name: 'headgate-pre', reason: null, createdAt: null, updatedAt: null };
  return { ...plain, parameters: {}, outputs: {}, tags, status, ...parts };
}

const STATUSES = Object.values(StackStatus);

describe('the decision to deploy', () => {
  test.each([
    ['CREATE_COMPLETE', 'update'],
    ['UPDATE_COMPLETE', 'update'],
    ['UPDATE_ROLLBACK_COMPLETE', 'update'],
    ['REVIEW_IN_PROGRESS', 'create'],
    ['DELETE_COMPLETE', 'create'],
    ['CREATE_IN_PROGRESS', 'wait'],
    ['UPDATE_IN_PROGRESS', 'wait'],
    ['UPDATE_COMPLETE_CLEANUP_IN_PROGRESS', 'wait'],
    ['UPDATE_ROLLBACK_IN_PROGRESS', 'wait'],
    ['DELETE_IN_PROGRESS', 'wait'],
    ['ROLLBACK_COMPLETE', 'refuse'],
    ['CREATE_FAILED', 'refuse'],
    ['UPDATE_ROLLBACK_FAILED', 'refuse'],
    ['DELETE_FAILED', 'refuse'],
  ])('the decision for a stack that is %s is %s', (status, kind) => {
    expect(decideDeploy(stackOf(status), '').kind).toBe(kind);
  });

  test('a missing stack is created', () => {
    expect(decideDeploy(null, '')).toEqual({ kind: 'create' });
  });

  test.each(STATUSES)('a stack that is %s waits if and only if an operation is in progress', (status) => {
    expect(decideDeploy(stackOf(status), '').kind === 'wait').toBe(
      status.endsWith('_IN_PROGRESS') && status !== 'REVIEW_IN_PROGRESS',
    );
  });

  test.each([
    ['ROLLBACK_COMPLETE', 'The stack was never created: run headgate delete --env pre, then deploy again'],
    ['DELETE_FAILED', 'Delete the resource that it names, then run headgate delete --env pre'],
    ['UPDATE_ROLLBACK_FAILED', 'Run: aws cloudformation continue-update-rollback --stack-name headgate-pre'],
  ])('a stack that is %s is refused with a hint: %s', (status, hint) => {
    expect(decideDeploy(stackOf(status), ' --env pre')).toMatchObject({ hint, failed: true });
  });

  test('a stack that does not belong to Headgate is not changed, whatever its status', () => {
    for (const status of STATUSES.filter((one) => !['REVIEW_IN_PROGRESS', 'DELETE_COMPLETE'].includes(one))) {
      expect(decideDeploy(stackOf(status, { tags: { team: 'a' } }), '')).toMatchObject({
        kind: 'refuse',
        failed: false,
      });
    }
  });
});

test("a stack that was deployed by hand is recognised by Headgate's outputs", () => {
  const outputs = { TableArn: 'arn:t', StreamFunctionName: 'f' };
  expect(isHeadgates(stackOf('CREATE_COMPLETE', { tags: {}, outputs }))).toBe(true);
  expect(isHeadgates(stackOf('CREATE_COMPLETE', { tags: {}, outputs: { TableArn: 'arn:t' } }))).toBe(false);
});

describe('the end of an operation', () => {
  test.each(STATUSES)(
    'an operation on a stack that is %s continues exactly while the status is in progress',
    (status) => {
      expect(endingOf('deploy', status) === null).toBe(status.endsWith('_IN_PROGRESS'));
    },
  );

  test.each([
    ['deploy', 'CREATE_COMPLETE', 'done'],
    ['deploy', 'UPDATE_COMPLETE', 'done'],
    ['deploy', 'UPDATE_ROLLBACK_COMPLETE', 'failed'],
    ['deploy', 'ROLLBACK_COMPLETE', 'failed'],
    ['deploy', 'DELETE_COMPLETE', 'failed'],
    ['delete', 'DELETE_COMPLETE', 'done'],
    ['delete', 'DELETE_FAILED', 'failed'],
    ['delete', 'CREATE_COMPLETE', 'failed'],
  ] as const)('a %s that ends as %s is %s', (operation, status, ending) => {
    expect(endingOf(operation, status)).toBe(ending);
  });
});

test.each([
  ['CREATE_COMPLETE', false],
  ['UPDATE_COMPLETE', false],
  ['IMPORT_COMPLETE', false],
  ['UPDATE_IN_PROGRESS', false],
  ['UPDATE_ROLLBACK_IN_PROGRESS', false],
  ['REVIEW_IN_PROGRESS', false],
  ['UPDATE_ROLLBACK_COMPLETE', true],
  ['ROLLBACK_COMPLETE', true],
  ['CREATE_FAILED', true],
  ['DELETE_FAILED', true],
  ['UPDATE_ROLLBACK_FAILED', true],
  ['IMPORT_ROLLBACK_COMPLETE', true],
])('hasFailed of a stack that is %s is %j', (status, failed) => {
  expect(hasFailed(status)).toBe(failed);
});
