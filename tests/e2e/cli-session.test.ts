import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { type CliRun, runCli } from '../support/cli/run-cli.js';

const GUIDE = readFileSync(fileURLToPath(new URL('../../docs/guide/cli.md', import.meta.url)), 'utf8');

interface Step {
  readonly line: string;
  readonly output: string;
}

/** The commands of the guide's `console` blocks, each with the output that the guide shows. */
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

/** Replaces times and ids, which the guide says may differ. */
function normalise(output: string): string {
  return output
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?Z?/g, '<time>')
    .replaceAll(/^\d{4}-\d\d(?= )/gm, '<month>')
    .replaceAll(/(?<=answers in )(?:less than 1|\d+) ms/g, '<duration>')
    .replaceAll(/(?<=in )(?:1 h(?: 1 min)?|5\d min(?: \d+ s)?)/g, '<duration>')
    .replaceAll(/(?<=Lease |id {9}|\(id )[\w~-]{11}/g, '<id>')
    .replaceAll(/^[\w~-]{11}(?= {2}\S+ +\S+ +slots=)/gm, '<id>');
}

const folder = mkdtempSync(join(tmpdir(), 'headgate-session-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The files that the guide names, in the folder of the test. */
const FILES = ['./limits.db', 'limits.yaml'].map((name) => [name, join(folder, name)] as const);
const toFolder = (line: string): string => FILES.reduce((text, [name, path]) => text.replaceAll(name, path), line);
const fromFolder = (output: string): string =>
  FILES.reduce((text, [name, path]) => text.replaceAll(path, name), output);

/** Runs a line: `headgate` in this process, any other program with `sh`. */
async function type(line: string, env: Record<string, string>, lastExit: number): Promise<CliRun> {
  const [program, ...args] = line.replace(/ < \/dev\/null$/, '').split(' ');
  if (program === 'headgate') return runCli(args, { env });
  const { status, stdout, stderr } = spawnSync('sh', ['-c', `(exit ${lastExit})\n${line}`], { encoding: 'utf8' });
  return { exitCode: status ?? 1, stdout, stderr };
}

async function typeAll(steps: readonly Step[]): Promise<readonly Step[]> {
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  const exported: Record<string, string> = {};
  const seen: Step[] = [];
  let lastExit = 0;
  for (const { line } of steps) {
    if (line.startsWith('export ')) {
      for (const [, name = '', value = ''] of toFolder(line).matchAll(/(\w+)=(\S+)/g)) exported[name] = value;
    }
    const { stdout, stderr, exitCode } = await type(toFolder(line), exported, lastExit);
    lastExit = exitCode;
    seen.push({ line, output: fromFolder(stdout + stderr) });
  }
  return seen;
}

describe.skipIf(process.platform === 'win32')('the session of the guide (skipped on Windows: it needs sh)', () => {
  test('the commands of the session in the guide print what the guide shows', async () => {
    const steps = readSession(GUIDE);
    const hour = (): number => Math.floor(Date.now() / 3_600_000);
    let startedIn = hour();
    let seen = await typeAll(steps);
    // A chart differs if the hour changes between the usage and the plot.
    if (hour() !== startedIn) [startedIn, seen] = [hour(), await typeAll(steps)];
    if (process.env['RECORD_SESSION'] === '1') record(steps, seen);
    expect(seen.map(({ line, output }) => `$ ${line}\n${normalise(output)}`)).toEqual(
      steps.map(({ line, output }) => `$ ${line}\n${normalise(output)}`),
    );
  });

  test('the session of the guide has the main commands', () => {
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

/** `RECORD_SESSION=1` writes the output into the guide. Review the difference afterwards. */
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

/** A fixed time, so that a new recording of the guide changes only what really differs. */
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
