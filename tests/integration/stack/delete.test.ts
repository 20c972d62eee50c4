import { describe, expect, test } from 'vitest';
import { deleteStack } from '../../../src/infra/stack/delete-stack.js';
import { inspectStack, listStacks } from '../../../src/infra/stack/status/inspect-stack.js';
import { chooseNames } from '../../../src/infra/stack/stack-name.js';
import { type AwsServer, startAwsServer } from '../../support/aws/aws-server.js';
import {
  DONE,
  events,
  NO_STACK,
  resources,
  type Script,
  scripted,
  stack,
  STACK_ID,
  stackMember,
} from '../../support/aws/recorded-stacks.js';
import { BUNDLES, type StackWorld, stackWorld } from '../../support/aws/stack-world.js';

const NAMES = chooseNames({ env: 'pre' });

async function play(script: Script): Promise<StackWorld & { server: AwsServer }> {
  const server = await startAwsServer(scripted({ DeleteStack: [DONE], ...script }));
  return { ...stackWorld(server.endpoint), server };
}

describe('deletion of a stack', () => {
  const CONFIRM = { names: NAMES, dryRun: false, confirm: () => Promise.resolve() };
  const TEMPLATE = {
    result: { TemplateBody: JSON.stringify({ Resources: { Table: { DeletionPolicy: 'Retain' }, Log: {} } }) },
  };
  const EXISTING: Script = {
    GetTemplate: [TEMPLATE],
    ListStackResources: [resources(['Table', 'headgate-pre'], ['Log', 'l'])],
  };

  test('delete reports what stays, and polls by the id, because a deleted stack has no name', async () => {
    const { tools, watcher, told, server } = await play({
      ...EXISTING,
      DescribeStacks: [stack('CREATE_COMPLETE'), stack('DELETE_IN_PROGRESS'), stack('DELETE_COMPLETE')],
      DescribeStackEvents: [
        events(['CREATE_COMPLETE', null]),
        events(['CREATE_COMPLETE', null], ['DELETE_IN_PROGRESS', null]),
        events(
          ['CREATE_COMPLETE', null],
          ['DELETE_IN_PROGRESS', null],
          ['DELETE_SKIPPED', 'Table'],
          ['DELETE_COMPLETE', null],
        ),
      ],
    });
    await using _ = server;
    const asked: unknown[] = [];
    const confirm = (...question: unknown[]): Promise<void> => Promise.resolve(void asked.push(question[1]));
    const kept = [{ logicalId: 'Table', physicalId: 'headgate-pre' }];
    expect(await deleteStack(tools, watcher, { ...CONFIRM, confirm })).toEqual({ deleted: true, kept });
    expect(asked).toEqual([kept]);
    expect(told).toEqual([
      'deleting stack headgate-pre',
      'DELETE_IN_PROGRESS headgate-pre',
      'DELETE_SKIPPED Table',
      'DELETE_COMPLETE headgate-pre',
    ]);
    const polls = server.requests
      .filter(({ action }) => action === 'DescribeStacks')
      .map(({ params }) => params['StackName']);
    expect(polls).toEqual(['headgate-pre', STACK_ID, STACK_ID]);
  });

  test('delete of a missing stack succeeds', async () => {
    const { tools, watcher, server } = await play({ DescribeStacks: [NO_STACK] });
    await using _ = server;
    expect(await deleteStack(tools, watcher, CONFIRM)).toEqual({ deleted: false, kept: [] });
    expect(server.actions()).toEqual(['DescribeStacks']);
  });

  test('a dry run of delete deletes nothing', async () => {
    const { tools, watcher, server } = await play({ ...EXISTING, DescribeStacks: [stack('CREATE_COMPLETE')] });
    await using _ = server;
    const done = await deleteStack(tools, watcher, { ...CONFIRM, dryRun: true });
    expect(done).toEqual({ deleted: true, kept: [{ logicalId: 'Table', physicalId: 'headgate-pre' }] });
    expect(server.actions().toSorted()).toEqual(['DescribeStacks', 'GetTemplate', 'ListStackResources']);
  });

  test('a delete that failed names the resources that could not be deleted, and why', async () => {
    const { tools, watcher, server } = await play({
      ...EXISTING,
      DescribeStacks: [stack('CREATE_COMPLETE'), stack('DELETE_FAILED')],
      DescribeStackEvents: [
        events(['CREATE_COMPLETE', null]),
        events(
          ['CREATE_COMPLETE', null],
          ['DELETE_IN_PROGRESS', null],
          ['DELETE_FAILED', 'ArchiveBucket', 'The bucket you tried to delete is not empty'],
          ['DELETE_FAILED', 'AcquirePolicy', 'Cannot delete a policy attached to entities.'],
          ['DELETE_FAILED', null, 'The following resource(s) failed to delete: [ArchiveBucket, AcquirePolicy].'],
        ),
      ],
    });
    await using _ = server;
    await expect(deleteStack(tools, watcher, CONFIRM)).rejects.toMatchObject({
      status: 'DELETE_FAILED',
      message:
        'Stack headgate-pre is DELETE_FAILED: ArchiveBucket (AWS::Test::ArchiveBucket): The bucket you tried to delete is not empty; AcquirePolicy (AWS::Test::AcquirePolicy): Cannot delete a policy attached to entities',
      failures: [
        { logicalId: 'ArchiveBucket', reason: 'The bucket you tried to delete is not empty' },
        { logicalId: 'AcquirePolicy', reason: 'Cannot delete a policy attached to entities.' },
      ],
    });
  });

  test('a delete that CloudFormation refuses reports the reason', async () => {
    const message = 'Stack [headgate-pre] cannot be deleted while TerminationProtection is enabled';
    const { tools, watcher, server } = await play({
      ...EXISTING,
      DescribeStacks: [stack('CREATE_COMPLETE')],
      DescribeStackEvents: [events(['CREATE_COMPLETE', null])],
      DeleteStack: [{ error: 'ValidationError', message }],
    });
    await using _ = server;
    await expect(deleteStack(tools, watcher, CONFIRM)).rejects.toThrow(`CloudFormation DeleteStack: ${message}`);
  });

  test("delete of a stack that is not Headgate's is refused", async () => {
    const { tools, watcher, server } = await play({ DescribeStacks: [stack('CREATE_COMPLETE', { Tags: [] })] });
    await using _ = server;
    await expect(deleteStack(tools, watcher, CONFIRM)).rejects.toThrow('nothing was deleted');
    expect(server.actions()).toEqual(['DescribeStacks']);
  });
});

describe('status and list of stacks', () => {
  test('list shows the stacks of Headgate from every page, and no others', async () => {
    const page = (names: readonly string[], NextToken?: string) => ({
      result: {
        Stacks: names.map((StackName) =>
          stackMember('CREATE_COMPLETE', { StackName, ...(StackName === 'alien' ? { Tags: [] } : {}) }),
        ),
        NextToken,
      },
    });
    const { tools, server } = await play({
      DescribeStacks: [page(['headgate-pre', 'alien'], 'more'), page(['headgate'])],
    });
    await using _ = server;
    expect((await listStacks(tools)).map(({ name }) => name)).toEqual(['headgate', 'headgate-pre']);
    expect(server.requests.map(({ params }) => params['NextToken'])).toEqual([undefined, 'more']);
  });

  test('status finds what is wrong with a stack, and sends only read requests', async () => {
    const { tools, server } = await play({
      DescribeStacks: [stack('UPDATE_ROLLBACK_COMPLETE')],
      ListStackResources: [resources(['StreamFunction', 'gone'], ['ReconcilerFunction', 'f'])],
      DescribeStackEvents: [
        events(
          ['UPDATE_IN_PROGRESS', null],
          ['UPDATE_FAILED', 'Dashboard', 'because'],
          ['UPDATE_ROLLBACK_COMPLETE', null],
        ),
      ],
      GetFunctionConfiguration: [
        { error: 'ResourceNotFoundException', message: 'Function not found', status: 404 },
        {
          result: {
            FunctionName: 'f',
            CodeSha256: 'x',
            State: 'Active',
            LastUpdateStatus: 'Failed',
            LastUpdateStatusReason: 'too large',
          },
        },
      ],
    });
    await using _ = server;
    const found = await inspectStack(tools, NAMES, BUNDLES);
    expect(found).toMatchObject({
      region: 'eu-west-1',
      table: null,
      lastFailure: { logicalId: 'Dashboard', reason: 'because' },
    });
    expect(found.functions.map(({ code }) => code).toSorted()).toEqual(['missing', 'other']);
    expect(found.functions.find(({ code }) => code === 'other')).toMatchObject({ reason: 'too large' });
    for (const action of server.actions()) expect(action).toMatch(/^(?:Describe|List|Get)/);
  });

  test('status of a missing stack names the command that creates it', async () => {
    const { tools, server } = await play({ DescribeStacks: [NO_STACK] });
    await using _ = server;
    await expect(inspectStack(tools, NAMES, BUNDLES)).rejects.toMatchObject({
      code: 'infrastructure.stack-missing',
      message: 'There is no stack headgate-pre in eu-west-1: headgate deploy --env pre creates it',
    });
  });
});
