import {
  CreateTableCommand,
  DeleteTableCommand,
  DynamoDBClient,
  PutItemCommand,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb';
import { LambdaClient, UpdateFunctionCodeCommand } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tableDefinition } from '../../src/backends/dynamodb/table/table-definition.js';
import { adoptTable } from '../../src/infra/stack/adopt-table.js';
import { sdkStackTools } from '../../src/infra/stack/aws/sdk-stack-tools.js';
import { chooseNames } from '../../src/infra/stack/stack-name.js';
import { zipCode } from '../../src/infra/stack/zip-code.js';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { legacyTable } from '../support/migration/legacy-tables.js';
import { MOTO, startMoto } from './moto.js';
import { runCli } from '../support/cli/run-cli.js';
import { awsEnvironment } from '../support/cli/stack-cli.js';
import { wanted } from '../support/aws/stack-world.js';

/**
 * moto has no outputs of stacks that change sets create, no events of resources, no failures, and no updates of a table
 * or function with changed parameters. Recorded answers and the simulation cover those. Its DynamoDB stores the version
 * record unchanged.
 */
describe.skipIf(MOTO.missing)(`deploy, status, list, upgrade and delete on moto${MOTO.note}`, () => {
  let moto: Awaited<ReturnType<typeof startMoto>>;
  beforeAll(async () => {
    moto = await startMoto();
  }, 60_000);
  afterAll(async () => moto?.stop());

  const run = async (line: string): Promise<Record<string, unknown>> => {
    const { exitCode, stdout, stderr } = await runCli([...line.split(' '), '--json'], {
      env: awsEnvironment(moto.endpoint),
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const data = JSON.parse(stdout) as Record<string, unknown>;
    const [command = ''] = line.split(' ');
    expect(CLI_SHAPES[command]?.(data, command)).toEqual([]);
    return data;
  };

  test('deploy, status, list, upgrade and delete work one after the other on moto', async () => {
    expect(await run('deploy --env moto --dry-run')).toMatchObject({ action: 'create', status: null });
    expect(await run('list')).toEqual({ items: [], next: null });

    const made = await run('deploy --env moto --param LogRetentionDays=7');
    expect(made).toMatchObject({
      action: 'create',
      status: 'CREATE_COMPLETE',
      functions: [{ uploaded: true }, { uploaded: true }],
      table: { name: 'headgate-moto', prepared: true },
    });
    const [stream] = made['functions'] as { name: string }[];
    expect(await run('status --env moto')).toMatchObject({
      parameters: { TableName: 'headgate-moto', LogRetentionDays: '7' },
      tableVersion: { state: 'current' },
      functions: [{ code: 'current' }, { code: 'current' }],
    });
    expect(await run('list')).toMatchObject({ items: [{ stack: 'headgate-moto', env: 'moto' }] });
    expect(await run('deploy --env moto')).toMatchObject({ action: 'none', table: { prepared: false } });

    await uploadOtherCode(moto.endpoint, stream?.name ?? '');
    expect(await run('status --env moto')).toMatchObject({ functions: [{ code: 'other' }, { code: 'current' }] });
    expect(await run('upgrade --env moto --yes')).toMatchObject({
      template: { action: 'none' },
      data: { migrations: [] },
      functions: [{ uploaded: true }, { uploaded: false }],
    });

    expect(await run('delete --env moto --yes')).toMatchObject({
      deleted: true,
      kept: expect.arrayContaining([{ logicalId: 'Table', physicalId: 'headgate-moto' }]),
    });
    expect(await run('delete --env moto --yes')).toMatchObject({ deleted: false });
  }, 60_000);
});

/**
 * moto executes an import as a creation, which fails if the table exists. So the last test deletes the table right
 * before, and moto creates it. The update after the import is not run here, because moto loses the table of a stack
 * that it updates. tests/integration/stack/adopt.test.ts runs the whole adoption on the simulation.
 */
describe.skipIf(MOTO.missing)(`deploy --adopt on moto${MOTO.note}`, () => {
  let moto: Awaited<ReturnType<typeof startMoto>>;
  let client: DynamoDBClient;
  beforeAll(async () => {
    moto = await startMoto();
    Object.assign(process.env, awsEnvironment(moto.endpoint));
    client = new DynamoDBClient({ endpoint: moto.endpoint, region: 'eu-west-1' });
    await client.send(new CreateTableCommand(tableDefinition('limits')));
    const items = legacyTable('composite', 20, 7).items;
    for (const Item of items) await client.send(new PutItemCommand({ TableName: 'limits', Item }));
    const TimeToLiveSpecification = { AttributeName: 'ttl', Enabled: true };
    await client.send(new UpdateTimeToLiveCommand({ TableName: 'limits', TimeToLiveSpecification }));
    const migrated = await run('migrate --yes --store dynamodb://limits');
    expect(migrated).toMatchObject({ exitCode: 0 });
  }, 60_000);
  afterAll(async () => {
    client?.destroy();
    await moto?.stop();
  });

  const run = async (line: string) => runCli(line.split(' '), { env: awsEnvironment(moto.endpoint) });

  test('a dry run of deploy --adopt shows the import of a migrated table, and leaves no stack', async () => {
    const { exitCode, stdout } = await run('deploy --table limits --adopt --dry-run --json');
    expect({ exitCode, ...(JSON.parse(stdout) as object) }).toMatchObject({
      exitCode: 0,
      action: 'adopt',
      changes: [{ logicalId: 'Table', type: 'AWS::DynamoDB::Table' }],
    });
    expect((await run('list')).stdout).toContain('No stacks of Headgate');
  }, 60_000);

  test('deploy refuses an existing table without --adopt, and names the option', async () => {
    const { exitCode, stderr } = await run('deploy --table limits --yes');
    expect(exitCode).toBe(9);
    expect(stderr).toContain('--adopt imports it into this stack');
  }, 60_000);

  test('the change set of an import creates a stack with only the table, and status shows it', async () => {
    const tools = sdkStackTools({ endpoint: moto.endpoint, region: 'eu-west-1' });
    const watcher = { onEvent: () => {}, onStep: () => {} };
    const adopted = await adoptTable(tools, watcher, {
      ...wanted({ names: chooseNames({ table: 'limits' }) }),
      confirmAdoption: async () => {
        await client.send(new DeleteTableCommand({ TableName: 'limits' }));
      },
    });
    tools.close();
    expect(adopted).toMatchObject({ changes: [{ logicalId: 'Table' }] });
    const { stdout } = await run('status --table limits --json');
    expect(JSON.parse(stdout)).toMatchObject({
      status: 'IMPORT_COMPLETE',
      table: 'limits',
      version: '1.0.0',
      parameters: { TableName: 'limits', Gsi1Projection: 'KEYS_ONLY' },
      functions: [],
    });
  }, 60_000);
});

async function uploadOtherCode(endpoint: string, FunctionName: string): Promise<void> {
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const client = new LambdaClient({ endpoint, region: 'eu-west-1', credentials });
  await client.send(new UpdateFunctionCodeCommand({ FunctionName, ZipFile: zipCode('exports.handler = 0;').bytes }));
  client.destroy();
}
