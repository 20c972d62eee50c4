import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { changelogProblems, refusals } from '../tools/release/conditions.js';
import { type Budgets, loadedWith, measureEntries, overBudget } from '../tools/release/entry-sizes.js';
import { bundledIn, sbomOfPackage } from '../tools/release/sbom.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const budgets = JSON.parse(readFileSync(join(ROOT, 'tools/release/budgets.json'), 'utf8')) as Budgets;

const READY = {
  version: '1.2.3',
  changelog: '# Changelog\n\n## Unreleased\n\n## 1.2.3 (2027-01-15)\n\n- A change.\n',
  branch: 'main',
  changes: '',
  repository: { url: 'git+https://example.com/headgate.git' },
  env: { ACTIONS_ID_TOKEN_REQUEST_URL: 'https://example.com' },
};

test('a clean main with a dated section of the changelog, a repository and an identity can be released', () => {
  expect(refusals(READY)).toEqual([]);
});

test.each([
  [{ branch: 'topic' }, 'main'],
  [{ branch: '' }, 'main'],
  [{ changes: ' M README.md' }, 'not committed'],
  [{ repository: undefined }, 'repository'],
  [{ env: {} }, 'OIDC'],
  [{ version: '1.2.4' }, '1.2.4'],
])('a release is refused where %o', (change, reason) => {
  const found = refusals({ ...READY, ...change });
  expect(found).toHaveLength(1);
  expect(found[0]).toContain(reason);
});

test('a section without a date, of a longer version, and changes that belong to no version are refused', () => {
  expect(changelogProblems('1.2.3', '## 1.2.3 (unreleased)\n')).toHaveLength(1);
  expect(changelogProblems('1.2.3', '## 1.2.30 (2027-01-15)\n')).toHaveLength(1);
  expect(changelogProblems('1.2.3', '## Unreleased\n\n- New.\n\n## 1.2.3 (2027-01-15)\n')).toHaveLength(1);
});

test('the size of an entry counts what it imports, once, and not what it loads later', () => {
  const files: Readonly<Record<string, string>> = {
    'dist/a.js': `import{x}from"./b.js";\nimport "node:fs";\nconst later = () => import("./c.js");`,
    'dist/b.js': `export * from "./a.js";`,
  };
  const read = (path: string): string => files[path] ?? expect.fail(`${path} is not part of the entry`);
  expect(loadedWith('dist/a.js', read)).toEqual(Object.values(files));
});

test('an entry above its budget, an entry without a budget and a large tarball are named', () => {
  const found = overBudget({ package: 10, entries: { '.': 5 } }, 11, { '.': 6, './new': 1 });
  expect(found).toHaveLength(3);
  expect(overBudget({ package: 10, entries: { '.': 5 } }, 10, { '.': 5 })).toEqual([]);
});

test.skipIf(!existsSync(join(ROOT, 'dist/index.js')))('every entry of the build is within its budget', () => {
  const sizes = measureEntries(ROOT);
  expect(overBudget(budgets, 0, sizes)).toEqual([]);
  expect(Object.keys(budgets.entries)).toEqual(Object.keys(sizes));
});

test('the SBOM lists the bundled packages, which npm knows as development dependencies only', () => {
  const licences = readFileSync(join(ROOT, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
  expect(bundledIn(licences)).toContain('@hono/node-server');
  const of = (name: string, purl: string) => ({ name, version: '1.0.0', purl: `pkg:npm/${purl}@1.0.0` });
  const full = {
    metadata: { component: of('folder', 'headgate') },
    components: [of('vitest', 'vitest'), of('hono', 'hono'), of('@hono/node-server', '%40hono/node-server')],
  };
  const { components, metadata, dependencies } = sbomOfPackage(full, ['@hono/node-server', 'hono'], 'headgate');
  expect(components.map(({ name }) => name)).toEqual(['@hono/node-server', 'hono']);
  expect(metadata.component.name).toBe('headgate');
  expect(dependencies).toEqual([{ ref: 'headgate@1.0.0', dependsOn: ['@hono/node-server@1.0.0', 'hono@1.0.0'] }]);
  expect(() => sbomOfPackage(full, ['unknown'], 'headgate')).toThrow('unknown');
});
