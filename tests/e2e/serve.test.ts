import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { startEngine } from '../../src/testing/dynamodb/index.js';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { runCli } from '../support/cli/run-cli.js';
import { ENGINE } from '../support/dynamodb/world.js';

const BUILT = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

let folder: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-serve-'));
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

/** Starts the program in an empty folder. Resolves with the lines that it printed up to the one that `isReady`. */
async function start(
  args: readonly string[],
  isReady: (line: string) => boolean,
  env: Readonly<Record<string, string>> = {},
) {
  const child = spawn(process.execPath, [BUILT, 'serve', '--port', '0', ...args], {
    cwd: folder,
    env: { ...process.env, ...env },
  });
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += String(chunk)));
  children.push(child);
  const lines: string[] = [];
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`ended early:\n${lines.join('\n')}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      if (isReady(line)) resolve();
    });
  });
  return { child, lines, ended, errors: () => errors, url: /http:\/\/[\d.:]+/.exec(lines.join('\n'))?.[0] ?? '' };
}

/** Not `spawnSync`: the event loop of this process also reads the output of the server. */
const runInShell = (command: string) => promisify(execFile)('sh', ['-c', command]);

test('headgate serve answers an acquire, and ends in order at SIGTERM', async () => {
  const { child, url, ended, lines } = await start(['--limit', 'rpm:1/min', '--json'], (line) => line.startsWith('{'));
  expect(CLI_SHAPES['serve']?.(JSON.parse(lines[0] ?? ''), 'serve')).toEqual([]);
  const ask = { method: 'POST', body: JSON.stringify({ entityId: 'a', resource: 'b', consume: { rpm: 1 } }) };
  expect((await fetch(`${url}/v1/acquire`, ask)).status).toBe(200);
  expect((await fetch(`${url}/v1/acquire`, ask)).status).toBe(429);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('headgate serve ends in order at a signal that comes while it opens a store that does not answer', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const store = `dynamodb://headgate?region=eu-west-1&endpoint=http://127.0.0.1:${port}`;
  const env = { ...process.env, AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' };
  const child = spawn(process.execPath, [BUILT, 'serve', '--port', '0', '--store', store], { cwd: folder, env });
  children.push(child);
  const [connection] = (await once(silent, 'connection')) as [Socket];
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
  connection.destroy();
  silent.close();
});

test('headgate serve goes on when the reader of its access log is gone', async () => {
  const args = ['--limit', 'rpm:9/min', '--json', '--access-log'];
  const { child, url, ended, errors } = await start(args, (line) => line.startsWith('{'));
  child.stdout?.destroy();
  for (let at = 0; at < 3; at++) expect((await fetch(`${url}/v1/status?entityId=a&resource=b`)).status).toBe(200);
  await expect.poll(errors).toContain('standard output fails, the server goes on');
  child.stderr?.destroy();
  for (let at = 0; at < 3; at++) expect((await fetch(`${url}/v1/status?entityId=a&resource=b`)).status).toBe(200);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test.skipIf(ENGINE.missing)('headgate serve says on standard error when its store is out', async () => {
  const engine = await startEngine();
  const { endpoint, region, credentials } = engine;
  const client = new DynamoDBClient({ endpoint, region, credentials });
  await createTable({ table: 'limits', client });
  client.destroy();
  const env = { AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey };
  const store = `dynamodb://limits?region=${region}&endpoint=${encodeURIComponent(endpoint)}`;
  const { child, url, ended, errors } = await start(
    ['--store', store, '--limit', 'rpm:9/min', '--json'],
    (line) => line.startsWith('{'),
    env,
  );
  await engine.stop();
  const ask = { method: 'POST', body: JSON.stringify({ entityId: 'a', resource: 'b', consume: { rpm: 1 } }) };
  for (let at = 0; at < 6; at++) expect((await fetch(`${url}/v1/acquire`, ask)).status).toBe(503);
  await expect.poll(errors).toContain('headgate: the store does not answer');
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('headgate serve plans and applies a limits file in YAML, and refuses a wrong one with its place in the text', async () => {
  const { child, url, ended } = await start(['--json'], (line) => line.startsWith('{'));
  const send = async (path: string, text: string): Promise<Response> =>
    fetch(`${url}/v1/limits/${path}`, { method: 'POST', body: JSON.stringify({ text }) });
  const yaml = 'namespace: default\nsystem: &shared { limits: ["rpm:5/min"] }\nresources: { gpt-4: *shared }\n';
  expect(await (await send('plan', yaml)).json()).toMatchObject({ changes: [{}, {}], unchanged: 0 });
  expect((await send('apply', yaml)).status).toBe(200);
  expect(await (await send('plan', yaml)).json()).toMatchObject({ changes: [], unchanged: 2 });
  const wrong = await send('plan', 'namespace: default\nsystem:\n  limits: ["rpm:5"]\n');
  expect([wrong.status, await wrong.json()]).toEqual([
    400,
    expect.objectContaining({
      detail: expect.stringMatching(/^limits file:3:12: system\.limits\[0\]: expected a limit/),
    }),
  ]);
  const large = await send('plan', `namespace: default # ${'x'.repeat(256 * 1024)}`);
  expect([large.status, await large.json()]).toMatchObject([400, { field: 'body.text' }]);
  // Only the store knows that the parent does not exist.
  const orphan = await send('plan', 'namespace: default\nentities:\n  a: { parent: nowhere }\n');
  expect(await orphan.json()).toMatchObject({ status: 400, detail: expect.stringMatching(/^limits file:3:16: /) });
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('the demo prints commands that work, and shows the traffic of its fleet', async () => {
  const { child, lines, ended, url } = await start(['--demo'], (line) => line.includes('acme/batch  '));
  expect(lines[0]).toBe(`Dashboard: ${url}/dashboard/`);
  expect(await (await fetch(`${url}/`)).text()).toContain('<title>Headgate</title>');
  const commands = lines.filter((line) => line.includes('curl'));
  expect(commands).toHaveLength(3);
  for (const command of commands) {
    const { stdout } = await runInShell(command.replace('curl -s', "curl -s -w '\\n%{http_code}'"));
    const [body = '', status] = stdout.split('\n');
    expect(() => void JSON.parse(body), command).not.toThrow();
    // The fleet may have used the limit up.
    expect(command.includes('/v1/acquire') ? ['200', '429'] : ['200'], command).toContain(status);
  }
  child.kill('SIGINT');
  expect(await ended).toBe(0);
});

test('the demo uses a free port if its port is taken, and prints commands for that port', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { child, lines, ended, url, errors } = await start(['--demo', '--port', String(port)], (line) =>
    line.includes('/v1/usage'),
  );
  expect(new URL(url).port).not.toBe(String(port));
  expect(errors()).toContain(`headgate: port ${port} is taken: the server uses a free one\n`);
  expect(lines.filter((line) => line.includes('curl'))).toHaveLength(3);
  expect(lines.filter((line) => line.includes(`:${port}`))).toEqual([]);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  other.close();
});

test('headgate token creates, lists and revokes tokens, each with its documented JSON', async () => {
  const file = join(folder, 'tokens.json');
  const run = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { stdout, exitCode } = await runCli(['--json', 'token', ...args, '--file', file]);
    expect(exitCode).toBe(0);
    const data = JSON.parse(stdout) as Record<string, unknown>;
    const command = `token ${args[0]}`;
    expect(CLI_SHAPES[command]?.(data, command)).toEqual([]);
    return data;
  };
  expect(await run('create', 'web', '--entity-prefix', 'acme/')).toMatchObject({
    secret: expect.stringMatching(/^hg_/),
  });
  expect(await run('list')).toMatchObject({ tokens: [{ name: 'web', role: 'app', entityPrefix: 'acme/' }] });
  await run('revoke', 'web');
  expect(await run('list')).toMatchObject({ tokens: [] });
});

test('headgate serve refuses a token file whose tokens are all revoked, because a server without tokens is open', async () => {
  const file = join(folder, 'tokens.json');
  for (const args of [
    ['create', 'web'],
    ['revoke', 'web'],
  ])
    await runCli(['token', ...args, '--file', file]);
  const { stderr, exitCode } = await runCli(['serve', '--port', '0', '--store', 'memory:', '--tokens', file]);
  expect(exitCode).not.toBe(0);
  expect(stderr).toContain('a list of at least one token');
});

test('headgate serve takes the format of the rate-limit fields, and refuses an unknown one', async () => {
  const { url } = await start(['--limit', 'rpm:1/min', '--headers', 'x-ratelimit', '--json'], (line) =>
    line.startsWith('{'),
  );
  const ask = { method: 'POST', body: JSON.stringify({ entityId: 'a', resource: 'b', consume: { rpm: 1 } }) };
  expect((await fetch(`${url}/v1/acquire`, ask)).headers.get('x-ratelimit-limit')).toBe('1');
  const { stderr, exitCode } = await runCli(['serve', '--port', '0', '--store', 'memory:', '--headers', 'draft-99']);
  expect({ stderr, exitCode }).toMatchObject({ stderr: expect.stringContaining("'draft-6'"), exitCode: 3 });
});

test('headgate serve --protect-service asks for a token at /metrics, and refuses to start without tokens', async () => {
  const file = join(folder, 'tokens.json');
  await runCli(['token', 'create', 'web', '--file', file]);
  const { url } = await start(['--tokens', file, '--protect-service', '--json'], (line) => line.startsWith('{'));
  expect((await fetch(`${url}/metrics`)).status).toBe(401);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});

const NAMED: readonly (readonly [readonly string[], Readonly<Record<string, string>>, string])[] = [
  [['--protect-service'], {}, 'Expected `--protect-service` to be left out while there are no tokens'],
  [['--host', '0.0.0.0'], {}, 'Expected `--host` to be a loopback address such as 127.0.0.1 while there are no tokens'],
  [['--max-wait', '2day'], {}, 'Expected `--max-wait` to be at most 24hour, got "2day"'],
  [['--headers', 'draft-99'], {}, "Expected `--headers` to be one of 'draft-10', 'draft-6'"],
  [[], { HEADGATE_LEASE_SECRET: 'short' }, 'Expected `HEADGATE_LEASE_SECRET` to be secrets of at least 16 characters'],
];

test.each(NAMED)('headgate serve with %j and the environment %j names what to change', async (options, env, says) => {
  const args = ['serve', '--port', '0', '--store', 'memory:', ...options];
  const { stderr, exitCode } = await runCli(args, { env });
  expect(exitCode).toBe(3);
  expect(stderr).toContain(says);
});

test('headgate serve names a port that another program uses, and the option for another one', async () => {
  const { url } = await start(['--json'], (line) => line.startsWith('{'));
  const { port } = new URL(url);
  const { exitCode, stdout, stderr } = await runCli(['serve', '--store', 'memory:', '--port', port]);
  expect({ exitCode, stdout }).toEqual({ exitCode: 9, stdout: '' });
  expect(stderr).toContain(`\nheadgate: Port ${port} is used by another program: choose one with --port\n`);
});

test('the example that headgate serve prints names the token, if the server has tokens', async () => {
  const file = join(folder, 'tokens.json');
  await runCli(['token', 'create', 'web', '--file', file]);
  const { child, lines, ended } = await start(['--tokens', file, '--limit', 'rpm:1/min'], (line) =>
    line.includes('curl'),
  );
  expect(lines.join('\n')).toContain(`/v1/acquire -H 'authorization: Bearer <secret of a token>' -d '{`);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('the commands that headgate serve prints work as printed, also where no limits are set yet', async () => {
  const { child, lines, ended } = await start([], (line) => line.includes('/v1/acquire'));
  const commands = lines.filter((line) => line.includes('curl'));
  expect(commands).toHaveLength(2);
  for (const command of commands) {
    const { stdout } = await runInShell(command.replace('curl -s', "curl -s -w '%{http_code}'"));
    expect(stdout, command).toMatch(/200$/);
  }
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('the demo with tokens prints commands that say so, and as JSON prints one line', async () => {
  const file = join(folder, 'tokens.json');
  await runCli(['token', 'create', 'web', '--file', file]);
  const text = await start(['--demo', '--tokens', file], (line) => line.includes('/v1/usage'));
  expect(text.lines.filter((line) => line.includes(`-H 'authorization: Bearer <secret of a token>'`))).toHaveLength(3);
  text.child.kill('SIGTERM');
  await text.ended;
  const json = await start(['--demo', '--json'], (line) => line.startsWith('{'));
  const status = `${json.url}/v1/status?entityId=acme/batch&resource=gpt-4`;
  await expect.poll(async () => (await fetch(status)).status).toBe(200);
  json.child.kill('SIGTERM');
  await json.ended;
  expect(json.lines).toHaveLength(1);
});

test('the demo keeps the limits of a store that is not its own', async () => {
  const store = `file:${join(folder, 'own.db')}`;
  await runCli(['--store', store, 'resource', 'set', 'gpt-4', '-l', 'rpm:7/min']);
  const { url, child, ended } = await start(['--demo', '--json', '--store', store], (line) => line.startsWith('{'));
  const config = await (await fetch(`${url}/v1/config?resource=gpt-4`)).json();
  expect(config).toMatchObject({ limits: [{ text: 'rpm:7/min' }] });
  child.kill('SIGTERM');
  await ended;
});

test.each([
  [['--namespace', 'nope'], 'nope'],
  [['--demo', '--namespace', 'shop'], 'shop'],
  [['--host', '0.0.0.0', '--limit', 'rpm:1/min'], 'headgate token create'],
])('headgate serve %j ends before it says that it serves', async (args, expected) => {
  const store = ['--store', `file:${join(folder, 'limits.db')}`];
  const { stdout, stderr, exitCode } = await runCli(['serve', '--port', '0', ...store, ...args]);
  expect(stdout).toBe('');
  expect(exitCode).not.toBe(0);
  expect(stderr).toContain(expected);
});
