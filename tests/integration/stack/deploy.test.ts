import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deployStack } from '../../../src/infra/stack/deploy-stack.js';
import { type Engine, startEngine } from '../../../src/testing/dynamodb/index.js';
import { type AwsServer, startAwsServer } from '../../support/aws/aws-server.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import {
  CHANGE_SET_ID,
  changes,
  changeSet,
  CREATED_CHANGE_SET,
  DONE,
  events,
  lambda,
  NO_STACK,
  resources,
  type Script,
  scripted,
  stack,
  STACK_ID,
} from '../../support/aws/recorded-stacks.js';
import { BUNDLES, makeEmptyTable, type StackWorld, stackWorld, wanted } from '../../support/aws/stack-world.js';

const [STREAM_SHA, RECONCILER_SHA] = BUNDLES.map(({ code }) => code.sha256) as [string, string];
const NEW = changes(['Add', 'Table', 'AWS::DynamoDB::Table'], ['Add', 'StreamFunction', 'AWS::Lambda::Function']);
const IN_PLACE = changes(['Modify', 'StreamFunction', 'AWS::Lambda::Function', 'False']);
const RESOURCES = resources(
  ['Table', 'headgate-pre'],
  ['StreamFunction', 'pre-stream'],
  ['ReconcilerFunction', 'pre-reconciler'],
);

/** The answers that all scripts share. */
const COMMON: Script = {
  CreateChangeSet: [CREATED_CHANGE_SET],
  DeleteChangeSet: [DONE],
  ExecuteChangeSet: [DONE],
  DeleteStack: [DONE],
  ListStackResources: [RESOURCES],
};

const CREATED: Script = {
  ...COMMON,
  DescribeStacks: [NO_STACK, stack('CREATE_IN_PROGRESS'), stack('CREATE_COMPLETE')],
  DescribeChangeSet: [changeSet('CREATE_IN_PROGRESS'), changeSet('CREATE_COMPLETE', NEW)],
  DescribeStackEvents: [
    events(['REVIEW_IN_PROGRESS', null, 'User Initiated']),
    events(['REVIEW_IN_PROGRESS', null], ['CREATE_IN_PROGRESS', null], ['CREATE_IN_PROGRESS', 'Table']),
    events(
      ['REVIEW_IN_PROGRESS', null],
      ['CREATE_IN_PROGRESS', null],
      ['CREATE_IN_PROGRESS', 'Table'],
      ['CREATE_COMPLETE', 'Table'],
      ['CREATE_COMPLETE', null],
    ),
  ],
  GetFunctionConfiguration: [
    lambda('placeholder', 'InProgress'),
    lambda('placeholder'),
    lambda(STREAM_SHA, 'InProgress'),
    lambda(STREAM_SHA),
    lambda('placeholder'),
    lambda(RECONCILER_SHA),
  ],
  UpdateFunctionCode: [lambda('uploaded', 'InProgress')],
};

async function play(script: Script, engine: Engine | null = null): Promise<StackWorld & { server: AwsServer }> {
  const server = await startAwsServer(scripted(script));
  return { ...stackWorld(server.endpoint, engine), server };
}

describe.skipIf(ENGINE.missing)(`deployments${ENGINE.note}`, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(async () => engine?.stop());

  test('deploy creates the stack, prepares the table, uploads the code, and reports every event once', async () => {
    const answer = scripted(CREATED);
    await using server = await startAwsServer(async (request) => {
      if (request.action === 'ExecuteChangeSet') await makeEmptyTable(engine, 'headgate-pre');
      return answer(request);
    });
    const { tools, watcher, told } = stackWorld(server.endpoint, engine);
    const request = wanted({ given: { ArchiveDays: '30' } });
    const done = await deployStack(tools, watcher, request);
    expect(server.actions()).toEqual([
      'DescribeStacks',
      'CreateChangeSet',
      'DescribeChangeSet',
      'DescribeChangeSet',
      'DescribeStackEvents',
      'ExecuteChangeSet',
      'DescribeStacks',
      'DescribeStackEvents',
      'DescribeStacks',
      'DescribeStackEvents',
      'ListStackResources',
      'GetFunctionConfiguration',
      'GetFunctionConfiguration',
      'UpdateFunctionCode',
      'GetFunctionConfiguration',
      'GetFunctionConfiguration',
      'GetFunctionConfiguration',
      'UpdateFunctionCode',
      'GetFunctionConfiguration',
    ]);
    expect(server.requests[1]?.params).toMatchObject({
      StackName: 'headgate-pre',
      ChangeSetType: 'CREATE',
      ChangeSetName: 'headgate-1',
      ClientToken: 'headgate-1',
      'Capabilities.member.1': 'CAPABILITY_NAMED_IAM',
      'Parameters.member.1.ParameterKey': 'TableName',
      'Parameters.member.1.ParameterValue': 'headgate-pre',
      'Parameters.member.2.ParameterKey': 'ArchiveDays',
      'Parameters.member.2.ParameterValue': '30',
      'Tags.member.1.Key': 'headgate:version',
      'Tags.member.1.Value': '1.0.0',
      TemplateBody: JSON.stringify(request.template),
    });
    expect(server.requests[5]?.params).toMatchObject({
      ChangeSetName: CHANGE_SET_ID,
      ClientRequestToken: 'headgate-2',
    });
    expect(server.requests[13]?.params).toMatchObject({
      FunctionName: 'pre-stream',
      ZipFile: Buffer.from(BUNDLES[0]?.code.bytes ?? []).toString('base64'),
    });
    expect(told).toEqual([
      'comparing stack headgate-pre with the template',
      'changing stack headgate-pre',
      'CREATE_IN_PROGRESS headgate-pre',
      'CREATE_IN_PROGRESS Table',
      'CREATE_COMPLETE Table',
      'CREATE_COMPLETE headgate-pre',
      'preparing table headgate-pre',
      'uploading the code of pre-stream',
      'uploading the code of pre-reconciler',
    ]);
    expect(done).toMatchObject({
      action: 'create',
      table: { name: 'headgate-pre', written: true },
      functions: [{ uploaded: true }, { uploaded: true }],
    });
    expect(await tools.tables.readVersion('headgate-pre')).toMatchObject({ kind: 'current' });
  });

  test('deploy refuses a table that belongs to no stack, before it creates anything', async () => {
    await makeEmptyTable(engine, 'headgate-pre-2');
    const { tools, watcher, server } = await play({ DescribeStacks: [NO_STACK] }, engine);
    await using _ = server;
    const names = { stack: 'headgate-pre-2', table: 'headgate-pre-2', flag: ' --env pre-2', env: 'pre-2' };
    await expect(deployStack(tools, watcher, wanted({ names }))).rejects.toMatchObject({
      code: 'infrastructure.table-exists',
      message: expect.stringMatching(
        /^Table headgate-pre-2 exists and belongs to no stack: --adopt imports it into this stack/,
      ),
    });
    expect(server.actions()).toEqual(['DescribeStacks']);
  });

  test('deploy refuses a table whose import into the stack failed', async () => {
    const script = { DescribeStacks: [stack('IMPORT_ROLLBACK_COMPLETE')], ListStackResources: [resources()] };
    const { tools, watcher, server } = await play(script, engine);
    await using _ = server;
    await expect(deployStack(tools, watcher, wanted())).rejects.toMatchObject({ code: 'infrastructure.table-exists' });
    expect(server.actions()).toEqual(['DescribeStacks', 'ListStackResources']);
  });

  test.each([
    [
      "didn't contain changes",
      "The submitted information didn't contain changes. Submit different information to create a change set.",
    ],
    ['No updates are to be performed', 'No updates are to be performed.'],
  ])(
    'deploy has no changes when CloudFormation says %j, and does not upload code that is current',
    async (...[, StatusReason]) => {
      const { tools, watcher, server } = await play(
        {
          ...COMMON,
          DescribeStacks: [stack('UPDATE_COMPLETE')],
          DescribeChangeSet: [changeSet('FAILED', { StatusReason, ExecutionStatus: 'UNAVAILABLE' })],
          GetFunctionConfiguration: [lambda(STREAM_SHA), lambda(RECONCILER_SHA)],
        },
        engine,
      );
      await using _ = server;
      await tools.tables.prepare('headgate-pre');
      expect(await deployStack(tools, watcher, wanted())).toMatchObject({
        action: 'none',
        table: { written: false },
        functions: [{ uploaded: false }, { uploaded: false }],
      });
      expect(server.actions()).toEqual([
        'DescribeStacks',
        'ListStackResources',
        'CreateChangeSet',
        'DescribeChangeSet',
        'DeleteChangeSet',
        'ListStackResources',
        'GetFunctionConfiguration',
        'GetFunctionConfiguration',
      ]);
    },
  );

  test('deploy waits for an operation in progress, asks, and updates the stack with its own parameters', async () => {
    const { tools, watcher, told, server } = await play(
      {
        ...COMMON,
        DescribeStacks: [
          stack('UPDATE_IN_PROGRESS'),
          stack('UPDATE_COMPLETE_CLEANUP_IN_PROGRESS'),
          stack('UPDATE_COMPLETE'),
          stack('UPDATE_COMPLETE'),
          stack('UPDATE_COMPLETE'),
        ],
        DescribeChangeSet: [changeSet('CREATE_COMPLETE', IN_PLACE)],
        DescribeStackEvents: [
          events(['UPDATE_IN_PROGRESS', null]),
          events(['UPDATE_IN_PROGRESS', null], ['UPDATE_COMPLETE', null]),
          events(['UPDATE_IN_PROGRESS', null], ['UPDATE_COMPLETE', null]),
          events(
            ['UPDATE_IN_PROGRESS', null],
            ['UPDATE_COMPLETE', null],
            ['UPDATE_IN_PROGRESS', null],
            ['UPDATE_COMPLETE', null],
          ),
        ],
        GetFunctionConfiguration: [lambda(STREAM_SHA), lambda(RECONCILER_SHA)],
      },
      engine,
    );
    await using _ = server;
    const request = wanted({ given: { ArchiveDays: '9' } });
    expect(await deployStack(tools, watcher, request)).toMatchObject({
      action: 'update',
      stack: { status: 'UPDATE_COMPLETE' },
    });
    expect(request.confirmed).toMatchObject([[{ action: 'Modify', logicalId: 'StreamFunction', replacement: 'no' }]]);
    expect(told[0]).toBe('stack headgate-pre is UPDATE_IN_PROGRESS: waiting until that ends');
    const create = server.requests.find(({ action }) => action === 'CreateChangeSet');
    expect(create?.params).toMatchObject({
      ChangeSetType: 'UPDATE',
      'Parameters.member.1.ParameterKey': 'TableName',
      'Parameters.member.1.UsePreviousValue': 'true',
      'Parameters.member.2.ParameterKey': 'LogRetentionDays',
      'Parameters.member.2.UsePreviousValue': 'true',
      'Parameters.member.3.ParameterKey': 'ArchiveDays',
      'Parameters.member.3.ParameterValue': '9',
    });
  });
});

/** No stack at first, then the empty stack of a change set. */
const SHELL = [NO_STACK, stack('REVIEW_IN_PROGRESS')];

describe('dry runs of deploy', () => {
  test('a dry run of a new stack shows the changes, and deletes the empty stack that it created', async () => {
    const { tools, watcher, server } = await play({ ...CREATED, DescribeStacks: SHELL });
    await using _ = server;
    const request = wanted({ dryRun: true });
    expect(await deployStack(tools, watcher, request)).toMatchObject({
      action: 'create',
      stack: null,
      table: null,
      functions: [],
      changes: [{ logicalId: 'Table' }, { logicalId: 'StreamFunction' }],
    });
    expect(server.actions()).toEqual([
      'DescribeStacks',
      'GetItem',
      'CreateChangeSet',
      'DescribeChangeSet',
      'DescribeChangeSet',
      'DeleteChangeSet',
      'DescribeStacks',
      'DeleteStack',
    ]);
    expect(server.requests.at(-1)?.params).toMatchObject({ StackName: STACK_ID });
    expect(request.confirmed).toEqual([]);
  });

  test('a dry run of a new stack leaves it to the deploy that is creating it', async () => {
    const begun = [NO_STACK, stack('CREATE_IN_PROGRESS')];
    const { tools, watcher, server } = await play({ ...CREATED, DescribeStacks: begun });
    await using _ = server;
    await deployStack(tools, watcher, wanted({ dryRun: true }));
    expect(server.actions().slice(-2)).toEqual(['DeleteChangeSet', 'DescribeStacks']);
  });

  test('a dry run leaves an empty stack of another deploy', async () => {
    const { tools, watcher, server } = await play({ ...CREATED, DescribeStacks: [stack('REVIEW_IN_PROGRESS')] });
    await using _ = server;
    await deployStack(tools, watcher, wanted({ dryRun: true }));
    expect(server.actions()).not.toContain('DeleteStack');
    expect(server.requests[2]?.params).toMatchObject({ ChangeSetType: 'CREATE' });
  });
});

describe('resources with data', () => {
  const REPLACED = changes(
    ['Modify', 'Table', 'AWS::DynamoDB::Table', 'True'],
    ['Remove', 'ArchiveBucket', 'AWS::S3::Bucket'],
  );
  const script: Script = {
    ...COMMON,
    DescribeStacks: [stack('UPDATE_COMPLETE')],
    ListStackResources: [resources()],
    DescribeChangeSet: [changeSet('CREATE_COMPLETE', REPLACED)],
    DescribeStackEvents: [events(['UPDATE_COMPLETE', null])],
  };

  test('deploy refuses to replace or remove resources with data, and deletes the change set', async () => {
    const { tools, watcher, server } = await play(script);
    await using _ = server;
    await expect(deployStack(tools, watcher, wanted())).rejects.toMatchObject({
      code: 'infrastructure.data-loss',
      message:
        'Table (Table) would be replaced, ArchiveBucket (ArchiveBucket) would be removed, and the stack would lose access to its data: --allow-replacement permits it',
    });
    expect(server.actions()).toEqual([
      'DescribeStacks',
      'ListStackResources',
      'CreateChangeSet',
      'DescribeChangeSet',
      'DeleteChangeSet',
    ]);
  });

  test('deploy with allowReplacement may replace or remove resources with data', async () => {
    const { tools, watcher, server } = await play({
      ...script,
      ExecuteChangeSet: [{ error: 'Stop', message: 'here' }],
    });
    await using _ = server;
    await expect(deployStack(tools, watcher, wanted({ allowReplacement: true }))).rejects.toThrow(
      'ExecuteChangeSet: here',
    );
  });
});

test('a deployment without a confirmation leaves nothing', async () => {
  const { tools, watcher, server } = await play({ ...CREATED, DescribeStacks: SHELL });
  await using _ = server;
  const refused = wanted({ confirm: () => Promise.reject(new Error('no')) });
  await expect(deployStack(tools, watcher, refused)).rejects.toThrow('no');
  expect(server.actions().slice(-3)).toEqual(['DeleteChangeSet', 'DescribeStacks', 'DeleteStack']);
  expect(server.actions()).not.toContain('ExecuteChangeSet');
});
