import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';

const BUILT = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

interface Tour {
  readonly steps: readonly { readonly title: string; readonly lines: readonly string[] }[];
}

let tour: Tour;
let printed = '';

beforeAll(() => {
  const text = execFileSync(process.execPath, [BUILT, 'tour', '--json'], { encoding: 'utf8', timeout: 30_000 });
  tour = JSON.parse(text) as Tour;
  printed = tour.steps.flatMap(({ lines }) => lines.map((line) => `${line}\n`)).join('');
});

test.each([
  ['grants and an exact wait', /call 3: granted .*\n.*call 4: denied by rpm of user-1, retry in 1000 ms/],
  ['that 1 ms less is not enough', /999 ms later: denied .*retry in 1 ms\n.*1 ms later: {3}granted/],
  ['debt and recovery', /settled 7,000: -1000 tokens left\n.*the next 500 fit in 15000 ms\n.*15000 ms later: granted/],
  ['slots that are held and expire', /two holders: +denied .*\n.*one commits: +granted .*\n.*no heartbeat: granted/],
  ['a parent that refuses', /bob asks for 80: +denied by rpm of proj-1/],
  ['usage as a chart', /05:00 █{40} 20000\n/],
])('the tour shows %s', (_, line) => {
  expect(printed).toMatch(line);
});

test('two processes of the tour on one file are granted exactly the capacity', () => {
  const [first, second, together] = [/process 1 +(\d+)/, /process 2 +(\d+)/, /together +(\d+)/].map((line) =>
    Number(line.exec(printed)?.[1]),
  );
  expect(together).toBe(100);
  expect((first ?? 0) + (second ?? 0)).toBe(100);
  expect(Math.min(first ?? 0, second ?? 0)).toBeGreaterThanOrEqual(20);
});

test('the JSON of the tour has the titles and the lines of its steps', () => {
  expect(CLI_SHAPES['tour']?.(tour, 'tour')).toEqual([]);
  expect(tour.steps.map(({ title }) => title)).toHaveLength(6);
  expect(tour.steps[0]?.lines).toContain('call 4: denied by rpm of user-1, retry in 1000 ms');
});

test('the tour without SQLite skips the step that needs it, says so, and continues', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-tour-'));
  try {
    // A folder without libsql, as after npx in an empty folder.
    for (const part of ['dist', 'package.json'])
      cpSync(join(BUILT, '../../..', part), join(folder, part), { recursive: true });
    const program = join(folder, 'dist/cli/main.js');
    const text = execFileSync(process.execPath, [program, 'tour'], { encoding: 'utf8', timeout: 30_000, cwd: folder });
    expect(text).toMatch(
      /\n5\. Two processes on one file[^\n]*\n(?: {3}Left out: [^\n]*npm install libsql|[^]*together +100\n)/,
    );
    expect(text).toMatch(/call 3: granted .*\n.*call 4: denied by rpm of user-1, retry in 1000 ms/);
    expect(text).toMatch(/\n6\. What was used/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
