import { LambdaClient, UpdateFunctionCodeCommand } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { zipCode } from '../../src/infra/stack/zip-code.js';
import { CLI_SHAPES } from '../support/cli-shapes.js';
import { MOTO, startMoto } from '../support/moto.js';
import { runCli } from '../support/run-cli.js';
import { awsEnvironment } from '../support/stack-cli.js';

/**
 * What moto lacks: outputs of stacks that are made by change sets, events of resources, failures, and updates of a table or
 * a function whose parameters change (those run on recorded answers and on the simulation). Its DynamoDB takes the version
 * record as it is.
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

  test('from nothing to nothing', async () => {
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

async function uploadOtherCode(endpoint: string, FunctionName: string): Promise<void> {
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const client = new LambdaClient({ endpoint, region: 'eu-west-1', credentials });
  await client.send(new UpdateFunctionCodeCommand({ FunctionName, ZipFile: zipCode('exports.handler = 0;').bytes }));
  client.destroy();
}
