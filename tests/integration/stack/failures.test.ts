import { describe, expect, test } from 'vitest';
import { deployStack } from '../../../src/infra/stack/deploy-stack.js';
import { type AwsServer, startAwsServer } from '../../support/aws/aws-server.js';
import {
  changes,
  changeSet,
  CREATED_CHANGE_SET,
  DONE,
  events,
  NO_STACK,
  resources,
  type Script,
  scripted,
  stack,
} from '../../support/aws/recorded-stacks.js';
import { type Limits, type StackWorld, stackWorld, wanted } from '../../support/aws/stack-world.js';

const SOME = changes(['Modify', 'Dashboard', 'AWS::CloudWatch::Dashboard', 'False']);

const COMMON: Script = {
  CreateChangeSet: [CREATED_CHANGE_SET],
  DescribeChangeSet: [changeSet('CREATE_COMPLETE', SOME)],
  DeleteChangeSet: [DONE],
  ExecuteChangeSet: [DONE],
  DeleteStack: [DONE],
  ListStackResources: [resources()],
};

async function play(script: Script, limits?: Limits): Promise<StackWorld & { server: AwsServer }> {
  const server = await startAwsServer(scripted({ ...COMMON, ...script }));
  return { ...stackWorld(server.endpoint, null, limits), server };
}

async function failureOfDeploy(script: Script, limits?: Limits): Promise<{ error: unknown; server: AwsServer }> {
  const { tools, watcher, server } = await play(script, limits);
  await using _ = server;
  const error: unknown = await deployStack(tools, watcher, wanted()).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  return { error, server };
}

describe('reasons of failed deployments', () => {
  test('deploy reports the reason of a failed change set', async () => {
    const StatusReason = 'Parameters: [LogRetentionDays] must be one of [1, 3, 5]';
    const { error, server } = await failureOfDeploy({
      DescribeStacks: [NO_STACK, stack('REVIEW_IN_PROGRESS')],
      DescribeChangeSet: [changeSet('FAILED', { StatusReason })],
    });
    expect(error).toMatchObject({
      code: 'infrastructure.change-set-failed',
      exitCode: 9,
      message: `CloudFormation refuses the change of stack headgate-pre: ${StatusReason}`,
    });
    expect(server.actions()).toEqual([
      'DescribeStacks',
      'GetItem',
      'CreateChangeSet',
      'DescribeChangeSet',
      'DeleteChangeSet',
      'DescribeStacks',
      'DeleteStack',
    ]);
  });

  test('deploy reports a template that CloudFormation refuses at once', async () => {
    const message = 'Template format error: Unresolved resource dependencies [Tabel] in the Outputs block';
    const { error } = await failureOfDeploy({
      DescribeStacks: [NO_STACK],
      CreateChangeSet: [{ error: 'ValidationError', message }],
    });
    expect(error).toMatchObject({
      code: 'infrastructure.refused',
      message: `CloudFormation CreateChangeSet: ${message}`,
    });
  });

  test('deploy reports the first resource that failed in an update that was rolled back', async () => {
    const before = [
      ['UPDATE_IN_PROGRESS', null],
      ['UPDATE_COMPLETE', null],
    ] as const;
    const { error } = await failureOfDeploy({
      DescribeStacks: [
        stack('UPDATE_COMPLETE'),
        stack('UPDATE_ROLLBACK_IN_PROGRESS'),
        stack('UPDATE_ROLLBACK_COMPLETE'),
      ],
      DescribeStackEvents: [
        events(...before),
        events(...before, ['UPDATE_IN_PROGRESS', null]),
        events(
          ...before,
          ['UPDATE_IN_PROGRESS', null, 'User Initiated'],
          ['UPDATE_FAILED', 'AlarmTopic', 'Resource update cancelled'],
          [
            'UPDATE_FAILED',
            'Dashboard',
            'Invalid request provided: The field x must be an integer (Service: CloudWatch, Status Code: 400)',
          ],
          ['UPDATE_ROLLBACK_IN_PROGRESS', null, 'The following resource(s) failed to update: [Dashboard, AlarmTopic].'],
          ['UPDATE_ROLLBACK_COMPLETE', null],
        ),
      ],
    });
    expect(error).toMatchObject({
      name: 'StackFailed',
      code: 'infrastructure.stack-failed',
      exitCode: 9,
      status: 'UPDATE_ROLLBACK_COMPLETE',
      message:
        'Stack headgate-pre is UPDATE_ROLLBACK_COMPLETE: Dashboard (AWS::Test::Dashboard): Invalid request provided: The field x must be an integer (Service: CloudWatch, Status Code: 400)',
      failures: [{ logicalId: 'Dashboard' }, { logicalId: 'AlarmTopic' }],
    });
  });

  test('deploy reports the failure of an update although the stack shows its previous state at first', async () => {
    const before = ['UPDATE_COMPLETE', null] as const;
    const { error } = await failureOfDeploy({
      DescribeStacks: [stack('UPDATE_COMPLETE'), stack('UPDATE_COMPLETE'), stack('UPDATE_ROLLBACK_COMPLETE')],
      DescribeStackEvents: [
        events(before),
        events(before, ['UPDATE_IN_PROGRESS', null]),
        events(before, ['UPDATE_IN_PROGRESS', null], ['UPDATE_FAILED', 'Dashboard', 'no']),
      ],
    });
    expect(error).toMatchObject({ status: 'UPDATE_ROLLBACK_COMPLETE', failures: [{ logicalId: 'Dashboard' }] });
  });

  test('deploy reports a failed creation, and what to do next', async () => {
    const { error } = await failureOfDeploy({
      DescribeStacks: [NO_STACK, stack('ROLLBACK_COMPLETE')],
      DescribeStackEvents: [
        events(['REVIEW_IN_PROGRESS', null]),
        events(
          ['REVIEW_IN_PROGRESS', null],
          ['CREATE_IN_PROGRESS', null],
          ['CREATE_FAILED', 'Table', 'headgate-pre already exists'],
          ['CREATE_FAILED', 'StreamRole', 'Resource creation cancelled'],
          ['ROLLBACK_IN_PROGRESS', null, 'The following resource(s) failed to create: [Table, StreamRole].'],
          ['DELETE_SKIPPED', 'ArchiveBucket'],
          ['ROLLBACK_COMPLETE', null],
        ),
      ],
    });
    expect((error as Error).message).toBe(
      'Stack headgate-pre is ROLLBACK_COMPLETE: Table (AWS::Test::Table): headgate-pre already exists. The stack was never created: run headgate delete --env pre, then deploy again. ArchiveBucket (pre-ArchiveBucket) was kept: delete it yourself',
    );
  });

  test('deploy reports what an earlier failed creation left', async () => {
    const { error, server } = await failureOfDeploy({
      DescribeStacks: [stack('ROLLBACK_COMPLETE')],
      DescribeStackEvents: [
        events(
          ['CREATE_IN_PROGRESS', null],
          ['CREATE_FAILED', 'StreamRole', 'API: iam:CreateRole is not authorized'],
          ['ROLLBACK_COMPLETE', null],
        ),
      ],
    });
    expect((error as Error).message).toBe(
      'Stack headgate-pre is ROLLBACK_COMPLETE: StreamRole (AWS::Test::StreamRole): API: iam:CreateRole is not authorized. The stack was never created: run headgate delete --env pre, then deploy again',
    );
    expect(server.actions()).toEqual(['DescribeStacks', 'DescribeStackEvents']);
  });

  test("deploy reports a stack that is not Headgate's, and changes nothing", async () => {
    const { error, server } = await failureOfDeploy({ DescribeStacks: [stack('CREATE_COMPLETE', { Tags: [] })] });
    expect(error).toMatchObject({
      code: 'infrastructure.stack-foreign',
      message: expect.stringContaining('does not belong to Headgate'),
    });
    expect(server.actions()).toEqual(['DescribeStacks']);
  });

  test('deploy reports a missing permission', async () => {
    const { error } = await failureOfDeploy({
      DescribeStacks: [
        {
          error: 'AccessDenied',
          message: 'User: arn:aws:iam::1:user/a is not authorized to perform: cloudformation:DescribeStacks',
          status: 403,
        },
      ],
    });
    expect(error).toMatchObject({
      code: 'backend.denied',
      exitCode: 8,
      message:
        'CloudFormation DescribeStacks: User: arn:aws:iam::1:user/a is not authorized to perform: cloudformation:DescribeStacks',
    });
  });

  test('deploy reports throttling that does not end', async () => {
    const { error, server } = await failureOfDeploy(
      { DescribeStacks: [{ error: 'Throttling', message: 'Rate exceeded' }] },
      { attempts: 2 },
    );
    expect(error).toMatchObject({
      code: 'backend.unavailable',
      kind: 'throttled',
      exitCode: 7,
      retryable: true,
      message: 'CloudFormation DescribeStacks: Throttling: Rate exceeded',
    });
    expect(server.actions()).toEqual(['DescribeStacks', 'DescribeStacks']);
  });

  test('deploy reports an endpoint that never answers, within the timeout of a call', async () => {
    const { error } = await failureOfDeploy({ DescribeStacks: [{ hangs: true }] }, { callMs: 300 });
    expect(error).toMatchObject({
      code: 'backend.unavailable',
      kind: 'timeout',
      message: 'CloudFormation DescribeStacks: no answer in time',
    });
  });

  test('deploy reports an endpoint without a listener', async () => {
    const { tools, watcher } = stackWorld('http://127.0.0.1:9', null, { callMs: 2_000 });
    await expect(deployStack(tools, watcher, wanted())).rejects.toMatchObject({ code: 'backend.unavailable' });
  });
});

test('deploy continues to wait after an outage of some polls', async () => {
  const { tools, watcher, server, waitedMs } = await play(
    {
      DescribeStacks: [NO_STACK, { hangs: true }, { hangs: true }, stack('ROLLBACK_COMPLETE')],
      DescribeStackEvents: [
        events(['REVIEW_IN_PROGRESS', null]),
        events(
          ['REVIEW_IN_PROGRESS', null],
          ['CREATE_IN_PROGRESS', null],
          ['CREATE_FAILED', 'Table', 'x'],
          ['ROLLBACK_COMPLETE', null],
        ),
      ],
    },
    { callMs: 200 },
  );
  await using _ = server;
  await expect(deployStack(tools, watcher, wanted())).rejects.toMatchObject({ failures: [{ reason: 'x' }] });
  expect(waitedMs()).toBeGreaterThan(0);
});
