import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AcquireShape } from '../../src/cli/commands/inspect/acquire-shapes.js';
import { type CliStore, createCliStore } from '../support/cli/cli-store.js';
import { runCli } from '../support/cli/run-cli.js';

let store: CliStore;

beforeAll(async () => {
  store = await createCliStore();
});
afterAll(() => store.remove());

test('a revoked key is denied with exit code 12 and the reason, also in a dry run, until it is resumed', async () => {
  const at = ['--store', store.copy()];
  const paused = await runCli(['pause', 'user-1', '--forever', '--reason', 'the key was leaked', ...at]);
  expect(paused).toMatchObject({ exitCode: 0, stdout: 'paused: user-1, until it is resumed: the key was leaked\n' });
  for (const more of [[], ['--dry-run'], ['-l', 'rpm:5/day']]) {
    const acquire = ['acquire', 'user-1', 'gpt-4', '-c', 'rpm=1', ...more, ...at];
    const denied = await runCli(acquire);
    expect(denied.exitCode).toBe(12);
    expect(denied.stdout).toContain('user-1 is paused until it is resumed: the key was leaked; waiting does not help');
    const {
      reason,
      retryAfterMs,
      paused: by,
    } = JSON.parse((await runCli([...acquire, '--json'])).stdout) as AcquireShape;
    expect([reason, retryAfterMs]).toEqual(['paused', null]);
    expect(by).toEqual({ entityId: 'user-1', resource: null, until: null, reason: 'the key was leaked' });
  }
  expect((await runCli(['entity', 'show', 'user-1', ...at])).stdout).toMatch(/^paused +until it is resumed: the key/m);
  expect((await runCli(['entity', 'delete', 'user-1', '--yes', ...at])).stderr).toContain('it is paused');
  expect((await runCli(['resume', 'user-1', ...at])).stdout).toBe('resumed: user-1\n');
  expect((await runCli(['resume', 'user-1', ...at])).stdout).toBe('user-1 was not paused.\n');
  expect((await runCli(['acquire', 'user-1', 'gpt-4', '-c', 'rpm=1', ...at])).exitCode).toBe(0);
});

test('a pause of a parent on one resource is shown with its end, and denies a child with exit code 10', async () => {
  const at = ['--store', store.copy()];
  const until = '2199-01-31T10:00';
  const pause = ['pause', 'proj-1', '--resource', 'gpt-4', '--until', until, '--reason', 'vendor', ...at];
  expect((await runCli(pause)).stdout).toBe('paused: proj-1 on gpt-4, until 2199-01-31 10:00:00Z: vendor\n');
  for (const more of [[], ['--dry-run']]) {
    const denied = await runCli(['acquire', 'user-1', 'gpt-4', '-c', 'rpm=1', ...more, ...at]);
    expect(denied.exitCode).toBe(10);
    expect(denied.stdout).toContain('proj-1 on gpt-4 is paused until 2199-01-31 10:00:00Z: vendor; retry in ');
  }
  expect((await runCli(['bucket', 'show', 'proj-1', 'gpt-4', ...at])).stdout).toMatch(/^paused +until 2199-01-31/m);
  expect((await runCli(['audit', 'list', 'proj-1', ...at])).stdout).toContain('bucket.pause');
});

test('a pause in a limits file is applied, survives a file that does not mention it, and is exported', async () => {
  const at = ['--store', store.copy()];
  const apply = async (yaml: string) => runCli(['limits', 'apply', '-f', '-', '--yes', ...at], { input: yaml });
  const head = 'namespace: default\nentities:\n  user-2:\n    name: Sly\n';
  expect((await apply(`${head}    paused: {reason: unpaid, until: "2199-01-31T10:00:00Z"}\n`)).exitCode).toBe(0);
  expect((await runCli(['acquire', 'user-2', 'gpt-4', '-c', 'rpm=1', ...at])).exitCode).toBe(10);
  expect((await apply(head)).exitCode).toBe(0);
  expect((await runCli(['acquire', 'user-2', 'gpt-4', '-c', 'rpm=1', ...at])).exitCode).toBe(0);
  await runCli(['pause', 'user-2', '--forever', '--reason', 'leaked', ...at]);
  expect((await apply(`${head}    cascade: false\n`)).exitCode).toBe(0);
  expect((await runCli(['acquire', 'user-2', 'gpt-4', '-c', 'rpm=1', ...at])).exitCode).toBe(12);
  expect((await runCli(['limits', 'export', ...at])).stdout).toContain('    paused:\n      reason: leaked\n');
  expect((await apply('namespace: default\n')).exitCode).toBe(0);
  expect((await runCli(['acquire', 'user-2', 'gpt-4', '-c', 'rpm=1', ...at])).exitCode).toBe(12);
});

test.each([
  [['--reason', 'x'], 'one of --for, --until and --forever'],
  [['--for', '5s', '--forever', '--reason', 'x'], 'one of --for, --until and --forever'],
  [['--for', 'soon', '--reason', 'x'], 'a duration such as'],
  [['--until', '2020-01-01', '--reason', 'x'], 'in the future'],
  [['--forever'], '--reason'],
])('the bad pause %j is refused', async (options, message) => {
  const run = await runCli(['pause', 'user-1', ...options, '--store', store.copy()]);
  expect(run.exitCode).toBe(3);
  expect(run.stderr).toContain(message);
});
