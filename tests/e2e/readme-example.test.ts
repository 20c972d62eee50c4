import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { environmentOf, type LocalMachine, localMachine } from '../support/cli/local-machine.js';
import { firstSeed, README_OUTPUT, readmeProgram } from '../docs/readme.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SDK = '@aws-sdk/client-dynamodb';

const found = findEngine('dynoxide');
const NOTE = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

let machine: LocalMachine;

beforeEach(() => {
  machine = localMachine();
});
afterEach(() => machine[Symbol.asyncDispose]());

describe.skipIf(found.status !== 'available')(`the example of the README${NOTE}`, () => {
  test('the example of the README runs on a table that headgate local up created and seeded', async () => {
    writeFileSync(join(machine.home, 'example.mjs'), readmeProgram());
    writeFileSync(join(machine.home, 'limits.yaml'), firstSeed());
    mkdirSync(join(machine.home, 'node_modules'));
    symlinkSync(ROOT, join(machine.home, 'node_modules/headgate'), 'junction');
    const { url } = await machine.json('local', 'up', '--seed', join(machine.home, 'limits.yaml'));

    const env = { ...environmentOf(machine), HEADGATE_URL: url };
    // Loading the SDK on a busy machine can take as long as the timeout of the example, so it is loaded first.
    const args = ['--import', pathToFileURL(createRequire(import.meta.url).resolve(SDK)).href, 'example.mjs'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: machine.home, env });
    expect(stdout).toBe(README_OUTPUT);

    // The example settled 700; this process reads it from the table.
    const bucket = await machine.json<object>('bucket', 'show', 'user-1', 'gpt-4', '--store', url);
    expect(bucket).toMatchObject({
      bucket: {
        limits: expect.arrayContaining([
          expect.objectContaining({ limit: 'rpm:60/min', consumed: 1 }),
          expect.objectContaining({ limit: 'tpm:10000/min', consumed: 700 }),
          expect.objectContaining({ limit: 'slots:4/concurrent', available: 4 }),
        ]),
        holders: 0,
        acquires: 1,
      },
    });
    // The worker needs only the address too.
    await machine.run('worker', '--once', '--store', url);
    expect(await machine.json('usage', 'summary', 'gpt-4', '--store', url)).toMatchObject({ total: { tpm: 700 } });

    expect(await machine.run('local', 'down')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(machine.engines()).toEqual([]);
  });
});
