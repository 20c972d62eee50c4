import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { firstSeed, README_OUTPUT, readmeProgram } from '../docs/readme.js';
import { environmentOf, type LocalEngineView, localMachine } from '../support/cli/local-machine.js';
import { FirstInstall, type FirstProject } from '../support/docs/first-project.js';

const engine = findEngine('dynoxide');
const ENGINE_NOTE = engine.status === 'available' ? '' : ` (skipped: ${engine.reason})`;

let install: FirstInstall;
let project: FirstProject;

beforeAll(() => {
  install = new FirstInstall();
  project = install.open('project');
  project.save('example.mjs', readmeProgram());
  project.save('limits.yaml', firstSeed());
}, 60_000);
afterAll(() => install[Symbol.dispose]());

describe('a folder with only the package', () => {
  test('npx headgate tour succeeds without SQLite, and says which step it skips', async () => {
    const printed = await project.headgate(['tour']);
    // Newer versions of Node.js include SQLite.
    expect(printed).toMatch(
      /\n5\. Two processes on one file[^]*(?:Left out: [^\n]*npm install libsql|together +100\n)/,
    );
    expect(printed).toMatch(/\n6\. What was used/);
  });

  test('the example of the README runs in memory', async () => {
    expect(await project.node(['example.mjs'])).toBe(README_OUTPUT);
  });
});

describe('a folder with the optional packages', () => {
  test('the example of the README runs on a file, which then has its usage', async () => {
    install.link('libsql');
    const env = { HEADGATE_URL: 'file:./limits.db' };
    expect(await project.node(['example.mjs'], env)).toBe(README_OUTPUT);
    const used = JSON.parse(await project.headgate(['usage', 'summary', 'gpt-4', '--json'], env)) as unknown;
    expect(used).toMatchObject({ total: { rpm: 1, tpm: 700 }, acquires: 1 });
  });

  test.skipIf(engine.status !== 'available')(
    `the example of the README runs on the table of headgate local up with the seed of the first page${ENGINE_NOTE}`,
    async () => {
      install.link('@aws-sdk');
      install.link('@dynoxide');
      await using machine = localMachine();
      const env = environmentOf(machine);
      const up = await project.headgate(['local', 'up', '--seed', 'limits.yaml', '--json'], env);
      const { url } = JSON.parse(up) as LocalEngineView;
      // Loading the SDK on a busy machine can take as long as the timeout of the example, so it is loaded first.
      const sdk = pathToFileURL(createRequire(import.meta.url).resolve('@aws-sdk/client-dynamodb')).href;
      const args = ['--import', sdk, 'example.mjs'];
      expect(await project.node(args, { ...env, HEADGATE_URL: url })).toBe(README_OUTPUT);
    },
  );
});
