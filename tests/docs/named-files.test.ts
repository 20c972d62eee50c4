import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DYNAMODB = 'src/backends/dynamodb';

/** Paths of files from the root. Only files count: git keeps no empty folder, but a working tree may have one. */
function filesBelow(folder: string): readonly string[] {
  const found = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(ROOT, join(parentPath, name)).replaceAll(sep, '/'));
}

const atRoot = readdirSync(ROOT, { withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [entry.name] : []));
const sources = ['src', 'tests', 'bench', 'examples'].flatMap(filesBelow).concat(atRoot);
const pages = ['README.md', 'CONTRIBUTING.md', ...filesBelow('docs').filter((name) => name.endsWith('.md'))];

function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** The TypeScript files that a text names and that do not exist. A name may be the end of a path: `bucket/split.ts`. */
function missingFiles(text: string): readonly string[] {
  const named = new Set(text.match(/(?<![*.\w/-])[\w-][\w./-]*\.ts\b/g));
  return [...named].filter((name) => !sources.some((file) => file === name || file.endsWith(`/${name}`)));
}

/** The folders of the DynamoDB store that a table names, such as `.../bucket/writes/`. */
function namedFolders(text: string): readonly string[] {
  return Array.from(text.matchAll(/^\| `\.\.\.\/([\w/]+)\/` \|/gm), ([, name = '']) => `${DYNAMODB}/${name}`);
}

function isFolder(folder: string): boolean {
  return sources.some((file) => file.startsWith(`${folder}/`));
}

test.each(pages)('every TypeScript file that %s names exists', (page) => {
  expect(missingFiles(read(page))).toEqual([]);
});

test('a name of a file that does not exist is found', () => {
  expect(missingFiles('`bucket/group/group-write.ts`, `*.test.ts` and `bucket/no-such-file.ts`')).toEqual([
    'bucket/no-such-file.ts',
  ]);
});

test('the table of folders in CONTRIBUTING names every folder of the DynamoDB store, and no other', () => {
  const named = namedFolders(read('CONTRIBUTING.md'));
  const paths = sources.flatMap((file) => /^src\/backends\/dynamodb\/\w+(?=\/)/.exec(file)?.[0] ?? []);
  expect([...new Set(paths)].filter((folder) => !named.includes(folder))).toEqual([]);
  expect(named.filter((folder) => !isFolder(folder))).toEqual([]);
});

test('a folder that does not exist is found in a table of folders', () => {
  const named = namedFolders('| `.../bucket/writes/` | writes |\n| `.../no_such/` | nothing |');
  expect(named.filter((folder) => !isFolder(folder))).toEqual([`${DYNAMODB}/no_such`]);
});
