import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliStore, createCliStore } from '../support/cli/cli-store.js';
import { readAllRows } from '../support/file/file-rows.js';
import { answerAtTerminal, HAS_TERMINAL } from '../support/cli/at-terminal.js';
import { runCli } from '../support/cli/run-cli.js';

/** cli-commands.test.ts shows that these commands change something with `--yes`. */
const DESTRUCTIVE = [
  ['bucket reset user-1 gpt-4', /fills the bucket of user-1 on gpt-4, and takes back what its leases hold \(1 now\)/],
  ['entity delete user-1', /deletes the record of entity user-1/],
  ['entity delete user-1 --resource gpt-4', /deletes the limits of user-1 on gpt-4 \(rpm:10\/day, tpm:1000\/day, /],
  ['entity delete user-2 --default-limits', /deletes the limits of user-2 for every resource \(rpm:7\/day\)/],
  [
    'entity set user-1 --name X --resource gpt-4 -l rpm:9/day --replace',
    /removes tpm:1000\/day, slots:2\/concurrent from /,
  ],
  ['leases release 0Abcdefgh12', /ends lease 0Abcdefgh12 in this namespace, and gives its slots back/],
  ['namespace delete acme', /closes namespace acme to all its clients/],
  ['namespace purge old', /removes all data of namespace old permanently/],
  ['resource delete gpt-4', /deletes the limits of resource gpt-4 \(rpm:60\/day, slots:4\/concurrent\)/],
  ['resource set gpt-4 -l rpm:90/day --replace', /removes slots:4\/concurrent from resource gpt-4/],
  ['system delete', /deletes the limits and the outage policy of the system in namespace default/],
] as const;

let store: CliStore;

beforeAll(async () => {
  store = await createCliStore();
});
afterAll(() => store.remove());

describe('commands without a terminal and without --yes', () => {
  test.concurrent.each(DESTRUCTIVE)(
    '%s without --yes and without a terminal is refused in one line and changes nothing',
    async (line, says) => {
      const address = store.copy();
      const before = await readAllRows(address.slice('file:'.length));
      const run = await runCli([...line.split(' '), '--store', address]);
      expect(run).toMatchObject({
        exitCode: 3,
        stdout: '',
        stderr: expect.stringMatching(/^headgate: This [^\n]*: without a terminal to ask on, it needs --yes\n$/),
      });
      expect(run.stderr).toMatch(says);
      expect(await readAllRows(address.slice('file:'.length))).toEqual(before);
    },
  );
});

test('--yes is accepted by a command that asks nothing', async () => {
  const run = await runCli(['--yes', 'entity', 'list', '--yes', '--store', store.copy()]);
  expect(run).toMatchObject({ exitCode: 0, stderr: '' });
});

describe.skipIf(!HAS_TERMINAL)('commands at a terminal (skipped where util-linux `script` is missing)', () => {
  test.each([
    ['y', 0, 'deleted: the limits of the system', 0],
    ['\u0003', 3, 'Not confirmed: nothing was changed', 1],
  ])('the answer %j at a terminal ends with exit code %d', async (key, exitCode, says, left) => {
    const address = store.copy();
    const { output, code } = await answerAtTerminal(`system delete --store ${address}`, 'Continue?', key);
    expect(code).toBe(exitCode);
    expect(output).toContain(says);
    const { configs = [] } = await readAllRows(address.slice('file:'.length));
    expect(configs.filter(({ kind, limits }) => kind === 'system' && limits !== null)).toHaveLength(left);
  });
});
