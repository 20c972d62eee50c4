import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliStore, createCliStore } from '../support/cli/cli-store.js';
import { CLI, launchCli, plainEnvironment, runCli } from '../support/cli/run-cli.js';

const LIMITS_FILE = fileURLToPath(new URL('../support/cli/limits.yaml', import.meta.url));

let store: CliStore;

beforeAll(async () => {
  store = await createCliStore();
});
afterAll(() => store.remove());

test('the built program reads standard input, prints what a run in this process prints, and exits with its code', async () => {
  const line = ['limits', 'diff', '-f', '-', '--store', store.copy()];
  const input = readFileSync(LIMITS_FILE, 'utf8');
  const launched = await launchCli(line, { input });
  expect(launched).toEqual(await runCli(line, { input }));
  expect(launched).toMatchObject({ exitCode: 2, stderr: '' });
});

test.each(['yaml', 'json'])(
  'the built program prints the template as %s, as a run in this process does',
  async (format) => {
    const line = ['template', '--format', format];
    const launched = await launchCli(line);
    expect(launched).toEqual(await runCli(line));
    expect(launched).toMatchObject({ exitCode: 0, stderr: '' });
  },
);

const hasBash = spawnSync('bash', ['--version']).status === 0;

describe.skipIf(!hasBash)('completion in bash (skipped where bash is missing)', () => {
  let script = '';
  beforeAll(async () => {
    script = (await runCli(['completion', 'bash'])).stdout;
  });

  /** The completions of bash for the last word of a line. */
  function offers(line: string): readonly string[] {
    const words = line.split(' ');
    const quoted = words.map((word) => `'${word}'`).join(' ');
    const program = `${script}
COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _headgate; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return execFileSync('bash', ['--norc'], { input: program, encoding: 'utf8' }).split('\n').filter(Boolean);
  }

  test.each([
    ['headgate ent', ['entity']],
    ['headgate entity s', ['show', 'set']],
    ['headgate --store file:x entity --json set user-1 --if', ['--if-version']],
    ['headgate entity list --a', ['--after', '--all']],
    ['headgate usage plot gpt-4 --window ', ['hourly', 'daily', 'monthly']],
    ['headgate completion ', ['bash', 'zsh', 'fish']],
    ['headgate system set --on-unavailable l', ['local']],
    ['headgate acquire user-1 gpt-4 --dr', ['--dry-run']],
    ['headgate --store ', []],
    ['headgate tak', []],
  ])('bash completes %j to %j', (line, expected) => {
    const found = offers(line).filter((word) => !line.endsWith(' ') || !word.startsWith('-'));
    expect(found).toEqual(expected);
  });
});

test.skipIf(process.platform === 'win32')(
  'the program exits with 0 when the reader of its output closes the pipe',
  async () => {
    const child = spawn('sh', ['-c', `"$0" "$1" tour; echo "exit $?" >&2`, process.execPath, CLI], {
      env: plainEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.once('data', () => child.stdout.destroy());
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    await new Promise((resolve) => {
      child.on('close', resolve);
    });
    expect(stderr).toBe('exit 0\n');
  },
);

test.each([
  ['has a note to print', 'namespace: default\nsystem: { limits: ["rpm:1/min"] }\n', 0],
  ['has an error to print', 'namespace: 1\n', 3],
])(
  'the program keeps its exit code when it %s and the reader of standard error is gone',
  async (_, input, exitCode) => {
    const path = join(mkdtempSync(join(store.folder, 'unread-')), 'new.db');
    const child = spawn(process.execPath, [CLI, 'limits', 'apply', '-f', '-', '--store', `file:${path}`], {
      env: plainEnvironment(),
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    // The program prints nothing before it has read all of its input.
    await once(child.stderr.destroy(), 'close');
    child.stdin.end(input);
    expect(await once(child, 'exit')).toEqual([exitCode, null]);
  },
);

test.skipIf(!existsSync('/dev/full'))('the program fails when the disk is full (skipped without /dev/full)', () => {
  const line = `"$0" "$1" version > /dev/full`;
  const run = spawnSync('sh', ['-c', line, process.execPath, CLI], { env: plainEnvironment(), encoding: 'utf8' });
  expect(run.status).toBe(1);
  expect(run.stderr).toMatch(/^headgate: unexpected: ENOSPC[^\n]*\n$/);
});

describe('variables of the environment', () => {
  test('the environment names store, namespace and principal, and options override it', async () => {
    const env = { HEADGATE_URL: store.copy(), HEADGATE_NAMESPACE: 'acme', HEADGATE_PRINCIPAL: 'env' };
    await runCli(['system', 'set', '-l', 'rpm:1/min'], { env });
    await runCli(['system', 'set', '-l', 'rpm:2/min', '--principal', 'option'], { env });
    const audit = JSON.parse((await runCli(['audit', 'list', '--json'], { env })).stdout) as {
      items: { principal: string }[];
    };
    expect(audit.items.map(({ principal }) => principal)).toEqual(['env', 'option']);
    const { stdout } = await runCli(['--namespace', 'default', 'system', 'show', '--json'], { env });
    expect(JSON.parse(stdout)).toMatchObject({ limits: ['rpm:100/min'] });
  });

  test('without a principal, the audit names the user of the operating system', async () => {
    const address = store.copy();
    await runCli(['system', 'set', '-l', 'rpm:1/min', '--store', address]);
    // As a script passes a variable that is not set.
    await runCli(['system', 'set', '-l', 'rpm:2/min', '--principal', '', '--store', address]);
    const { stdout } = await runCli(['audit', 'list', '--last', '2', '--json', '--store', address]);
    const principal = userInfo().username;
    expect(JSON.parse(stdout)).toMatchObject({ items: [{ principal }, { principal }] });
  });

  test('without a store, a note says that the store is in memory', async () => {
    const run = await runCli(['system', 'set', '-l', 'rpm:1/min'], { env: { NODE_ENV: 'production' } });
    expect(run).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^set\n/) });
    expect(run.stderr).toMatch(/^headgate: no store is named [^\n]*in memory, and ends with the command\n$/);
    expect((await runCli(['system', 'show', '--json'])).stderr).toBe('');
  });

  test('the output has no colours in a pipe and in CI', async () => {
    const run = await runCli(['system', 'show', '--store', 'memory:'], { env: { CI: 'true', FORCE_COLOR: '1' } });
    // oxlint-disable-next-line no-control-regex -- colours
    expect(run.stdout).not.toMatch(/\u001B/);
  });
});

describe('loaded files', () => {
  /** The files of the build that a command loads, from the coverage report of V8. */
  async function loadedBy(...args: readonly string[]): Promise<readonly string[]> {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-loaded-'));
    try {
      await launchCli(args, { env: { NODE_V8_COVERAGE: folder } });
      const reports = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
      const seen = reports.flatMap((report) => (JSON.parse(report) as { result: { url: string }[] }).result);
      return seen.map(({ url }) => url).filter((url) => url.includes('/dist/'));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  const hasStore = (file: string | URL): boolean => readFileSync(file, 'utf8').includes('CREATE TABLE namespaces');

  // The rule `helpLoadsLittle` of tests/architecture.test.ts says the same of the sources of every command.
  test('the help of a command loads the program from the build, and no store', async () => {
    const chunks = join(dirname(CLI), 'chunks');
    expect(readdirSync(chunks).filter((file) => hasStore(join(chunks, file)))).toHaveLength(1);
    const loaded = await loadedBy('entity', 'set', '--help');
    expect(loaded.length).toBeGreaterThan(0);
    expect(loaded.filter((url) => hasStore(new URL(url)))).toEqual([]);
  });
});
