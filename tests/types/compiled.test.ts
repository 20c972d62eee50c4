import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const TYPE_TESTS = readdirSync(HERE).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));

/** Two folders below the root, like the type tests, so that relative imports work in a copy. */
let folder: string;

beforeAll(() => {
  mkdirSync(join(ROOT, '.tmp'), { recursive: true });
  folder = mkdtempSync(join(ROOT, '.tmp/types-'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('npm run check compiles the type tests', () => {
  const compiled = tsc('-p', 'tsconfig.json', '--listFilesOnly')
    .split(/\r?\n/)
    .map((path) => resolve(ROOT, path));
  expect(compiled).toEqual(expect.arrayContaining(TYPE_TESTS.map((name) => join(HERE, name))));
});

describe.each(TYPE_TESTS)('the type test %s', (name) => {
  const text = readFileSync(join(HERE, name), 'utf8');

  test(`the type test ${name} compiles`, () => {
    expect(errorsOf(name, text)).toEqual([]);
  });

  test(`each line of the type test ${name} that expects an error has one`, () => {
    const bare = text.replaceAll(/^ *\/\/ @ts-expect-error.*$/gm, '//');
    const expected = text.split('\n').flatMap((line, index) => (line.includes('@ts-expect-error') ? [index + 2] : []));
    expect(errorsOf(name, bare).map(({ line }) => line)).toEqual(expected);
  });

  test(`the type test ${name} does not compile when it expects an error that does not occur`, () => {
    const planted = errorsOf(name, `${text}\n// @ts-expect-error planted\nexport const fine: number = 1;\n`);
    expect(planted.map(({ message }) => message)).toEqual([`TS2578: Unused '@ts-expect-error' directive.`]);
  });
});

/** The errors in this file only. `npm run check` reports those of imported files. */
function errorsOf(name: string, text: string): { readonly line: number; readonly message: string }[] {
  const config = { extends: '../../tsconfig.json', include: [name] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  writeFileSync(join(folder, name), text);
  return tsc('-p', folder, '--pretty', 'false')
    .split(/\r?\n/)
    .filter((line) => line.includes(`${basename(folder)}/${name}(`))
    .map((line) => /\((\d+),\d+\): error (TS\d+: .*)$/.exec(line))
    .flatMap((found) => (found === null ? [] : [{ line: Number(found[1]), message: found[2]! }]));
}

function tsc(...args: readonly string[]): string {
  const { stdout, stderr } = spawnSync(process.execPath, [TSC, ...args], { cwd: ROOT, encoding: 'utf8' });
  return stdout + stderr;
}
