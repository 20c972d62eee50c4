import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { MINUTE_MS, ReconcilerWorld, slots } from '../support/reconciler/world.js';
import { CLI, plainEnvironment, runCli } from '../support/cli/run-cli.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BUNDLE = join(ROOT, 'dist/lambda/reconciler.cjs');
const LIMITS = [Limit.concurrent('slots', 5)];

describe.skipIf(ENGINE.missing)(`the built reconciler${ENGINE.note}`, () => {
  let engine: Engine;
  let env: Record<string, string>;
  const started: ChildProcess[] = [];
  let folder: string;

  beforeAll(async () => {
    if (!existsSync(BUNDLE)) throw new Error('There is no bundle: `npm run build` comes first');
    engine = await startEngine();
    folder = mkdtempSync(join(tmpdir(), 'headgate-reconciler-'));
    env = {
      AWS_ACCESS_KEY_ID: engine.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: engine.credentials.secretAccessKey,
      AWS_REGION: engine.region,
    };
  });
  afterAll(async () => {
    for (const child of started) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
    await engine?.stop();
  });

  const addressOf = (world: ReconcilerWorld): string =>
    `dynamodb://${world.table.name}?region=${engine.region}&endpoint=${engine.endpoint}`;

  /** A bucket with two holders that expired some minutes ago, and one that has not expired. */
  const worldWithHolders = async (): Promise<ReconcilerWorld> => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    const nowMs = Date.now() - 10 * MINUTE_MS;
    for (const untilMs of [nowMs + MINUTE_MS, nowMs + MINUTE_MS, nowMs + 20 * MINUTE_MS]) {
      await world.hold('user-1', { asks: slots(1), untilMs, nowMs });
    }
    return world;
  };

  describe('headgate reconcile', () => {
    test('headgate reconcile prints what it did', async () => {
      const world = await worldWithHolders();
      const run = await runCli(['reconcile', '--store', addressOf(world)], { env });
      expect(run).toMatchObject({ exitCode: 0, stderr: '' });
      expect(run.stdout).toMatch(/^reconciled in .*\nnamespaces +1\nbuckets visited +1\nleases reclaimed +2\n/);
      expect((await world.bucket('user-1')).holders.size).toBe(1);
    });

    test('headgate reconcile --json prints its documented JSON, and names what it could not repair', async () => {
      const world = await worldWithHolders();
      await world.tamper('user-1', { zz_future: { N: '1' } });
      const run = await runCli(['reconcile', '--json', '--store', addressOf(world)], { env });
      expect(run).toMatchObject({ exitCode: 1, stderr: '' });
      const data: unknown = JSON.parse(run.stdout);
      expect(CLI_SHAPES['reconcile']?.(data, 'reconcile')).toEqual([]);
      expect(data).toMatchObject({
        visited: 1,
        failed: 1,
        failures: [{ namespace: 'default', bucket: 'user-1#gpt-4' }],
      });
      const told = await runCli(['reconcile', '--store', addressOf(world)], { env });
      expect(told.stdout).toMatch(/^reconciled in part in [^]*\n {2}default user-1#gpt-4: .*zz_future\n$/);
    });

    test('headgate reconcile names the command that creates a missing table', async () => {
      const address = `dynamodb://no-such-table?region=${engine.region}&endpoint=${engine.endpoint}`;
      for (const more of [[], ['--watch']]) {
        const run = await runCli(['reconcile', ...more, '--store', address], { env });
        expect(run).toMatchObject({ exitCode: 6, stdout: '' });
        expect(run.stderr).toBe(
          'headgate: DynamoDB has no table no-such-table. Run: headgate deploy --table no-such-table\n',
        );
      }
    });

    test.each([
      [['--every', '5min'], '--every'],
      [['--watch', '--every', 'soon'], '--every'],
    ])('headgate reconcile refuses %s', async (args, field) => {
      const run = await runCli(['reconcile', ...args, '--store', 'memory:']);
      expect(run).toMatchObject({ exitCode: 3, stdout: '' });
      expect(run.stderr).toContain(`Expected \`${field}\``);
    });

    test('headgate reconcile --watch sweeps until it gets SIGINT', async () => {
      const world = await worldWithHolders();
      const args = [CLI, 'reconcile', '--watch', '--every', '50ms', '--json', '--store', addressOf(world)];
      const child = spawn(process.execPath, args, { env: { ...plainEnvironment(), ...env } });
      started.push(child);
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const report = async (): Promise<unknown> => JSON.parse((await lines.next()).value ?? 'null');
      expect(await report()).toMatchObject({ visited: 1, reclaimed: 2, failed: 0 });
      expect(await report()).toMatchObject({ visited: 1, reclaimed: 0 });
      const nowMs = Date.now() - 10 * MINUTE_MS;
      await world.hold('user-2', { asks: slots(1), untilMs: nowMs + MINUTE_MS, nowMs });
      for (let sweeps = 0; sweeps < 100; sweeps++) {
        if (((await report()) as { reclaimed: number }).reclaimed === 1) break;
      }
      expect(await world.bucket('user-2')).toMatchObject({ expired: 1 });
      const exit = once(child, 'exit');
      child.kill('SIGINT');
      expect(await exit).toEqual([0, null]);
    });
  });

  describe('the Lambda function of the reconciler', () => {
    /** Like Lambda: only the file itself, and the SDK under `NODE_PATH`. */
    const invoke = async (variables: Record<string, string>, remainingMs = 60_000): Promise<string> => {
      copyFileSync(BUNDLE, join(folder, 'index.js'));
      writeFileSync(join(folder, 'package.json'), '{}');
      const script = `require('./index.js').handler({ source: 'aws.events' }, { getRemainingTimeInMillis: () => ${remainingMs} })
        .then((report) => console.log('returned', JSON.stringify(report)), (error) => console.log('failed', error.code));`;
      const { stdout } = await promisify(execFile)(process.execPath, ['-e', script], {
        cwd: folder,
        env: { ...plainEnvironment(), ...env, ...variables, NODE_PATH: join(ROOT, 'node_modules') },
      });
      return stdout;
    };

    test('the Lambda function sweeps its table, logs its report and returns it', async () => {
      const world = await worldWithHolders();
      const variables = { HEADGATE_TABLE: world.table.name, AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint };
      const [logged = '', returned = ''] = (await invoke(variables)).split('\n');
      expect(JSON.parse(logged)).toMatchObject({
        message: 'headgate reconciler',
        visited: 1,
        reclaimed: 2,
        complete: true,
      });
      expect(JSON.parse(returned.replace('returned ', ''))).toMatchObject({ visited: 1, reclaimed: 2, failed: 0 });
      expect((await world.bucket('user-1')).expired).toBe(2);
    });

    test('the Lambda function fails without a table, so that Lambda counts an error', async () => {
      const nowhere = { AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint };
      expect(await invoke(nowhere)).toBe('failed input.invalid\n');
      expect(await invoke({ ...nowhere, HEADGATE_TABLE: 'no-such-table' })).toBe('failed schema.mismatch\n');
    });
  });
});
