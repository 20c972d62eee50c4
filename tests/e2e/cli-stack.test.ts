import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { buildTemplate } from '../../src/infra/template.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { answerAtTerminal, HAS_TERMINAL } from '../support/cli/at-terminal.js';
import { type CliRun, runCli } from '../support/cli/run-cli.js';
import { blocksOf } from '../support/docs/code-blocks.js';
import { awsEnvironment, type StackCli, startStackCli } from '../support/cli/stack-cli.js';
import { makeEmptyTable } from '../support/aws/stack-world.js';

describe.skipIf(ENGINE.missing)(`commands on a stack, one after the other${ENGINE.note}`, () => {
  let engine: Engine;
  let cli: StackCli;
  beforeAll(async () => {
    engine = await startEngine();
    cli = await startStackCli(engine);
  });
  afterAll(async () => {
    await cli?.[Symbol.asyncDispose]();
    await engine?.stop();
  });

  const run = async (line: string): Promise<CliRun> => runCli(line.split(' '), { env: cli.env });
  const json = async (line: string): Promise<unknown> => {
    const { exitCode, stdout, stderr } = await run(`${line} --json`);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const data: unknown = JSON.parse(stdout);
    const command = line.split(' ')[0] ?? '';
    expect(CLI_SHAPES[command]?.(data, command)).toEqual([]);
    return data;
  };
  const written = (): readonly string[] =>
    cli.server.actions().filter((action) => !/^(?:Describe|List|Get)/.test(action));

  test('a dry run of deploy shows what it would create, and leaves nothing', async () => {
    const { exitCode, stdout } = await run('deploy --env pre --dry-run');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^to create: stack headgate-pre\nACTION +RESOURCE +TYPE +HOW\nAdd +Table +AWS::DynamoDB::Table\n/,
    );
    expect(stdout).toMatch(/\nNothing was changed: this was a dry run\.\n$/);
    expect(written()).toEqual(['CreateChangeSet', 'DeleteChangeSet', 'DeleteStack']);
    expect([...cli.aws.stacks.keys()]).toEqual([]);
  });

  test('deploy creates the stack, and shows its events on standard error', async () => {
    const { exitCode, stdout, stderr } = await run('deploy --env pre --param LogRetentionDays=7');
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(
      /^ACTION +RESOURCE[^]*\n10:00:00 {2}CREATE_IN_PROGRESS {2}headgate-pre [^]*CREATE_COMPLETE {2}headgate-pre/,
    );
    expect(stdout).toMatch(
      /^created: stack headgate-pre \(CREATE_COMPLETE\)\ntable headgate-pre is ready: version record written, namespace default registered\ncode of headgate-pre-StreamFunction uploaded\ncode of headgate-pre-ReconcilerFunction uploaded\n\n/,
    );
    const store = ['--store', `dynamodb://headgate-pre?region=us-east-1&endpoint=${engine.endpoint}`];
    expect(await runCli(['check', ...store], { env: cli.env })).toMatchObject({ exitCode: 0 });
  });

  test('status shows everything, and writes nothing', async () => {
    const before = written().length;
    const { stdout } = await run('status --env pre');
    expect(stdout).toMatch(
      /^stack +headgate-pre in eu-west-1\nstatus +CREATE_COMPLETE\nversion +\d+\.\d+\.\d+ \(this package: /,
    );
    expect(stdout).toMatch(/\ntable +headgate-pre \(schema version \d+\): ready\n/);
    expect(stdout).toMatch(/\nheadgate-pre-StreamFunction +Active +Successful +of this package\n/);
    expect(await json('status --env pre')).toMatchObject({
      env: 'pre',
      parameters: { LogRetentionDays: '7' },
      tableVersion: { state: 'current' },
      lastFailure: null,
    });
    expect(await json('list')).toMatchObject({ items: [{ stack: 'headgate-pre', env: 'pre', table: 'headgate-pre' }] });
    expect(written().length).toBe(before);
  });

  test('a second deploy changes nothing', async () => {
    expect(await json('deploy --env pre')).toMatchObject({
      action: 'none',
      changes: [],
      functions: [{ uploaded: false }, { uploaded: false }],
      table: { prepared: false },
    });
  });

  test('deploy of a change is refused without a terminal and without --yes, and deletes the change set', async () => {
    const { exitCode, stdout, stderr } = await run('deploy --env pre --param ArchiveDays=30');
    expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' });
    expect(stderr).toMatch(
      /\nheadgate: This changes \d+ resources of stack headgate-pre: without a terminal to ask on, it needs --yes\n$/,
    );
    expect([...cli.aws.changeSets]).toEqual([]);
  });

  test('upgrade changes the template, the data and the code, and a dry run none of them', async () => {
    expect(await json('upgrade --env pre --param ArchiveDays=30 --dry-run')).toMatchObject({
      dryRun: true,
      template: { action: 'update' },
    });
    const { exitCode, stdout } = await run('upgrade --env pre --param ArchiveDays=30 --yes');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^upgraded: stack headgate-pre\ntemplate updated\nNo changes: the table has layout \d+\.\n/);
    expect(await json('status --env pre')).toMatchObject({ parameters: { ArchiveDays: '30', LogRetentionDays: '7' } });
  });

  test.skipIf(!HAS_TERMINAL)(
    'upgrade at a terminal does not claim that nothing changed after the template',
    async () => {
      const reach = { region: 'us-east-1', endpoint: engine.endpoint };
      const client = new DynamoDB({ ...reach, credentials: { accessKeyId: 'x', secretAccessKey: 'y' } });
      const Key = { PK: { S: '_/SYSTEM#' }, SK: { S: '#VERSION' } };
      const place = { TableName: 'headgate-pre', Key };
      const { Item } = await client.getItem(place);
      await client.putItem({ ...place, Item: { ...Item, ...Key, schema_version: { N: '1' } } });
      const { output, code } = await answerAtTerminal('upgrade --env pre', 'Continue?', 'n', cli.env);
      await client.putItem({ ...place, Item: { ...Item, ...Key } });
      client.destroy();
      expect(code).toBe(3);
      expect(output).toContain(
        'Done: template; failed: data; not begun: code, version. Not confirmed: the data was not',
      );
    },
  );

  test.skipIf(!HAS_TERMINAL)('delete at a terminal accepts only the whole name of the stack', async () => {
    const { output, code } = await answerAtTerminal('delete --env pre', 'Type headgate-pre', 'y\r', cli.env);
    expect(code).toBe(3);
    expect(output).toContain('Not confirmed: nothing was changed');
    expect([...cli.aws.stacks.values()]).toMatchObject([{ status: 'UPDATE_COMPLETE' }]);
  });

  test('delete asks for the name, shows what stays, and succeeds if there is no stack', async () => {
    const refused = await run('delete --env pre');
    expect(refused).toMatchObject({ exitCode: 3, stdout: '' });
    expect(refused.stderr).toMatch(
      /^headgate: This deletes stack headgate-pre with its functions and alarms; Table \(headgate-pre\), .* stay: without a terminal/,
    );
    expect(await json('delete --env pre --dry-run')).toMatchObject({ deleted: true, dryRun: true });
    const { exitCode, stdout } = await run('delete --env pre --yes');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^deleted: stack headgate-pre\nWhat stays:\n {2}Table \(headgate-pre\)\n/);
    expect(await json('delete --env pre --yes')).toMatchObject({ deleted: false, kept: [] });
  });
});

describe.skipIf(ENGINE.missing)(`a stack that was not made by deploy${ENGINE.note}`, () => {
  let engine: Engine;
  let cli: StackCli;
  beforeAll(async () => {
    engine = await startEngine();
    cli = await startStackCli(engine);
    await makeEmptyTable(engine, 'headgate-hand');
  });
  afterAll(async () => {
    await cli?.[Symbol.asyncDispose]();
    await engine?.stop();
  });

  const run = async (line: string): Promise<CliRun> => runCli(line.split(' '), { env: cli.env });
  const byHand = (tags: Record<string, string>): void => {
    const template = JSON.stringify(buildTemplate());
    const defaults = Object.entries(buildTemplate().Parameters).map(([name, { Default }]) => [name, String(Default)]);
    const parameters = { ...Object.fromEntries(defaults), TableName: 'headgate-hand' } as Record<string, string>;
    cli.aws.addStack('headgate-hand', { template, parameters, tags });
  };

  test('deploy completes a stack of the printed template without a question, with or without tags', async () => {
    const { version } = JSON.parse((await run('version --json')).stdout) as { readonly version: string };
    byHand({ 'headgate:version': version, 'headgate:env': 'hand' });
    const tagged = await run('deploy --env hand');
    expect(tagged).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^unchanged: [^]*code of \S+ uploaded/),
    });
    byHand({ owner: 'ops' });
    const untagged = await run('deploy --env hand');
    expect(untagged).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^updated: [^]*code of \S+ uploaded/),
    });
    expect(cli.aws.stacks.get('headgate-hand')).toMatchObject({ tags: { owner: 'ops', 'headgate:env': 'hand' } });
  });

  test('deploy asks before it changes anything but tags', async () => {
    const { exitCode, stderr } = await run('deploy --env hand --param ArchiveDays=9');
    expect(exitCode).toBe(3);
    expect(stderr).toContain('it needs --yes');
  });

  test('status exits with 9 for a stack that rolled back, and with 0 for one that works', async () => {
    expect(await run('status --env hand')).toMatchObject({ exitCode: 0 });
    cli.aws.failing.add('Dashboard');
    expect(await run('deploy --env hand --param ArchiveDays=9 --yes')).toMatchObject({ exitCode: 9 });
    const { exitCode, stdout } = await run('status --env hand');
    expect(exitCode).toBe(9);
    expect(stdout).toMatch(/status +UPDATE_ROLLBACK_COMPLETE\n[^]*failed last +Dashboard/);
  });

  test('status refuses the stack of another program, and names what it lacks', async () => {
    cli.aws.addStack('shop', { template: '{"Resources":{}}', parameters: {}, tags: {} });
    expect(await run('status --table shop')).toEqual({
      exitCode: 9,
      stdout: '',
      stderr:
        "headgate: Stack shop does not belong to Headgate: it has neither the tag headgate:version nor Headgate's outputs\n",
    });
  });

  test('deploy --adopt shows the import, asks, and puts an existing table under a new stack', async () => {
    await createTable({ tableName: 'limits', endpoint: engine.endpoint, region: engine.region });
    const refused = await run('deploy --table limits --adopt');
    expect(refused).toMatchObject({ exitCode: 3, stdout: '' });
    expect(refused.stderr).toMatch(
      /^ACTION +RESOURCE[^]*\nImport +Table [^]*\nPointInTimeRecovery: false -> true\n[^]*This puts table limits under stack limits/,
    );
    const dry = await run('deploy --table limits --adopt --dry-run');
    expect(dry.stdout).toMatch(/^to adopt: stack limits\n[^]*Then the rest of the template is added/);
    const { exitCode, stdout } = await run('deploy --table limits --adopt --yes');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^adopted: stack limits \(UPDATE_COMPLETE\)\n[^]*table limits was ready\ncode of limits-Stream/,
    );
    expect(await run('deploy --table limits --adopt')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^unchanged/),
    });
  });
});

/** A pattern of what a page shows: `...` stands for any lines. Ids and times of AWS and the widths of columns may differ. */
function shownFor(page: string, line: string): RegExp {
  const shown = blocksOf(page).flatMap(({ text }) => text.split(`$ npx headgate ${line}\n`).slice(1));
  const [output = '', ...others] = shown.map((text) => text.split('\n$ ')[0]?.trimEnd());
  expect(others).toEqual([]);
  const quoted = plain(output).replaceAll(/[\\^$*+?.()[\]{}|]/g, String.raw`\$&`);
  return new RegExp(`^${quoted.replaceAll(/(?:^|\n)\\\.\\\.\\\.(?=\n|$)/g, '[^]*')}\n?$`);
}

function plain(output: string): string {
  return output
    .replaceAll(/-(?:1A2B3C|4D5E6F)/g, '')
    .replaceAll(/\d\d:\d\d:\d\d/g, '<time>')
    .replaceAll(': User Initiated', '')
    .replaceAll(/ +/g, ' ');
}

describe.skipIf(ENGINE.missing)(`the blocks of the pages on stacks${ENGINE.note}`, () => {
  let engine: Engine;
  let cli: StackCli;
  beforeAll(async () => {
    engine = await startEngine();
    cli = await startStackCli(engine);
  });
  afterAll(async () => {
    await cli?.[Symbol.asyncDispose]();
    await engine?.stop();
  });

  /** What a terminal shows: standard error has the progress, and the result comes last. */
  const type = async (line: string): Promise<string> => {
    const { stdout, stderr } = await runCli(line.split(' '), { env: cli.env });
    return plain(stderr + stdout);
  };

  test('deploy prints what the page shows', async () => {
    expect(await type('deploy --env pre')).toMatch(
      shownFor('docs/operate/deploy.md', 'deploy --env pre --region eu-west-1'),
    );
  });

  test('upgrade of a stack of an older version prints what the page shows', async () => {
    const tags = { 'headgate:version': '0.0.1', 'headgate:env': 'pre' };
    Object.assign(cli.aws.stacks.get('headgate-pre') ?? {}, { tags });
    const ZipFile = Buffer.from('code of an older version').toString('base64');
    for (const FunctionName of cli.aws.functions.keys()) {
      await cli.aws.answer({ action: 'UpdateFunctionCode', params: { FunctionName, ZipFile }, endpoint: '' });
    }
    const page = 'docs/operate/upgrade.md';
    expect(await type('upgrade --env pre --dry-run')).toMatch(shownFor(page, 'upgrade --env pre --dry-run'));
    expect(await type('upgrade --env pre --yes')).toMatch(shownFor(page, 'upgrade --env pre'));
  });

  test('the adoption of a table prints what the page shows', async () => {
    await createTable({ tableName: 'limits', endpoint: engine.endpoint, region: engine.region });
    const shown = shownFor('docs/operate/deploy.md', 'deploy --table limits --adopt');
    expect(await type('deploy --table limits --adopt --yes')).toMatch(shown);
  });
});

describe('commands without AWS', () => {
  let home: string;
  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), 'headgate-home-'));
  });
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  test.each([
    ['deploy --env pre_1', 3, /^headgate: Expected `--env` to be 1 to 40 letters/],
    ['deploy --param Colour=red', 3, /^headgate: Expected `--param` to be one of TableName, /],
    ['status --env a --table b', 3, /^headgate: Expected `--table` to be left out when --env is given/],
    ['list', 7, /^headgate: CloudFormation DescribeStacks: .*ECONNREFUSED/],
  ])('%s without AWS exits with %d, in one sentence', async (line, exitCode, says) => {
    const run = await runCli(line.split(' '), { env: awsEnvironment('http://127.0.0.1:9') });
    expect(run).toMatchObject({ exitCode, stdout: '', stderr: expect.stringMatching(says) });
    expect(run.stderr.trim().split('\n')).toHaveLength(1);
  });

  test.each([
    [
      { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' },
      8,
      'headgate: There are no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run `aws sso login`\n',
    ],
    [
      { AWS_REGION: '' },
      3,
      'headgate: Region not accepted: region="" is not a valid hostname component: set it with --region, AWS_REGION or the profile\n',
    ],
  ])('the missing setting %j is reported in one sentence', async (missing, exitCode, stderr) => {
    const env = { ...awsEnvironment('http://127.0.0.1:9'), HOME: home, AWS_EC2_METADATA_DISABLED: 'true', ...missing };
    expect(await runCli(['status'], { env })).toEqual({ exitCode, stdout: '', stderr });
  });
});
