import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLI_SHAPES } from '../support/cli-shapes.js';
import { CLI, plainEnvironment } from '../support/run-cli.js';

const GUIDE = readFileSync(fileURLToPath(new URL('../../docs/guide/cli.md', import.meta.url)), 'utf8');

interface Step {
  readonly line: string;
  readonly output: string;
}

/** The lines that are typed in the guide's `console` blocks, each with what the guide says that it prints. */
function readSession(guide: string): readonly Step[] {
  const blocks = Array.from(guide.matchAll(/^```console\n([^]*?)^```$/gm), ([, block = '']) => block);
  return blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((typed) => {
        const end = typed.indexOf('\n');
        return { line: typed.slice(0, end), output: typed.slice(end + 1) };
      }),
  );
}

/** Times and ids, of which the guide says that they may differ. */
function normalise(output: string): string {
  return output
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?Z?/g, '<time>')
    .replaceAll(/^\d{4}-\d\d(?= )/gm, '<month>')
    .replaceAll(/(?<=answers in )(?:less than 1|\d+) ms/g, '<duration>')
    .replaceAll(/(?<=in )(?:1 h|5\d min(?: \d+ s)?)/g, '<duration>')
    .replaceAll(/(?<=Lease |id {9}|\(id )[\w~-]{11}/g, '<id>')
    .replaceAll(/^[\w~-]{11}(?= {2}slots=)/gm, '<id>');
}

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-session-'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin/headgate'), `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`);
  chmodSync(join(folder, 'bin/headgate'), 0o755);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Each line in a shell of its own, with what was exported before and the exit code of the one before. */
function type(line: string, exported: readonly string[], lastExit: number): Promise<{ output: string; exit: number }> {
  const script = [...exported, `(exit ${lastExit})`, `{ ${line}\n} 2>&1`].join('\n');
  const env = { ...plainEnvironment(), PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}` };
  return new Promise((resolve) => {
    execFile('sh', ['-c', script], { cwd: folder, env }, (error, output) => {
      resolve({ output, exit: typeof error?.code === 'number' ? error.code : 0 });
    });
  });
}

async function typeAll(steps: readonly Step[]): Promise<readonly Step[]> {
  for (const name of ['limits.db', 'limits.db-wal', 'limits.db-shm', 'limits.yaml']) {
    rmSync(join(folder, name), { force: true });
  }
  const exported: string[] = [];
  const seen: Step[] = [];
  let lastExit = 0;
  for (const { line } of steps) {
    if (line.startsWith('export ')) exported.push(line);
    const { output, exit } = await type(line, exported, lastExit);
    lastExit = exit;
    seen.push({ line, output });
  }
  return seen;
}

describe.skipIf(process.platform === 'win32')('the session of the guide (skipped on Windows: it needs sh)', () => {
  test('prints what the guide says', async () => {
    const steps = readSession(GUIDE);
    const hour = (): number => Math.floor(Date.now() / 3_600_000);
    let startedIn = hour();
    let seen = await typeAll(steps);
    // What was used in one hour and drawn in the next has another picture.
    if (hour() !== startedIn) [startedIn, seen] = [hour(), await typeAll(steps)];
    if (process.env['RECORD_SESSION'] === '1') record(steps, seen);
    expect(seen.map(({ line, output }) => `$ ${line}\n${normalise(output)}`)).toEqual(
      steps.map(({ line, output }) => `$ ${line}\n${normalise(output)}`),
    );
  });

  test('has the main commands', () => {
    const typed = readSession(GUIDE).map(({ line }) => line.split(' ').slice(1, 3).join(' '));
    const main = [
      'system set',
      'resource set',
      'entity create',
      'config show',
      'acquire user-1',
      'usage plot',
      'audit list',
    ];
    expect(typed).toEqual(expect.arrayContaining(main));
  });
});

/** `RECORD_SESSION=1` writes what was printed into the guide; then look at the difference. */
function record(steps: readonly Step[], seen: readonly Step[]): void {
  let guide = GUIDE;
  let from = 0;
  for (const [at, { line, output }] of steps.entries()) {
    const typed = `$ ${line}\n${output}`;
    const printed = `$ ${line}\n${timeless(seen[at]?.output ?? '')}`;
    from = guide.indexOf(typed, from);
    guide = guide.slice(0, from) + printed + guide.slice(from + typed.length);
    from += printed.length;
  }
  writeFileSync(fileURLToPath(new URL('../../docs/guide/cli.md', import.meta.url)), guide);
}

/** A time of no meaning, so that a guide which is recorded again does not differ everywhere. */
function timeless(output: string): string {
  let hour = 9;
  return output
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/g, '2027-01-15 10:00:00Z')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d(?!:)/g, () => `2027-01-15 ${String(hour++).padStart(2, '0')}:00`)
    .replaceAll(/^\d{4}-\d\d(?= )/gm, '2027-01');
}

test('the guide has a row for the JSON of every command, in order', () => {
  const rows = Array.from(GUIDE.matchAll(/^\| `([a-z ]+)` \| .*\|$/gm), ([, command]) => command);
  expect(rows).toEqual(Object.keys(CLI_SHAPES).toSorted());
});
