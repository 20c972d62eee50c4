import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ChargeShape } from '../../src/cli/commands/inspect/charge.js';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { type CliStore, createCliStore } from '../support/cli/cli-store.js';
import { runCli } from '../support/cli/run-cli.js';

let store: CliStore;

beforeAll(async () => {
  store = await createCliStore();
});
afterAll(() => store.remove());

async function charge(kind: 'charge' | 'credit', address: string, ...args: readonly string[]): Promise<ChargeShape> {
  const run = await runCli([kind, 'proj-1', 'gpt-4', ...args, '--store', address, '--json']);
  const data = JSON.parse(run.stdout) as ChargeShape;
  expect(CLI_SHAPES[kind]?.(data, kind)).toEqual([]);
  return data;
}

test('charge takes into debt, credit gives back, and both show what is available afterwards', async () => {
  const address = store.copy();
  const { available: before } = await charge('charge', address, '-c', 'rpm=1');
  const charged = await charge('charge', address, '-c', 'rpm=100');
  expect(charged).toMatchObject({ amounts: { rpm: 100 }, id: null, available: { rpm: Number(before['rpm']) - 100 } });
  const run = await runCli(['credit', 'proj-1', 'gpt-4', '-c', 'rpm=1000', '--store', address]);
  expect(run).toMatchObject({ exitCode: 0, stderr: '' });
  expect(run.stdout).toMatch(/^credited: proj-1 on gpt-4: rpm 1,000; available now: rpm 60, slots \d\n$/);
});

test('charge --id counts once, however often the command is repeated', async () => {
  const address = store.copy();
  const first = await charge('charge', address, '-c', 'rpm=5', '--id', 'invoice-17');
  expect(first.id).toBe('invoice-17');
  expect(await charge('charge', address, '-c', 'rpm=5', '--id', 'invoice-17')).toEqual(first);
  const other = await runCli(['charge', 'proj-1', 'gpt-4', '-c', 'rpm=6', '--id', 'invoice-17', '--store', address]);
  expect(other).toMatchObject({ exitCode: 3, stdout: '' });
});

test.each([
  [['charge', 'user-1', 'gpt-4'], /Expected `-c` to be an amount of at least one limit/],
  [['charge', 'proj-1', 'gpt-4', '-c', 'slots=1'], /the name of a rate or of an unlimited limit \(rpm\)/],
  [['credit', 'proj-1', 'gpt-4', '-c', 'rpm=1', '--id', 'a b'], /`id`/],
])('the bad command line %j is refused with exit code 3', async (args, message) => {
  const run = await runCli([...args, '--store', store.copy()]);
  expect(run).toMatchObject({ exitCode: 3, stdout: '' });
  expect(run.stderr).toMatch(message);
});
