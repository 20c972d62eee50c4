import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { environmentOf, type LocalMachine, localMachine } from '../support/local-machine.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

const SDK = '@aws-sdk/client-dynamodb';

const found = findEngine('dynoxide');
const NOTE = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

/** What the example leaves to its reader, and what became of it. */
const BEFORE = `
const callModel = async () => ({ text: 'Hello', usage: { total: 700 } });
const refusals = [];
const respond429 = (...refusal) => refusals.push(refusal);
`;
const AFTER = `
if (decision.granted) await decision.lease.commit();
console.log(JSON.stringify({ text, granted: decision.granted, refusals }));
await limiter.close();
`;

/** The first block of TypeScript, which is also JavaScript: as it stands. */
function exampleOf(readme: string): string {
  const [, block = ''] = /^```ts\n([^]*?)^```$/m.exec(readme) ?? [];
  return block;
}

let machine: LocalMachine;

beforeEach(() => {
  machine = localMachine();
});
afterEach(() => machine[Symbol.asyncDispose]());

describe.skipIf(found.status !== 'available')(`the example of the README${NOTE}`, () => {
  test('runs on a table that local up has made and seeded', async () => {
    const example = exampleOf(README);
    expect(example).toMatch(/^import \{ .* \} from 'headgate';\n/);
    writeFileSync(join(machine.home, 'example.mjs'), `${BEFORE}${example}${AFTER}`);
    writeFileSync(
      join(machine.home, 'limits.yaml'),
      'namespace: default\nresources:\n  gpt-4: { limits: ["rpm:60/day", "tpm:10000/day", "slots:4/concurrent"] }\n',
    );
    mkdirSync(join(machine.home, 'node_modules'));
    symlinkSync(ROOT, join(machine.home, 'node_modules/headgate'), 'junction');
    const { url } = await machine.json('local', 'up', '--seed', join(machine.home, 'limits.yaml'));

    const env = { ...environmentOf(machine), HEADGATE_URL: url };
    // The SDK is loaded beforehand: on a busy machine that alone can take the second that the example gives the store.
    const args = ['--import', pathToFileURL(createRequire(import.meta.url).resolve(SDK)).href, 'example.mjs'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: machine.home, env });
    expect(JSON.parse(stdout)).toEqual({ text: 'Hello', granted: true, refusals: [] });

    // 700 were settled, 500 asked for: what the other process took stands in the table.
    const bucket = await machine.json<object>('bucket', 'show', 'user-1', 'gpt-4', '--store', url);
    expect(bucket).toMatchObject({
      bucket: {
        limits: expect.arrayContaining([
          expect.objectContaining({ limit: 'rpm:60/day', consumed: 2 }),
          expect.objectContaining({ limit: 'tpm:10000/day', consumed: 1_200 }),
          expect.objectContaining({ limit: 'slots:4/concurrent', available: 4 }),
        ]),
        holders: 0,
        acquires: 2,
      },
    });
    // The stream of the table, too, needs no more than the address.
    await machine.run('worker', '--once', '--store', url);
    expect(await machine.json('usage', 'summary', 'gpt-4', '--store', url)).toMatchObject({ total: { tpm: 1_200 } });

    expect(await machine.run('local', 'down')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(machine.engines()).toEqual([]);
  });
});
