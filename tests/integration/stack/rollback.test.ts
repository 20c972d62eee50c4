import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DeleteTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { deployStack, type StackDeployRequest } from '../../../src/infra/stack/deploy-stack.js';
import { zipCode } from '../../../src/infra/stack/zip-code.js';
import { buildTemplate, type Template } from '../../../src/infra/template.js';
import { type Engine, startEngine } from '../../../src/testing/dynamodb/index.js';
import { type AwsAnswer, type AwsServer, startAwsServer } from '../../support/aws/aws-server.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import { type SimulatedAws, simulatedAws } from '../../support/aws/simulated-aws.js';
import { BUNDLES, makeEmptyTable, type StackWorld, stackWorld, wanted } from '../../support/aws/stack-world.js';

const CODE = BUNDLES.map(({ code }) => code.sha256);
const NEWER = BUNDLES.map((bundle, at) => ({ ...bundle, code: zipCode(`exports.handler = 'newer ${at}';`) }));

/**
 * A template with another placeholder, as a later version may have. CloudFormation then replaces the code of the
 * functions.
 */
function withOtherPlaceholder(): Template {
  const text = JSON.stringify(buildTemplate());
  return JSON.parse(text.replaceAll('was not uploaded yet', 'is not there yet')) as Template;
}

describe.skipIf(ENGINE.missing)(`updates that are rolled back${ENGINE.note}`, () => {
  let engine: Engine;
  let aws: SimulatedAws;
  let server: AwsServer;
  let world: StackWorld;
  /** Errors that actions answer instead of taking effect. */
  const refusals: Record<string, AwsAnswer> = {};

  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(async () => engine?.stop());
  beforeEach(async () => {
    aws = simulatedAws(async (name) => makeEmptyTable(engine, name));
    server = await startAwsServer(async (request) => refusals[request.action] ?? aws.answer(request));
    world = stackWorld(server.endpoint, engine);
    await deploy({});
  });
  afterEach(async () => {
    for (const action of Object.keys(refusals)) delete refusals[action];
    await server[Symbol.asyncDispose]();
    const { endpoint, region, credentials } = engine;
    const client = new DynamoDBClient({ endpoint, region, credentials });
    await client.send(new DeleteTableCommand({ TableName: 'headgate-pre' }));
    client.destroy();
  });

  const deploy = async (parts: Partial<StackDeployRequest>) => deployStack(world.tools, world.watcher, wanted(parts));
  const update = async (): Promise<unknown> => {
    aws.failing.add('Dashboard');
    return deploy({ template: withOtherPlaceholder(), bundles: NEWER }).then(
      () => null,
      (error: unknown) => error,
    );
  };

  test('a rolled back update restores the previous code of the functions', async () => {
    expect(await update()).toMatchObject({
      name: 'StackFailed',
      status: 'UPDATE_ROLLBACK_COMPLETE',
      message: expect.stringMatching(/Dashboard.*\. The previous code of headgate-pre-StreamFunction was restored/),
    });
    expect([...aws.functions.values()]).toEqual(CODE);
  });

  test('a rolled back update does not upload code that the rollback did not change', async () => {
    aws.failing.add('Dashboard');
    await expect(deploy({ given: { ArchiveDays: '9' }, bundles: NEWER })).rejects.toThrow('Dashboard');
    expect([...aws.functions.values()]).toEqual(CODE);
    expect(server.actions().filter((action) => action === 'UpdateFunctionCode')).toHaveLength(2);
  });

  test('a rolled back update names the command to run if the code cannot be restored', async () => {
    refusals['UpdateFunctionCode'] = { error: 'TooLarge', message: 'Code storage limit exceeded.' };
    expect(await update()).toMatchObject({
      message: expect.stringMatching(/could not be restored \(.*exceeded\.\): headgate upgrade uploads/),
    });
  });

  test('a rolled back update reports its status to a user who may not read code', async () => {
    refusals['GetFunction'] = { error: 'AccessDeniedException', message: 'no', status: 403 };
    expect(await update()).toMatchObject({ status: 'UPDATE_ROLLBACK_COMPLETE' });
  });

  test('an update that succeeds uploads the new code and restores nothing', async () => {
    await deploy({ template: withOtherPlaceholder(), bundles: NEWER });
    expect([...aws.functions.values()]).toEqual(NEWER.map(({ code }) => code.sha256));
  });
});
