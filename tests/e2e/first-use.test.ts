import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { environmentOf, type LocalEngineView, localMachine } from '../support/cli/local-machine.js';
import { README_OUTPUT, readmeProgram, readmeSeed } from '../docs/readme.js';
import { plainEnvironment } from '../support/cli/run-cli.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const engine = findEngine('dynoxide');
const ENGINE_NOTE = engine.status === 'available' ? '' : ` (skipped: ${engine.reason})`;
const run = promisify(execFile);

/** An empty folder in which a user has installed only the packed package. */
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-first-use-'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'first-use', private: true, type: 'module' }));
  const packed = npm(ROOT, 'pack', '--json', '--ignore-scripts', '--pack-destination', folder);
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  npm(folder, 'install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', join(folder, filename));
  writeFileSync(join(folder, 'example.mjs'), readmeProgram());
  writeFileSync(join(folder, 'limits.yaml'), readmeSeed());
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function npm(cwd: string, ...args: readonly string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** `npx headgate`, with an environment that names no store. */
async function headgate(args: readonly string[], env = plainEnvironment()): Promise<string> {
  return (await run('npx', ['--no-install', 'headgate', ...args], { cwd: folder, env })).stdout;
}

async function runExample(env: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<unknown> {
  return JSON.parse((await run(process.execPath, [...args, 'example.mjs'], { cwd: folder, env })).stdout);
}

/** Links an optional package, so that no test needs a registry. */
function install(name: string): void {
  const target = join(folder, 'node_modules', name);
  mkdirSync(join(target, '..'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules', name), target, 'junction');
}

describe('a folder with only the package', () => {
  test('npx headgate tour succeeds without SQLite, and says which step it skips', async () => {
    const printed = await headgate(['tour']);
    // Newer versions of Node.js include SQLite.
    expect(printed).toMatch(
      /\n5\. Two processes on one file[^]*(?:Left out: [^\n]*npm install libsql|together +100\n)/,
    );
    expect(printed).toMatch(/\n6\. What was used/);
  });

  test('the example of the README runs in memory', async () => {
    expect(await runExample(plainEnvironment())).toEqual(README_OUTPUT);
  });
});

describe('a folder with the optional packages', () => {
  test('the example of the README runs on a file, which then has its usage', async () => {
    install('libsql');
    const env = { ...plainEnvironment(), HEADGATE_URL: 'file:./limits.db' };
    expect(await runExample(env)).toEqual(README_OUTPUT);
    const used = JSON.parse(await headgate(['usage', 'summary', 'gpt-4', '--json'], env)) as unknown;
    expect(used).toMatchObject({ total: { rpm: 1, tpm: 700 }, acquires: 1 });
  });

  test.skipIf(engine.status !== 'available')(
    `the example of the README runs on the table of headgate local up with the seed of the README${ENGINE_NOTE}`,
    async () => {
      install('@aws-sdk');
      install('@dynoxide');
      await using machine = localMachine();
      const env = environmentOf(machine);
      const up = await headgate(['local', 'up', '--seed', 'limits.yaml', '--json'], env);
      const { url } = JSON.parse(up) as LocalEngineView;
      // Loading the SDK on a busy machine can take as long as the timeout of the example, so it is loaded first.
      const sdk = pathToFileURL(createRequire(import.meta.url).resolve('@aws-sdk/client-dynamodb')).href;
      expect(await runExample({ ...env, HEADGATE_URL: url }, '--import', sdk)).toEqual(README_OUTPUT);
    },
  );
});
