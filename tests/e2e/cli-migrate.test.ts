import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { legacyTable } from '../support/migration/legacy-tables.js';
import { LegacyWorld } from '../support/migration/legacy-world.js';
import { runCli } from '../support/cli/run-cli.js';

describe.skipIf(ENGINE.missing)(`headgate migrate${ENGINE.note}`, () => {
  let world: LegacyWorld;
  let name: string;
  let store: string[];

  beforeAll(async () => {
    world = await LegacyWorld.start();
    ({ name } = await world.table(legacyTable('v0.9', 40, 1).items));
    const { endpoint, region } = world.reach;
    store = ['--store', `dynamodb://${name}?region=${region}&endpoint=${endpoint}`];
  });
  afterAll(async () => world?.stop());

  test('other commands on an old table advise headgate migrate', async () => {
    const run = await runCli(['system', 'show', ...store]);
    expect(run).toMatchObject({ exitCode: 6, stdout: '' });
    expect(run.stderr).toContain(`Run: headgate migrate --store '${store[1]}'\n`);
  });

  test('migrate asks first, is refused without a terminal, and a dry run asks nothing', async () => {
    const before = await world.dump(name);
    const asked = await runCli(['migrate', ...store]);
    expect(asked).toMatchObject({ exitCode: 3, stdout: '' });
    expect(asked.stderr).toMatch(/^headgate: This moves \d+ old records of table .* it needs --yes\n$/);
    const dry = await runCli(['migrate', '--dry-run', ...store]);
    expect(dry).toMatchObject({ exitCode: 0, stderr: '' });
    expect(dry.stdout).toMatch(/^dry run: nothing was written\nMIGRATION +FOUND +WRITTEN .*\n0001 +\d+ +0 +0 /);
    expect(await world.dump(name)).toEqual(before);
  });

  test('migrate converts the table, and a second run changes nothing', async () => {
    const first = await runCli(['migrate', '--yes', '--json', ...store]);
    expect(first).toMatchObject({ exitCode: 0, stderr: '' });
    const report: unknown = JSON.parse(first.stdout);
    expect(CLI_SHAPES['migrate']?.(report, 'migrate')).toEqual([]);
    expect(report).toMatchObject({ from: 0, to: 2, dryRun: false, migrations: [{ id: '0001', left: 0 }] });
    const second = await runCli(['migrate', ...store]);
    expect(second).toMatchObject({ exitCode: 0, stderr: '', stdout: 'No changes: the table has layout 2.\n' });
    expect(await runCli(['system', 'show', ...store])).toMatchObject({ exitCode: 0 });
  });

  test('migrate refuses a record that cannot be converted before it writes; `--leave` reports it and exits with 1', async () => {
    const strange = { PK: { S: 'ENTITY#two words' }, SK: { S: '#META' }, entity_id: { S: 'two words' } };
    const { name: other } = await world.table([strange]);
    const address = store[1]?.replace(name, other) ?? '';
    for (const answer of [[], ['--yes']]) {
      const refused = await runCli(['migrate', ...answer, '--store', address]);
      expect(refused).toMatchObject({ exitCode: 9, stdout: '' });
      expect(refused.stderr).toMatch(
        /^headgate: Nothing was written: 1 old records .* ENTITY#two words #META: Expected `entityId` /,
      );
      expect(refused.stderr).toContain(`headgate migrate --dry-run --store '${address}' lists them`);
    }
    expect(await world.dump(other)).toEqual([strange]);
    const run = await runCli(['migrate', '--leave', '--yes', '--store', address]);
    expect(run).toMatchObject({ exitCode: 1, stderr: '' });
    expect(run.stdout).toMatch(/\n {2}left: ENTITY#two words #META: Expected `entityId` /);
  });

  test('migrate --drop takes settings by name, and audit list shows the limits of migrated records as limits', async () => {
    const text = (value: string) => ({ S: value });
    const limit = {
      name: text('rpm'),
      capacity: { N: '150' },
      refill_amount: { N: '100' },
      refill_period_seconds: { N: '60' },
    };
    const { name: other } = await world.table([
      {
        PK: text('default/RESOURCE#gpt-4'),
        SK: text('#CONFIG'),
        l_rpm_cp: { N: '100' },
        l_rpm_ra: { N: '100' },
        l_rpm_rp: { N: '60' },
        l_rpm_soft: { BOOL: true },
      },
      {
        PK: text('default/AUDIT#user-1'),
        SK: text('#AUDIT#01J00000000000000000000000'),
        action: text('limits_set'),
        timestamp: text(new Date().toISOString()),
        resource: text('gpt-4'),
        details: { M: { limits: { L: [{ M: limit }] } } },
      },
    ]);
    const address = store[1]?.replace(name, other) ?? '';
    expect(await runCli(['migrate', '--drop', 'hard', '--store', address])).toMatchObject({ exitCode: 3, stdout: '' });
    const run = await runCli(['migrate', '--yes', '--drop', 'soft', '--store', address]);
    expect(run).toMatchObject({ exitCode: 0, stderr: '' });
    expect(run.stdout).toContain('soft: 1 records, dropped: the limits are enforced');
    const audit = await runCli(['audit', 'list', 'user-1', '--store', address]);
    expect(audit.stdout).toContain('limits rpm:100/60s:150');
    expect(audit.stdout).not.toContain('[object Object]');
  });

  test('migrate refuses stores other than DynamoDB', async () => {
    const run = await runCli(['migrate', '--store', 'memory:']);
    expect(run).toMatchObject({ exitCode: 3, stdout: '' });
    expect(run.stderr).toContain('Expected `--store`');
  });
});
