import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
}

const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
const ENTRIES = Object.keys(exports)
  .filter((name) => name !== './package.json')
  .map((name) => `headgate${name.slice(1)}`);

/** Entry points whose types name the types of other packages: the table of docs/guide/modules.md. */
const PACKAGES = Object.fromEntries(
  Array.from(
    readFileSync(join(ROOT, 'docs/guide/modules.md'), 'utf8').matchAll(/^\| (`headgate\/[^|]+) \| (`[^|]+`) \|$/gm),
    ([, entries = '', packages = '']) => codesOf(entries).map((entry) => [entry, codesOf(packages)] as const),
  ).flat(),
);

/** A project that has only this package and the types of Node. */
let project: string;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'headgate-types-'));
  mkdirSync(join(project, 'node_modules/@types'), { recursive: true });
  // A copy, because TypeScript follows links: it would find the packages of this repository.
  cpSync(join(ROOT, 'package.json'), join(project, 'node_modules/headgate/package.json'));
  cpSync(join(ROOT, 'dist'), join(project, 'node_modules/headgate/dist'), {
    recursive: true,
    filter: (path) => statSync(path).isDirectory() || path.endsWith('.d.ts'),
  });
  symlinkSync(join(ROOT, 'node_modules/@types/node'), join(project, 'node_modules/@types/node'), 'junction');
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

function codesOf(cell: string): readonly string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, code = '']) => code);
}

/** What TypeScript reports of a program that imports these entry points, with the types of every package checked. */
function reportsOf(entries: readonly string[]): string {
  writeFileSync(
    join(project, 'app.mts'),
    entries.map((entry, at) => `import * as e${at} from '${entry}';\nexport { e${at} };`).join('\n'),
  );
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2022'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    skipLibCheck: false,
    noEmit: true,
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['app.mts'] }));
  return spawnSync(process.execPath, [TSC, '-p', project, '--pretty', 'false'], { encoding: 'utf8' }).stdout;
}

test('the types of every other entry point need no package', () => {
  const free = ENTRIES.filter((entry) => PACKAGES[entry] === undefined);
  expect(free.length).toBeGreaterThan(10);
  expect(reportsOf(free)).toBe('');
});

test.each(Object.entries(PACKAGES))(
  'the types of %s need the packages of the table, and no other',
  (entry, packages) => {
    const reports = reportsOf([entry]).trimEnd().split('\n');
    const missing = reports.map((line) => /error TS2307: Cannot find module '([^']+)'/.exec(line)?.[1] ?? line);
    expect([...new Set(missing)].toSorted()).toEqual(packages.toSorted());
  },
);
