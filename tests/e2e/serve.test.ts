import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { runCli } from '../support/cli/run-cli.js';

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
async function start(args: readonly string[], isReady: (line: string) => boolean) {
  const child = spawn(process.execPath, [BUILT, 'serve', '--port', '0', ...args], { cwd: folder });
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
  return { child, lines, ended, url: /http:\/\/[\d.:]+/.exec(lines.join('\n'))?.[0] ?? '' };
}

test('headgate serve answers an acquire, and ends in order at SIGTERM', async () => {
  const { child, url, ended, lines } = await start(['--limit', 'rpm:1/min', '--json'], (line) => line.startsWith('{'));
  expect(CLI_SHAPES['serve']?.(JSON.parse(lines[0] ?? ''), 'serve')).toEqual([]);
  const ask = { method: 'POST', body: JSON.stringify({ entityId: 'a', resource: 'b', consume: { rpm: 1 } }) };
  expect((await fetch(`${url}/v1/acquire`, ask)).status).toBe(200);
  expect((await fetch(`${url}/v1/acquire`, ask)).status).toBe(429);
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
  const urls = lines.flatMap((line) =>
    Array.from(line.matchAll(/curl -s '?(http:[^' ]+)/g), ([, example]) => example ?? ''),
  );
  expect(urls).toHaveLength(3);
  for (const example of urls.slice(1)) expect((await fetch(example)).status).toBe(200);
  const body = /-d '([^']+)'/.exec(lines.join('\n'))?.[1] ?? '';
  const acquired = await fetch(urls[0] ?? '', { method: 'POST', body });
  expect([200, 429]).toContain(acquired.status);
  child.kill('SIGINT');
  expect(await ended).toBe(0);
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
  const { stderr, exitCode } = await runCli(['serve', '--port', '0', '--store', 'memory:', '--protect-service']);
  expect({ stderr, exitCode }).toMatchObject({ stderr: expect.stringContaining('protectService'), exitCode: 3 });
});

test('the example that headgate serve prints names the token, if the server has tokens', async () => {
  const file = join(folder, 'tokens.json');
  await runCli(['token', 'create', 'web', '--file', file]);
  const { child, lines, ended } = await start(['--tokens', file], (line) => line.includes('curl'));
  expect(lines.join('\n')).toContain(`/v1/acquire -H 'authorization: Bearer <secret of a token>' -d '{`);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});
