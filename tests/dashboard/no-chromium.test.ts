import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { findChromium } from '../support/dashboard/browser.js';

const FOLDER = 'tests/dashboard';
const SELF = 'no-chromium.test.ts';
const NOWHERE = '/nowhere/chromium';

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

test('where CHROMIUM names no browser, every browser test is skipped, and its title says why', async () => {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.test.ts') && name !== SELF);
  const args = ['run', '--config', 'vitest.chaos.config.ts', '--no-isolate', '--reporter=json', `${FOLDER}/`];
  const env = { ...process.env, CHROMIUM: NOWHERE };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', ...args, `--exclude=${FOLDER}/${SELF}`],
    { env, maxBuffer: 1e8 },
  );
  const { testResults } = JSON.parse(stdout) as Report;
  expect(new Set(testResults.map(({ name }) => name.split('/').at(-1)))).toEqual(new Set(files));
  const found = testResults.flatMap(({ assertionResults }) => assertionResults);
  expect(found.length).toBeGreaterThan(30);
  const note = `(skipped: no Chromium; CHROMIUM names ${NOWHERE}, which does not exist)`;
  expect(found.filter(({ status, fullName }) => status !== 'skipped' || !fullName.includes(note))).toEqual([]);
});

test('CHROMIUM is used alone, and without it the usual paths are tried', () => {
  const only = (path: string) => (one: string) => one === path;
  expect(findChromium('/opt/browser', only('/opt/browser'))).toEqual({ executable: '/opt/browser', note: '' });
  expect(findChromium('/opt/browser', only('/usr/bin/chromium')).executable).toBeNull();
  expect(findChromium('', only('/usr/bin/chromium-browser')).executable).toBe('/usr/bin/chromium-browser');
  expect(findChromium(undefined, () => false).note).toBe(
    ' (skipped: no Chromium; set CHROMIUM or install it at /usr/bin/chromium)',
  );
});
