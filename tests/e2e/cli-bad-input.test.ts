import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliStore, createCliStore } from '../support/cli/cli-store.js';
import { readAllRows } from '../support/file/file-rows.js';
import { runCli } from '../support/cli/run-cli.js';

type Refusal = readonly [line: string, exitCode: number, says: RegExp];

const REFUSED: readonly Refusal[] = [
  ['frobnicate', 3, /unknown command 'frobnicate'/],
  ['entity sho', 3, /unknown command 'sho' \(Did you mean show\?\)/],
  ['system show --jsno', 3, /unknown option '--jsno' \(Did you mean --json\?\)/],
  ['acquire user-1', 3, /missing required argument 'resource'/],
  ['acquire user-1 gpt-4 more', 3, /too many arguments/],
  ['acquire user-1 gpt-4', 3, /Expected `-c` to be an amount of at least one limit/],
  ['acquire user-1 gpt-4 -c rpm', 3, /Expected `-c` to be a limit and a whole amount such as rpm=1, got "rpm"/],
  ['acquire user-1 gpt-4 -c rpm=-1', 3, /got "rpm=-1"/],
  ['acquire user-1 gpt-4 -c rpm=1 -c rpm=2', 3, /given once for rpm/],
  ['acquire user-1 gpt-4 -c rmp=1', 3, /Expected `-c rmp` to be the name of a limit \(rpm, tpm, slots\)/],
  ['acquire user-1 gpt-4 -c rpm=9999999999999', 3, /a whole number from 0 to 1000000000000/],
  ['acquire user-1 gpt-4 -c rpm=1 -l rpm:5', 3, /a limit such as "rpm:100\/min".*, got "rpm:5"/],
  ['acquire user-1 gpt-4 -c slots=1 --hold --lease-ttl 1s', 3, /leaseTtlMs/],
  ['acquire user-1 gpt-4 -c slots=1 --hold --lease-ttl soon', 3, /a duration such as 90s/],
  ['acquire user-1 gpt-4 -c rpm=1 --dry-run --hold', 3, /--dry-run takes nothing/],
  ['acquire $SYSTEM gpt-4 -c rpm=1', 3, /an entity id/],
  ['acquire user-1 a#b -c rpm=1', 3, /a resource name/],
  ['system set', 3, /Nothing to set/],
  ['system set -l rpm:100/month', 3, /units ms, sec, min, hour, day/],
  ['system set -l rpm:1/min -l rpm:2/min', 3, /without a second limit named rpm/],
  ['system set --on-unavailable maybe', 3, /Allowed choices are block, allow, local/],
  ['resource set gpt-4', 3, /required option '-l, --limits <limit>' not specified/],
  ['entity set user-1', 3, /Nothing to set/],
  ['entity set user-1 --resource gpt-4', 3, /needs the limits to set there/],
  ['entity set user-1 --name X -l nonsense', 3, /a limit such as/],
  ['entity set user-1 --name X -l rpm:1/min -l rpm:2/min', 3, /without a second limit named rpm/],
  ['entity set user-1 --name X --resource a#b -l rpm:1/min', 3, /a resource name/],
  ['entity set user-1 -l rpm:1/min --if-version 1', 3, /--if-version compares the version of the record/],
  ['entity set user-1 --name X --replace', 3, /--replace needs the limits that stay: -l rpm:60\/min/],
  ['system set --on-unavailable allow --replace', 3, /--replace needs the limits that stay: -l rpm:60\/min/],
  ['entity set user-1 --metadata [1]', 3, /a JSON object/],
  ['entity set user-1 --if-version x --name Y', 3, /Expected `--if-version` to be a whole number/],
  ['entity set user-1 --if-version 9 --name Y', 5, /expected version 9, it is at 1/],
  ['entity set user-1 --parent missing', 3, /an entity that exists/],
  ['entity set proj-1 --parent user-1', 3, /above the entity/],
  ['entity set missing --name X', 4, /Entity missing does not exist/],
  ['entity create user-1', 5, /Entity user-1 exists already/],
  ['entity show missing', 4, /Entity missing does not exist/],
  ['entity delete proj-1 --yes', 5, /it has children, such as user-1/],
  ['entity delete user-1 --default-limits --resource gpt-4', 3, /not both/],
  ['entity list --limit 0', 3, /Expected `--limit` to be a whole number from 1 to 1000, got 0/],
  ['entity list --limit many', 3, /Expected `--limit` to be a whole number, got "many"/],
  ['audit list user-1 --system', 3, /Name only one of these/],
  ['audit list --last 3 --all', 3, /--last cannot be combined with/],
  ['bucket list', 3, /Name either --entity or --resource/],
  ['usage list gpt-4 --window weekly', 3, /Allowed choices are hourly, daily, monthly/],
  ['usage list gpt-4 --from yesterday', 3, /Expected `--from` to be a UTC time/],
  ['usage list gpt-4 --from 2027-02-30', 3, /Expected `--from` to be a UTC time/],
  [
    'usage list gpt-4 --from 2027-02-01 --to 2027-01-01',
    3,
    /Expected `--to` to be later than --from, got "2027-01-01"/,
  ],
  ['usage summary gpt-4 --from 1hour --to 1hour', 3, /later than --from/],
  ['usage plot gpt-4 --from 2020-01-01', 3, /at most 1000 hourly windows/],
  ['usage plot gpt-4 --from 1hour --to 2hour', 3, /later than --from/],
  ['usage plot gpt-4 --only nothing', 3, /one of rpm, tpm, acquires/],
  ['namespace create a/b', 3, /a namespace name/],
  ['namespace show nope', 4, /Namespace nope is not registered/],
  ['namespace delete nope --yes', 4, /Namespace nope is not registered/],
  ['namespace recover acme', 5, /is active: delete it first/],
  ['namespace purge nope --yes', 4, /Namespace nope is not registered/],
  ['system show --namespace tpyo', 4, /Namespace tpyo is not registered: `headgate namespace create` creates it/],
  ['help frobnicate', 3, /unknown command 'frobnicate'/],
  ['help entity frobnicate', 3, /unknown command 'frobnicate'/],
  ['serve --port ', 3, /Expected `--port` to be a port from 0 to 65535, got ""/],
  ['serve --port 8e3', 3, /Expected `--port` to be a port from 0 to 65535, got "8e3"/],
  ['token create web --role root', 3, /Allowed choices are app, admin/],
  ['usage list gpt-4 --from 999999999day', 3, /Expected `--from` to be a UTC time/],
  ['template --format toml', 3, /Allowed choices are yaml, json/],
  ['completion tcsh', 3, /Allowed choices are bash, zsh, fish/],
];

let store: CliStore;
let address: string;
let before: unknown;

beforeAll(async () => {
  store = await createCliStore();
  address = store.copy();
  before = await readAllRows(address.slice('file:'.length));
});
afterAll(() => store.remove());

describe('bad input', () => {
  test.concurrent.each(REFUSED)('%s is refused in one line', async (line, exitCode, says) => {
    const run = await runCli([...line.split(' '), '--store', address]);
    expect(run.stderr).toMatch(says);
    expect(run).toMatchObject({ exitCode, stdout: '', stderr: expect.stringMatching(/^headgate: [^\n]+\n$/) });
  });

  test('refused commands change nothing in the store', async () => {
    expect(await readAllRows(address.slice('file:'.length))).toEqual(before);
  });
});

describe('stores that cannot be used', () => {
  test.concurrent.each([
    ['redis://here', 3, /Expected `store` to be/],
    ['file:', 3, /an address such as file:\.\/limits\.db/],
    ['file:./x.db?mode=ro', 3, /no parameter but `synchronous`/],
    ['file:./no/such/folder/x.db', 9, /there is no folder \.\/no\/such\/folder/],
    ['file:./other.txt', 3, /the path of a Headgate file/],
  ])('the store %s is refused in one line, by reads and by writes', async (bad, exitCode, says) => {
    const other = join(store.folder, 'other.txt');
    writeFileSync(other, 'these are words, and no tables at all\n'.repeat(40));
    for (const command of [['check'], ['system', 'set', '-l', 'rpm:1/min']]) {
      const run = await runCli([...command, '--store', bad.replace('./other.txt', other)]);
      expect(run).toMatchObject({ exitCode, stdout: '', stderr: expect.stringMatching(/^headgate: [^\n]+\n$/) });
      expect(run.stderr).toMatch(says);
    }
  });
});

describe('errors as JSON', () => {
  test.concurrent.each([
    ['entity show missing', 4, { code: 'entity.missing', name: 'EntityNotFound', entityId: 'missing' }],
    ['system set -l nonsense', 3, { code: 'input.invalid', field: 'limit', got: '"nonsense"' }],
    ['frobnicate', 3, { code: 'input.invalid', message: `unknown command 'frobnicate'` }],
    ['entity delete user-1', 3, { code: 'input.invalid' }],
  ])('%s --json prints its error as JSON on standard error, and nothing else', async (line, exitCode, error) => {
    const run = await runCli([...line.split(' '), '--json', '--store', address]);
    expect(run).toMatchObject({ exitCode, stdout: '' });
    expect(JSON.parse(run.stderr)).toMatchObject({ error: { message: expect.any(String), ...error } });
    expect(JSON.parse(run.stderr)).not.toHaveProperty('error.stack');
  });
});

describe('errors of the environment', () => {
  const broken = { HEADGATE_LEASE_TTL_MS: 'soon' };

  test('a bad value in the environment is refused in one line', async () => {
    const run = await runCli(['check'], { env: broken });
    expect(run).toMatchObject({
      exitCode: 3,
      stdout: '',
      stderr: expect.stringMatching(/^headgate: [^\n]*leaseTtlMs[^\n]*\n$/),
    });
  });

  test('HEADGATE_DEBUG=1 shows the stack of an error', async () => {
    const run = await runCli(['check'], { env: { ...broken, HEADGATE_DEBUG: '1' } });
    expect(run.stderr).toMatch(/^headgate: [^\n]*\nValidationError: [^\n]*\n {4}at /);
  });
});
