import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { CLI_SHAPES } from '../support/cli/cli-shapes.js';
import { compared, readSession, record, type Step, typeAll } from '../support/cli/page-session.js';
import { ROOT } from '../support/docs/code-blocks.js';

const GUIDE = 'docs/guide/cli.md';
const folder = mkdtempSync(join(tmpdir(), 'headgate-session-'));
afterEach(() => {
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What the first page does before it looks at it: one answer of 700 tokens. */
async function answerOnce(): Promise<void> {
  const limits = [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000)];
  const limiter = await RateLimiter.open(`file:${join(folder, 'limits.db')}`, { limits });
  const lease = await limiter.acquire({ entityId: 'ada', resource: 'gpt-4', consume: { rpm: 1, tpm: 500 } });
  await lease.commit({ tpm: 700 });
  await limiter.close();
}

async function replay(page: string, steps: readonly Step[], before: () => Promise<void>): Promise<readonly Step[]> {
  await before();
  const seen = await typeAll(steps, folder);
  if (process.env['RECORD_SESSION'] === '1') record(page, steps, seen);
  return seen;
}

describe.skipIf(process.platform === 'win32')('sessions of pages (skipped on Windows: they need sh)', () => {
  test.each([
    [GUIDE, async () => {}],
    ['docs/guide/charge.md', async () => {}],
    ['docs/guide/configuration.md', async () => {}],
    ['docs/guide/getting-started.md', answerOnce],
  ])('the commands of %s print what the page shows (RECORD_SESSION=1 rewrites it)', async (page, before) => {
    const steps = readSession(page);
    const hour = (): number => Math.floor(Date.now() / 3_600_000);
    const startedIn = hour();
    let seen = await replay(page, steps, before);
    // A chart differs if the hour changes between the usage and the plot.
    if (hour() !== startedIn) {
      for (const name of readdirSync(folder)) rmSync(join(folder, name));
      seen = await replay(page, steps, before);
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

test('the guide has a row for the JSON of every command, in order', () => {
  const guide = readFileSync(join(ROOT, GUIDE), 'utf8');
  const rows = Array.from(guide.matchAll(/^\| `([a-z ]+)` \| .*\|$/gm), ([, command]) => command);
  expect(rows).toEqual(Object.keys(CLI_SHAPES).toSorted());
});
