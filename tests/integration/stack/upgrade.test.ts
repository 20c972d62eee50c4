import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HeadgateError } from '../../../src/core/errors.js';
import { applyTemplate, deployStack } from '../../../src/infra/stack/deploy-stack.js';
import { type UpgradeRequest, upgradeStack } from '../../../src/infra/stack/upgrade-stack.js';
import { type AwsAnswer, type AwsServer, startAwsServer } from '../../support/aws/aws-server.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import { legacyTable } from '../../support/migration/legacy-tables.js';
import { LegacyWorld } from '../../support/migration/legacy-world.js';
import { type SimulatedAws, simulatedAws } from '../../support/aws/simulated-aws.js';
import { BUNDLES, makeEmptyTable, type StackWorld, stackWorld, wanted } from '../../support/aws/stack-world.js';

const TABLE = 'headgate-pre';

describe.skipIf(ENGINE.missing)(`upgrades of a stack whose table has a published layout${ENGINE.note}`, () => {
  let legacy: LegacyWorld;
  let aws: SimulatedAws;
  let server: AwsServer;
  let world: StackWorld;
  /** Errors that actions answer instead of taking effect. */
  const refusals: Record<string, AwsAnswer> = {};

  beforeAll(async () => {
    legacy = await LegacyWorld.start();
    aws = simulatedAws(async (name) => {
      await makeEmptyTable(legacy.engine, name);
      await legacy.put(name, legacyTable('v0.9', 60, 7).items);
    });
    server = await startAwsServer(async (request) => refusals[request.action] ?? aws.answer(request));
    world = stackWorld(server.endpoint, legacy.engine);
    await applyTemplate(world.tools, world.watcher, { ...wanted(), check: () => Promise.resolve() });
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    await legacy?.stop();
  });

  const request = (parts: Partial<UpgradeRequest> = {}): UpgradeRequest => ({
    ...wanted({ given: { ArchiveDays: '30' } }),
    confirmMigration: null,
    onMigration: () => {},
    ...parts,
  });
  const upgrade = async (parts: Partial<UpgradeRequest> = {}) =>
    upgradeStack(world.tools, world.watcher, request(parts));
  const since = async (run: () => Promise<unknown>): Promise<readonly string[]> => {
    const before = server.requests.length;
    await run();
    return server.actions().slice(before);
  };
  const code = (): readonly string[] => [...aws.functions.values()];

  test('deploy refuses a table of an older layout with the command to run, before it changes anything', async () => {
    const asked = await since(async () => {
      await expect(deployStack(world.tools, world.watcher, wanted())).rejects.toMatchObject({
        code: 'schema.mismatch',
        exitCode: 6,
        command: 'headgate upgrade --env pre',
      });
    });
    expect(asked).toEqual(['DescribeStacks', 'ListStackResources']);
  });

  test('a dry run of upgrade shows what each step would do, and does none of them', async () => {
    const before = await legacy.dump(TABLE);
    const asked = await since(async () => {
      expect(await upgrade({ dryRun: true })).toMatchObject({
        template: { action: 'update' },
        data: { from: 0, dryRun: true, migrations: [{ found: expect.any(Number), written: 0 }] },
        functions: [{ uploaded: true }, { uploaded: true }],
      });
    });
    expect(asked).not.toContain('ExecuteChangeSet');
    expect(asked).not.toContain('UpdateFunctionCode');
    expect(await legacy.dump(TABLE)).toEqual(before);
  });

  test('an upgrade whose template CloudFormation refuses stops before the data', async () => {
    refusals['ExecuteChangeSet'] = { error: 'InsufficientCapabilitiesException', message: 'Requires capabilities' };
    await expect(upgrade()).rejects.toMatchObject({
      code: 'infrastructure.refused',
      done: [],
      failed: 'template',
      notDone: ['data', 'code', 'version'],
      message:
        'Nothing was upgraded; failed: template; not begun: data, code, version. CloudFormation ExecuteChangeSet: Requires capabilities',
    });
    delete refusals['ExecuteChangeSet'];
  });

  test('an upgrade without a confirmation of the migration stops before the code', async () => {
    const before = await legacy.dump(TABLE);
    const refuse = (): Promise<void> => Promise.reject(new HeadgateError('input.invalid', 'Not confirmed'));
    await expect(upgrade({ confirmMigration: refuse })).rejects.toMatchObject({
      code: 'input.invalid',
      done: ['template'],
      failed: 'data',
      message: 'Done: template; failed: data; not begun: code, version. Not confirmed',
    });
    expect(await legacy.dump(TABLE)).toEqual(before);
    expect(code()).toEqual(['placeholder', 'placeholder']);
  });

  test('an upgrade whose code Lambda refuses reports the completed steps', async () => {
    refusals['UpdateFunctionCode'] = {
      error: 'CodeStorageExceededException',
      message: 'Code storage limit exceeded.',
    };
    await expect(upgrade()).rejects.toMatchObject({
      done: ['template', 'data'],
      failed: 'code',
      notDone: ['version'],
      message:
        'Done: template, data; failed: code; not begun: version. Lambda UpdateFunctionCode: Code storage limit exceeded.',
    });
    delete refusals['UpdateFunctionCode'];
    expect(await world.tools.tables.readVersion(TABLE)).toMatchObject({ kind: 'current' });
  });

  test('the next upgrade completes the remaining steps, and the one after it changes nothing', async () => {
    expect(await upgrade()).toMatchObject({
      template: { action: 'none' },
      data: { migrations: [] },
      functions: [{ uploaded: true }, { uploaded: true }],
    });
    expect(code()).toEqual(BUNDLES.map(({ code: { sha256 } }) => sha256));
    const done = await legacy.dump(TABLE);
    expect(await upgrade()).toMatchObject({ functions: [{ uploaded: false }, { uploaded: false }] });
    expect(await legacy.dump(TABLE)).toEqual(done);
  });

  test('an upgrade raises a table of schema version 1 last, after a confirmation, and refuses older clients', async () => {
    const version = { PK: { S: '_/SYSTEM#' }, SK: { S: '#VERSION' } };
    const fields = { schema_version: { N: '1' }, min_client_version: { N: '1' } };
    await legacy.put(TABLE, [{ ...version, ...fields }]);
    expect(await world.tools.tables.readVersion(TABLE)).toEqual({ kind: 'upgradable', schemaVersion: 1, ours: 2 });
    expect(await deployStack(world.tools, world.watcher, wanted())).toMatchObject({ table: { written: false } });
    expect(await upgrade({ dryRun: true })).toMatchObject({ data: { from: 1, to: 1 } });
    const refuse = (): Promise<void> => Promise.reject(new HeadgateError('input.invalid', 'Not confirmed'));
    await expect(upgrade({ confirmMigration: refuse })).rejects.toMatchObject({ failed: 'data' });
    expect(await world.tools.tables.readVersion(TABLE)).toMatchObject({ kind: 'upgradable' });
    expect(await upgrade()).toMatchObject({ data: { from: 1, to: 2, migrations: [] } });
    expect(await world.tools.tables.readVersion(TABLE)).toMatchObject({ kind: 'current', schemaVersion: 2 });
    expect(await upgrade()).toMatchObject({ data: { from: 2, to: 2 } });
  });

  test('an upgrade of a missing stack is refused with the command that creates it', async () => {
    const names = { stack: 'headgate-x', table: 'headgate-x', flag: ' --env x', env: 'x' };
    await expect(upgrade({ names })).rejects.toMatchObject({
      code: 'infrastructure.stack-missing',
      message: 'There is no stack headgate-x in eu-west-1: headgate deploy --env x creates it',
    });
    expect([...aws.stacks.keys()]).toEqual(['headgate-pre']);
  });
});
