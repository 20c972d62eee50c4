import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { LimitsPlanShape } from '../../src/cli/commands/manage/limits-shapes.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { readAllRows } from '../support/file/file-rows.js';
import { type CliRun, runCli } from '../support/cli/run-cli.js';

const EXAMPLE = `namespace: default
system: { onUnavailable: block, limits: ["rpm:100/min"] }
resources:
  gpt-4: { limits: ["tpm:10000/min:50000", "slots:20/concurrent"] }
entities:
  proj-1: { name: Production }
  user-1: { parent: proj-1, cascade: true, default: { limits: ["rpm:60/min"] }, resources: { gpt-4: { limits: ["rpm:600/min"] } } }
`;
const OBJECTS = 6;
const WITHOUT_USER = EXAMPLE.replace(/^ {2}user-1.*\n/m, '');

const folder = mkdtempSync(join(tmpdir(), 'headgate-limits-'));
let made = 0;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A folder with its own limits file and store. */
function workplace(text = EXAMPLE) {
  const name = String(made++);
  const [path, database] = [join(folder, `${name}.yaml`), join(folder, `${name}.db`)];
  writeFileSync(path, text);
  const address = `file:${database}`;
  const run = (verb: string, ...args: string[]): Promise<CliRun> =>
    runCli(['limits', verb, ...(verb === 'export' ? [] : ['-f', path]), '--store', address, ...args]);
  const plan = async (verb: string, ...args: string[]): Promise<LimitsPlanShape> =>
    JSON.parse((await run(verb, '--json', ...args)).stdout) as LimitsPlanShape;
  return { path, database, address, run, plan, write: (other: string) => writeFileSync(path, other) };
}

const NOTHING = { changes: [], drift: [], unchanged: OBJECTS };

describe('limits plan, apply and diff', () => {
  test('limits plan shows what apply then does, and the next plan is empty', async () => {
    const { run, plan, database } = workplace();
    const planned = await run('plan');
    expect(planned).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('create entity user-1\n    parent: proj-1\n'),
    });
    expect(planned.stdout).toMatch(/\n6 to create, 0 to update, 0 to delete, 0 unchanged\.\n$/);
    expect(existsSync(database)).toBe(false);
    const before = await plan('plan');
    expect(await plan('apply')).toEqual(before);
    expect(await plan('plan')).toEqual(NOTHING);
    expect(await run('apply')).toMatchObject({ exitCode: 0, stdout: 'No changes: 6 unchanged.\n', stderr: '' });
    expect(await run('diff')).toMatchObject({ exitCode: 0, stdout: 'No changes: 6 unchanged.\n', stderr: '' });
  });

  test('an unlimited limit of a file is applied, and exported as it was written', async () => {
    const { run, plan, address } = workplace(EXAMPLE.replace('tpm:10000/min:50000', 'tpm:unlimited@3'));
    expect((await run('apply')).exitCode).toBe(0);
    expect(await plan('plan')).toEqual(NOTHING);
    expect((await run('export')).stdout).toContain('"tpm:unlimited@3"');
    const { stdout } = await runCli(['resource', 'show', 'gpt-4', '--store', address]);
    expect(stdout).toContain('tpm:unlimited@3  slots:20/concurrent');
  });

  test('limits diff exits with 2 if the file differs, and after a manual change', async () => {
    const { run, plan, address, write } = workplace();
    expect((await run('diff')).exitCode).toBe(2);
    await run('apply');
    await using limiter = await RateLimiter.open(address);
    await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 7)] });
    const seen = await run('diff');
    expect(seen.exitCode).toBe(2);
    expect(seen.stdout).toBe(`update system limits
    limits: rpm:7/min -> rpm:100/min

Manual changes since the last apply:
  system limits
    limits: rpm:100/min -> rpm:7/min

0 to create, 1 to update, 0 to delete, 5 unchanged; 1 changed manually.
`);
    expect(await plan('diff')).toMatchObject({
      drift: [{ target: { kind: 'system' }, applied: { limits: ['rpm:100/min'] }, live: { limits: ['rpm:7/min'] } }],
    });
    // A manual change to the value of the file is no difference.
    write(EXAMPLE.replace('rpm:100/min', 'rpm:7/min'));
    expect((await run('diff')).exitCode).toBe(0);
  });

  test('limits apply reverts a manual change, and shows it', async () => {
    const { run, address } = workplace();
    await run('apply');
    await using limiter = await RateLimiter.open(address);
    await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 7)] });
    expect((await run('apply')).stdout).toMatch(
      /\n\nReverted manual changes:\n {2}system limits\n {4}limits: rpm:100\/min -> rpm:7\/min\n\n0 created, 1 updated, /,
    );
    expect((await run('plan')).stdout).toBe('No changes: 6 unchanged.\n');
  });

  test('limits apply asks before it deletes: without a terminal and --yes it changes nothing', async () => {
    const { run, plan, database, write } = workplace();
    await run('apply');
    write(WITHOUT_USER.replace('Production', 'Changed'));
    const before = await readAllRows(database);
    const refused = await run('apply');
    expect(refused).toEqual({
      exitCode: 3,
      stdout: '',
      stderr:
        'headgate: This deletes limits of user-1 on gpt-4, default limits of user-1, entity user-1 in namespace default: without a terminal to ask on, it needs --yes\n',
    });
    expect(await readAllRows(database)).toEqual(before);
    expect((await run('apply', '--yes')).stdout).toMatch(/\n0 created, 1 updated, 3 deleted, 2 unchanged\.\n$/);
    expect(await plan('plan')).toEqual({ ...NOTHING, unchanged: 3 });
  });

  test('limits apply keeps what the file never named', async () => {
    const { run, address, write } = workplace();
    await using limiter = await RateLimiter.open(address);
    await limiter.entities.create({ id: 'proj-1', metadata: { by: 'hand' } });
    await limiter.config.setEntityDefault('other', { limits: [Limit.perMinute('rpm', 1)] });
    await run('apply');
    write('namespace: default\n');
    await run('apply', '--yes');
    expect(await limiter.entities.get('proj-1')).toMatchObject({ name: null, metadata: { by: 'hand' } });
    expect(await limiter.config.get({ entityId: 'other' })).not.toBeNull();
    expect(await limiter.entities.get('user-1')).toBeNull();
  });

  test('limits apply writes the principal to the audit', async () => {
    const { run, address } = workplace();
    await run('apply', '--principal', 'alice');
    await using limiter = await RateLimiter.open(address);
    const { items } = await limiter.audit.list();
    expect(items.map(({ principal }) => principal)).toEqual(Array.from({ length: OBJECTS }, () => 'alice'));
  });

  test('limits plan, apply and diff work on a store in memory', async () => {
    const { path } = workplace();
    for (const verb of ['plan', 'apply', 'diff']) {
      const { exitCode, stdout } = await runCli(['limits', verb, '-f', path, '--store', 'memory:', '--json']);
      expect(exitCode).toBe(verb === 'diff' ? 2 : 0);
      expect((JSON.parse(stdout) as LimitsPlanShape).changes).toHaveLength(OBJECTS);
    }
  });

  test('limits apply reads the file from standard input', async () => {
    const { address } = workplace();
    const done = await runCli(['limits', 'apply', '-f', '-', '--store', address], { input: EXAMPLE });
    expect(done).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/\n6 created, /) });
    const bad = await runCli(['limits', 'plan', '-f', '-', '--store', address], { input: 'a: [' });
    expect(bad).toMatchObject({ exitCode: 3, stderr: expect.stringMatching(/^headgate: stdin:1:5: not valid YAML: /) });
  });
});

describe('the namespace of a limits file', () => {
  test('the namespace of the file takes precedence over the environment', async () => {
    const { path, address } = workplace(EXAMPLE.replace('default\n', 'acme\n'));
    await using limiter = await RateLimiter.open(address);
    await limiter.namespaces.register('acme');
    await runCli(['limits', 'apply', '-f', path, '--store', address], { env: { HEADGATE_NAMESPACE: 'other' } });
    expect(await (await limiter.in('acme')).entities.get('user-1')).not.toBeNull();
    expect(await limiter.entities.get('user-1')).toBeNull();
  });

  test('a file is refused if --namespace names another namespace', async () => {
    const { run, database, path } = workplace();
    expect(await run('apply', '--namespace', 'acme')).toMatchObject({
      exitCode: 3,
      stderr: `headgate: ${path}:1:12: namespace: expected acme, which --namespace says, got "default"\n`,
    });
    expect(existsSync(database)).toBe(false);
  });

  test.each(['plan', 'apply', 'diff'])('limits %s does not create the namespace of the file', async (verb) => {
    const { run, database } = workplace(EXAMPLE.replace('default\n', 'acme\n'));
    const { exitCode, stderr } = await run(verb);
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining('Namespace acme is not registered')]);
    expect(existsSync(database)).toBe(false);
  });
});

describe('limits export', () => {
  test('limits export prints a file whose plan is empty, as YAML and as JSON', async () => {
    const { run, plan, address, path } = workplace();
    await run('apply');
    await using limiter = await RateLimiter.open(address);
    await limiter.entities.create({ id: 'true', name: 'a: "b"\n# c', metadata: { 1: [null, 1e21], __proto: {} } });
    for (const format of [[], ['--json']]) {
      writeFileSync(path, (await run('export', ...format)).stdout);
      expect(await plan('plan')).toEqual({ ...NOTHING, unchanged: OBJECTS + 1 });
    }
  });

  test('limits export writes a whole file, and asks before it replaces one', async () => {
    const { run, plan, path } = workplace();
    await run('apply');
    const refused = await run('export', '-o', path);
    expect(refused).toMatchObject({
      exitCode: 3,
      stderr: `headgate: This replaces ${path}: without a terminal to ask on, it needs --yes\n`,
    });
    expect(readFileSync(path, 'utf8')).toBe(EXAMPLE);
    expect(await run('export', '-o', path, '--yes')).toMatchObject({
      exitCode: 0,
      stdout: `written: ${path} (2 entities, 1 resource)\n`,
    });
    expect(readFileSync(path, 'utf8')).not.toBe(EXAMPLE);
    expect(await plan('plan')).toEqual(NOTHING);
    expect(readdirSync(folder).filter((name) => name.includes('.tmp'))).toEqual([]);
  });

  test('limits export reports in one line that it cannot write the file', async () => {
    const { run } = workplace();
    const nowhere = join(folder, 'none', 'limits.yaml');
    const { exitCode, stderr } = await run('export', '-o', nowhere);
    expect([exitCode, stderr]).toEqual([
      3,
      expect.stringContaining(`headgate: ${nowhere} cannot be written: ENOENT\n`),
    ]);
  });
});

describe('mistakes in a limits file', () => {
  test.each<[string, string, RegExp]>([
    [
      'a limit that cannot be read',
      EXAMPLE.replace('rpm:60/min', 'rpm:60'),
      /:7:64: entities\.user-1\.default\.limits\[0\]: expected a limit such as .*, got "rpm:60"$/,
    ],
    [
      'a name that is misspelt',
      EXAMPLE.replace('parent', 'parnet'),
      /:7:13: entities\.user-1\.parnet: expected one of .*\(did you mean parent\?\), got "parnet"$/,
    ],
    [
      'a parent that is nowhere',
      EXAMPLE.replace('parent: proj-1', 'parent: proj-9'),
      /:7:21: entities\.user-1\.parent: expected an entity of the file, or one that exists, got "proj-9"$/,
    ],
    ['a name that is a number', EXAMPLE.replace('proj-1: {', '1: {'), /:6:3: entities: expected names that are text/],
    [
      'a name twice',
      EXAMPLE.replace('proj-1: {', 'user-1: {'),
      /:7:3: entities: expected each name once, got "user-1" again$/,
    ],
    ['no YAML at all', '{', /:1:2: not valid YAML: /],
  ])('%s is refused in one line with exit code 3, and changes nothing', async (_, text, message) => {
    const { run, database, path, write } = workplace();
    await run('apply');
    const before = await readAllRows(database);
    write(text);
    for (const verb of ['plan', 'apply', 'diff']) {
      const { exitCode, stdout, stderr } = await run(verb, '--yes');
      expect([exitCode, stdout]).toEqual([3, '']);
      expect(stderr.trimEnd().split('\n')).toHaveLength(1);
      expect(stderr.trimEnd().slice(`headgate: ${path}`.length)).toMatch(message);
    }
    const { stderr } = await run('plan', '--json');
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: 'input.invalid', file: path, line: expect.any(Number) },
    });
    expect(await readAllRows(database)).toEqual(before);
  });

  test('a missing file is refused in one line', async () => {
    const missing = await runCli(['limits', 'plan', '-f', 'nothing.yaml', '--store', 'memory:']);
    expect(missing).toEqual({
      exitCode: 3,
      stdout: '',
      stderr: 'headgate: nothing.yaml: cannot be read: there is no such file\n',
    });
    const unnamed = await runCli(['limits', 'plan', '--store', 'memory:']);
    expect(unnamed).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('-f, --file <file>') });
    const directory = await runCli(['limits', 'plan', '-f', folder, '--store', 'memory:']);
    expect(directory.stderr).toBe(`headgate: ${folder}: cannot be read: it is a folder\n`);
  });
});
