import { CreateTableCommand, DeleteTableCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createTable } from '../../../src/backends/dynamodb/index.js';
import { runMigrations } from '../../../src/backends/dynamodb/migrations/run.js';
import { tableDefinition } from '../../../src/backends/dynamodb/table/table-definition.js';
import type { ResourceChange } from '../../../src/infra/stack/stack-tools.js';
import { deleteStack } from '../../../src/infra/stack/delete-stack.js';
import { deployStack, type StackDeployRequest } from '../../../src/infra/stack/deploy-stack.js';
import { chooseNames } from '../../../src/infra/stack/stack-name.js';
import { type AwsServer, startAwsServer } from '../../support/aws/aws-server.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import { legacyTable } from '../../support/migration/legacy-tables.js';
import { LegacyWorld } from '../../support/migration/legacy-world.js';
import { type SimulatedAws, simulatedAws } from '../../support/aws/simulated-aws.js';
import { BUNDLES, makeEmptyTable, type StackWorld, stackWorld, wanted } from '../../support/aws/stack-world.js';

const TABLE = 'headgate-pre';
const CODE = BUNDLES.map(({ code }) => code.sha256);

describe.skipIf(ENGINE.missing)(`deploy --adopt${ENGINE.note}`, () => {
  let legacy: LegacyWorld;
  let aws: SimulatedAws;
  let server: AwsServer;
  let world: StackWorld;
  const asked: { readonly changes: readonly ResourceChange[]; readonly settings: readonly string[] }[] = [];
  /** The last request that is answered; Infinity: all are. */
  let last = Number.POSITIVE_INFINITY;

  beforeAll(async () => {
    legacy = await LegacyWorld.start();
  });
  afterAll(async () => legacy?.stop());
  beforeEach(async () => {
    asked.length = 0;
    last = Number.POSITIVE_INFINITY;
    aws = simulatedAws(async (name) => makeEmptyTable(legacy.engine, name));
    server = await startAwsServer(async (request) => {
      if (server.requests.length <= last) return aws.answer(request);
      return { error: 'AccessDenied', message: 'the session is over', status: 403 };
    });
    world = stackWorld(server.endpoint, legacy.engine, { attempts: 1 });
  });
  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    await legacy.client.send(new DeleteTableCommand({ TableName: TABLE })).catch(() => {});
  });

  const adopting = (parts: Partial<StackDeployRequest> = {}): StackDeployRequest =>
    wanted({
      confirmAdoption: (changes, settings) => Promise.resolve(void asked.push({ changes, settings })),
      ...parts,
    });
  const adopt = async (parts: Partial<StackDeployRequest> = {}) =>
    deployStack(world.tools, world.watcher, adopting(parts));
  const changeSets = () => server.requests.filter(({ action }) => action === 'CreateChangeSet');
  const expectWhole = (): void => {
    expect([...aws.functions.values()]).toEqual(CODE);
    expect(aws.stacks.get(TABLE)?.status).toBe('UPDATE_COMPLETE');
    expect([...aws.changeSets]).toEqual([]);
  };

  test('deploy --adopt imports a table of createTable alone into a new stack, then adds the other resources', async () => {
    await createTable({ tableName: TABLE, ...legacy.reach });
    const before = await legacy.dump(TABLE);
    expect(await adopt()).toMatchObject({
      action: 'adopt',
      table: { written: false },
      functions: [{ uploaded: true }, { uploaded: true }],
    });
    expectWhole();
    expect(changeSets().map(({ params }) => params['ChangeSetType'])).toEqual(['IMPORT', 'UPDATE']);
    expect(changeSets()[0]?.params).toMatchObject({
      'ResourcesToImport.member.1.ResourceType': 'AWS::DynamoDB::Table',
      'ResourcesToImport.member.1.LogicalResourceId': 'Table',
      'ResourcesToImport.member.1.ResourceIdentifier.entry.1.key': 'TableName',
      'ResourcesToImport.member.1.ResourceIdentifier.entry.1.value': TABLE,
      'Tags.member.1.Key': 'headgate:version',
    });
    // The update keeps the table name of the import. The default names another table.
    expect(changeSets()[1]?.params).toMatchObject({
      'Parameters.member.1.ParameterKey': 'TableName',
      'Parameters.member.1.UsePreviousValue': 'true',
    });
    expect(asked).toMatchObject([
      {
        changes: [{ action: 'Import', logicalId: 'Table' }],
        settings: ['PointInTimeRecovery: false -> true', 'DeletionProtection: false -> true'],
      },
    ]);
    expect(await legacy.dump(TABLE)).toEqual(before);
  });

  test('deploy --adopt imports a migrated table, whose indexes with all attributes become parameters', async () => {
    const definition = tableDefinition(TABLE);
    const indexes = (definition.GlobalSecondaryIndexes ?? []).map((index, at) =>
      at < 2 ? { ...index, Projection: { ProjectionType: 'ALL' as const } } : index,
    );
    await legacy.client.send(new CreateTableCommand({ ...definition, GlobalSecondaryIndexes: indexes }));
    await legacy.put(TABLE, legacyTable('v0.9', 60, 7).items);
    await expect(adopt()).rejects.toMatchObject({ code: 'infrastructure.table-differs' });
    await legacy.enableTtl(TABLE);
    await expect(adopt()).rejects.toMatchObject({
      code: 'schema.mismatch',
      command: `headgate migrate --store dynamodb://${TABLE}`,
    });
    await runMigrations({ tableName: TABLE, ...legacy.reach });
    expect(await adopt()).toMatchObject({ action: 'adopt' });
    expectWhole();
    expect(aws.stacks.get(TABLE)).toMatchObject({ parameters: { Gsi1Projection: 'ALL', Gsi2Projection: 'ALL' } });
  });

  test('deploy --adopt imports the table that a deleted stack left', async () => {
    await deployStack(world.tools, world.watcher, wanted());
    await legacy.enableTtl(TABLE);
    const names = chooseNames({ env: 'pre' });
    const confirm = (): Promise<void> => Promise.resolve();
    await deleteStack(world.tools, world.watcher, { names, dryRun: false, confirm });
    await expect(deployStack(world.tools, world.watcher, wanted())).rejects.toMatchObject({
      code: 'infrastructure.table-exists',
      message: expect.stringContaining('--adopt imports it into this stack'),
    });
    expect(await adopt()).toMatchObject({ action: 'adopt', table: { written: false } });
    expectWhole();
  });

  test('deploy --adopt reports every difference before it creates anything', async () => {
    const { StreamSpecification: _, ...definition } = tableDefinition(TABLE);
    await legacy.client.send(new CreateTableCommand(definition));
    await expect(adopt()).rejects.toMatchObject({
      code: 'infrastructure.table-differs',
      exitCode: 9,
      message: expect.stringMatching(
        /^Table headgate-pre cannot be adopted as it is: it has no stream: .*; its records do not expire: /,
      ),
    });
    expect(server.actions()).toEqual(['DescribeStacks']);
  });

  test('deploy --adopt names the command that creates a missing table', async () => {
    await expect(adopt()).rejects.toMatchObject({
      code: 'infrastructure.table-missing',
      message: 'There is no table headgate-pre in eu-west-1: headgate deploy --env pre without --adopt creates one',
    });
  });

  test('a dry run of deploy --adopt creates nothing and leaves nothing', async () => {
    await createTable({ tableName: TABLE, ...legacy.reach });
    expect(await adopt({ dryRun: true })).toMatchObject({
      action: 'adopt',
      stack: null,
      changes: [{ action: 'Import' }],
    });
    expect([...aws.stacks.keys(), ...aws.changeSets.keys()]).toEqual([]);
    expect(asked).toEqual([]);
  });

  test('deploy --adopt without a confirmation leaves nothing', async () => {
    await createTable({ tableName: TABLE, ...legacy.reach });
    await expect(adopt({ confirmAdoption: () => Promise.reject(new Error('no')) })).rejects.toThrow('no');
    expect([...aws.stacks.keys(), ...aws.changeSets.keys()]).toEqual([]);
  });

  test('deploy --adopt of a table that its stack already has is a plain deployment', async () => {
    await createTable({ tableName: TABLE, ...legacy.reach });
    await adopt();
    expect(await adopt()).toMatchObject({ action: 'none', changes: [] });
    expect(asked).toHaveLength(1);
  });

  test.each(['with --adopt', 'without --adopt'])(
    'a deploy --adopt that ended at any request is completed by a deployment %s',
    async (how) => {
      let completed = 0;
      for (let end = 1; ; end += 1) {
        aws = simulatedAws(async (name) => makeEmptyTable(legacy.engine, name));
        await createTable({ tableName: TABLE, ...legacy.reach });
        last = server.requests.length + end;
        const ended = await adopt().then(
          () => true,
          () => false,
        );
        last = Number.POSITIVE_INFINITY;
        const isImported = aws.stacks.get(TABLE)?.status.startsWith('REVIEW') === false;
        if (how === 'with --adopt' || isImported) {
          await adopt(how === 'with --adopt' ? {} : { confirmAdoption: null });
          expectWhole();
          completed += 1;
        }
        if (ended) break;
        expect(end).toBeLessThan(60);
      }
      expect(completed).toBeGreaterThan(5);
    },
  );
});
