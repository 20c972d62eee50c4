import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliStore, createCliStore } from '../support/cli/cli-store.js';
import { readAllRows } from '../support/file/file-rows.js';
import { runCli } from '../support/cli/run-cli.js';

/** Read-only commands, with arguments for existing objects. */
const LOOKS = [
  'acquire user-1 gpt-4 -c rpm=1 --dry-run',
  'acquire user-1 gpt-4 -c rpm=1 -l rpm:9/min --dry-run',
  'audit list',
  'audit list --last 3',
  'bucket list --entity user-1',
  'bucket show user-1 gpt-4',
  'capacity gpt-4',
  'check',
  'config list',
  'config show --effective user-1 gpt-4',
  'entity children proj-1',
  'entity list --all',
  'entity show user-1 --all-resources',
  'leases list',
  'leases list --entity user-1',
  'leases list user-1 gpt-4',
  'limits export',
  'namespace list',
  'namespace orphans',
  'namespace show default',
  'reconcile',
  'resource entities gpt-4',
  'resource list',
  'resource show gpt-4',
  'system show',
  'usage list gpt-4',
  'usage plot gpt-4',
  'usage summary gpt-4',
];

/** Writing commands that have nothing to change. */
const NOTHING_TO_DO = [
  'bucket reset missing gpt-4 --yes',
  'entity delete missing --default-limits --yes',
  'resource delete nothing --yes',
];

let store: CliStore;

beforeAll(async () => {
  store = await createCliStore();
});
afterAll(() => store.remove());

describe('read-only commands', () => {
  test.concurrent.each(LOOKS)('%s changes no row of a file', async (line) => {
    const address = store.copy();
    const path = address.slice('file:'.length);
    const before = await readAllRows(path);
    expect(await runCli([...line.split(' '), '--store', address])).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await readAllRows(path)).toEqual(before);
  });

  test.concurrent.each([...LOOKS, ...NOTHING_TO_DO])('%s creates no file', async (line) => {
    const name = `absent-${line.replaceAll(/\W+/g, '-')}.db`;
    const run = await runCli([...line.split(' '), '--store', `file:${join(store.folder, name)}`]);
    expect([0, 4]).toContain(run.exitCode);
    expect(run.stderr).toMatch(/^headgate: .*does not exist yet: the first change creates it\)?\n$/);
    expect(readdirSync(store.folder).filter((file) => file.startsWith(name))).toEqual([]);
  });
});

describe('misspelt namespaces', () => {
  const WRITES = [
    'system set -l rpm:1/min',
    'entity create x',
    'acquire x y -c rpm=1 -l rpm:5/min',
    ...LOOKS.slice(0, 3),
  ];

  test.concurrent.each(WRITES)(
    'a misspelt namespace is not created by %s, neither in an existing nor in a new file',
    async (line) => {
      const address = store.copy();
      const before = await readAllRows(address.slice('file:'.length));
      const fresh = join(store.folder, `fresh-${line.replaceAll(/\W+/g, '-')}.db`);
      const args = [...line.split(' '), '--namespace', 'acmee', '--store'];
      const [known, unknown] = await Promise.all([runCli([...args, address]), runCli([...args, `file:${fresh}`])]);
      expect(known).toMatchObject({ exitCode: 4, stdout: '' });
      expect(known.stderr).toBe(
        'headgate: Namespace acmee is not registered: `headgate namespace create` creates it\n',
      );
      expect(await readAllRows(address.slice('file:'.length))).toEqual(before);
      expect(unknown.exitCode).toBe(4);
      expect(existsSync(fresh)).toBe(false);
    },
  );

  test('a namespace is created by `namespace create` only, and a new file also has `default`', async () => {
    const address = `file:${join(store.folder, 'made.db')}`;
    await runCli(['namespace', 'create', 'acme', '--store', address]);
    const { stdout } = await runCli(['namespace', 'list', '--json', '--store', address]);
    const { items } = JSON.parse(stdout) as { items: { name: string }[] };
    expect(items.map(({ name }) => name)).toEqual(['acme', 'default']);
  });
});
