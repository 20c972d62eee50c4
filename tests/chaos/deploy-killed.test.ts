import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readBundles } from '../../src/infra/stack/upload-code.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { CLI, plainEnvironment, runCli } from '../support/cli/run-cli.js';
import { type StackCli, startStackCli } from '../support/cli/stack-cli.js';

/** The last request of each run. It takes effect, and its answer is lost. */
const LAST_REQUESTS = ['CreateChangeSet', 'ExecuteChangeSet', 'ListStackResources', 'UpdateFunctionCode'];

describe.skipIf(ENGINE.missing)(`killed deployments${ENGINE.note}`, () => {
  let engine: Engine;
  let cli: StackCli;
  let kill: (action: string) => void = () => {};
  beforeAll(async () => {
    engine = await startEngine();
    cli = await startStackCli(engine, ({ action }) => kill(action));
  });
  afterAll(async () => {
    await cli?.[Symbol.asyncDispose]();
    await engine?.stop();
  });

  test('headgate deploy completes a deployment after four runs that were killed with -9', async () => {
    for (const last of LAST_REQUESTS) {
      const child = spawn(process.execPath, [CLI, 'deploy', '--env', 'pre', '--yes'], {
        env: { ...plainEnvironment(), ...cli.env },
        stdio: 'ignore',
      });
      kill = (action) => action === last && child.kill('SIGKILL');
      expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
    }
    kill = () => {};
    const finishing = await runCli(['deploy', '--env', 'pre', '--yes', '--json'], { env: cli.env });
    expect(finishing).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(finishing.stdout)).toMatchObject({ action: 'none', status: 'CREATE_COMPLETE' });
    expect([...cli.aws.functions.values()]).toEqual(readBundles().map(({ code }) => code.sha256));
    const status = await runCli(['status', '--env', 'pre', '--json'], { env: cli.env });
    expect(JSON.parse(status.stdout)).toMatchObject({ tableVersion: { state: 'current' } });
  });
});
