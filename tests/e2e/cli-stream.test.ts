import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../support/dynamodb/world.js';
import { CLI, plainEnvironment, runCli } from '../support/cli/run-cli.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 2 } };

describe.skipIf(ENGINE.missing)(`commands on the stream of a table${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let space: Space;
  let store: string[];

  beforeAll(async () => {
    world = await startWorld();
    space = await world.space();
    const { endpoint, region } = world.engine;
    const address = `dynamodb://${world.table.name}?region=${region}&endpoint=${endpoint}`;
    store = ['--store', address, '--namespace', space.namespace];
    const limiter = await space.open({ limits: [Limit.perMinute('rpm', 60)] });
    await limiter.acquire(ASK);
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test('worker --once reads to the end of the stream and reports what it did', async () => {
    const told = await runCli(['worker', '--once', ...store]);
    expect(told).toMatchObject({
      exitCode: 0,
      stderr: '',
      stdout: expect.stringMatching(/^stopped: \d+ records read, /),
    });
    const { stdout } = await runCli(['worker', '--once', '--json', ...store]);
    expect(CLI_SHAPES['worker']?.(JSON.parse(stdout), 'worker')).toEqual([]);
    const usage = await runCli(['usage', 'list', 'gpt-4', '--json', '--from', '2027-01-15', ...store]);
    expect(JSON.parse(usage.stdout)).toMatchObject({ items: [{ tokens: { rpm: 2 }, acquires: 1 }] });
  });

  test('usage rebuild adds nothing if nothing was lost', async () => {
    await runCli(['worker', '--once', ...store]);
    const told = await runCli(['usage', 'rebuild', 'user-1', 'gpt-4', ...store]);
    expect(told).toMatchObject({ exitCode: 0, stderr: '', stdout: 'Nothing was missing of user-1 on gpt-4.\n' });
    const { stdout } = await runCli(['usage', 'rebuild', 'user-1', 'gpt-4', '--json', ...store]);
    expect(CLI_SHAPES['usage rebuild']?.(JSON.parse(stdout), 'usage rebuild')).toEqual([]);
  });

  test('worker stops cleanly on SIGTERM', async () => {
    const child = spawn(process.execPath, [CLI, 'worker', '--json', ...store], { env: plainEnvironment() });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    // The worker owns the shard once its checkpoint is in the table.
    while (!(await hasOwner(world))) await new Promise((resolve) => setImmediate(resolve));
    child.kill('SIGTERM');
    const [code] = (await once(child, 'close')) as [number];
    expect(code).toBe(0);
    expect(CLI_SHAPES['worker']?.(JSON.parse(stdout), 'worker')).toEqual([]);
    expect(await hasOwner(world)).toBe(false);
  });

  test.each(['worker --once', 'usage rebuild user-1 gpt-4'])(
    '%s is refused on a store without a DynamoDB table',
    async (line) => {
      const run = await runCli([...line.split(' '), '--store', 'memory:']);
      expect(run).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('dynamodb://my-table') });
    },
  );
});

test('the bundle for Lambda is one file that needs only the SDK', () => {
  const bundle = fileURLToPath(new URL('../../dist/lambda/stream.cjs', import.meta.url));
  const asked = [...readFileSync(bundle, 'utf8').matchAll(/\b(?:require|import)\("([^"]+)"\)/g)].map(
    ([, name = '']) => name,
  );
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.filter((name) => !/^(?:node:|@aws-sdk\/client-)/.test(name))).toEqual([]);
  const script = `process.stdout.write(typeof require(${JSON.stringify(bundle)}).handler)`;
  expect(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' })).toBe('function');
});

async function hasOwner(world: DynamoWorld): Promise<boolean> {
  const { DynamoDBClient, ScanCommand } = await import('@aws-sdk/client-dynamodb');
  const { endpoint, region, credentials } = world.engine;
  const client = new DynamoDBClient({ endpoint, region, credentials });
  const input = {
    TableName: world.table.name,
    FilterExpression: 'begins_with(PK, :worker) AND attribute_exists(#owner)',
    ExpressionAttributeNames: { '#owner': 'owner' },
    ExpressionAttributeValues: { ':worker': { S: '_/WORKER#' } },
  };
  const { Count } = await client.send(new ScanCommand(input));
  client.destroy();
  return Count === 1;
}
