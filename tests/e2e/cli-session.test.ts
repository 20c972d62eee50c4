import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { blockOf } from '../docs/readme.js';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { compared, readSession, record, type Step, typeAll } from '../support/cli/page-session.js';
import { ROOT } from '../support/docs/code-blocks.js';

const GUIDE = 'docs/guide/cli.md';
const folder = mkdtempSync(join(tmpdir(), 'headgate-session-'));
afterEach(() => {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Installs the package, and saves the first program of the page under the name that the page starts it with. */
function saveProgram(page: string, steps: readonly Step[]): void {
  const [name] = steps.flatMap(({ line }) => /^node (\S+)$/.exec(line)?.slice(1) ?? []);
  if (name === undefined) return;
  writeFileSync(join(folder, name), blockOf(page, 'ts'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/headgate'), 'junction');
}

/** Saves the limits file of a page whose commands read `limits.yaml` without writing it first. */
function saveLimits(page: string, steps: readonly Step[]): void {
  const [first] = steps.filter(({ line }) => line.includes('limits.yaml'));
  if (first !== undefined && / -f limits\.yaml/.test(first.line)) {
    writeFileSync(join(folder, 'limits.yaml'), blockOf(page, 'yaml'));
  }
}

async function replay(page: string, steps: readonly Step[]): Promise<readonly Step[]> {
  saveProgram(page, steps);
  saveLimits(page, steps);
  const seen = await typeAll(steps, folder);
  if (process.env['RECORD_SESSION'] === '1') record(page, steps, seen);
  return seen;
}

describe.skipIf(process.platform === 'win32')('sessions of pages (skipped on Windows: they need sh)', () => {
  test.each([
    GUIDE,
    'docs/guide/charge.md',
    'docs/guide/configuration.md',
    'docs/guide/getting-started.md',
    'docs/guide/hierarchy.md',
    'docs/guide/outages.md',
    'docs/guide/pause.md',
    'docs/guide/waiting.md',
    'docs/operate/multi-tenant.md',
  ])('the commands of %s print what the page shows (RECORD_SESSION=1 rewrites it)', async (page) => {
    const steps = readSession(page);
    const hour = (): number => Math.floor(Date.now() / 3_600_000);
    const startedIn = hour();
    let seen = await replay(page, steps);
    // A chart differs if the hour changes between the usage and the plot.
    if (hour() !== startedIn) {
      for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
      seen = await replay(page, steps);
    }
    expect(compared(seen)).toEqual(compared(steps));
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

test('the page of the JSON has a row for every command, in order', () => {
  const page = readFileSync(join(ROOT, 'docs/reference/cli-json.md'), 'utf8');
  const rows = Array.from(page.matchAll(/^\| `([a-z ]+)` \| .*\|$/gm), ([, command]) => command);
  expect(rows).toEqual(Object.keys(CLI_SHAPES).toSorted());
});
