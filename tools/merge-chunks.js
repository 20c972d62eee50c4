/*
 * esbuild makes a chunk for each set of entry points that share code, so that `import 'headgate'` would load more than a
 * dozen files, and a small file takes node longer to find than to run. This makes one file of the chunks of `headgate`
 * that import nothing of node: entry points for other runtimes share them.
 */
import { build } from 'esbuild';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const DIST = fileURLToPath(new URL('../dist', import.meta.url));
const MERGED = join(DIST, 'chunks/shared.js');
/** The forms in which esbuild writes imports and exports of a chunk. */
const IMPORT = /^import (?:\{([^}]*)\} from |[\w$]+ from |\* as [\w$]+ from )?"([^"]*)";\n/gm;
const EXPORT = /^export \{([^}]*)\};$/gm;

/** @type {Map<string, string>} The text of each file of `build:js` by its path. */
const files = new Map();
for (const path of readdirSync(DIST, { recursive: true, encoding: 'utf8' })) {
  const isOther = /^(?:cli|client|dashboard|lambda)[/\\]|workers-/.test(path);
  if (path.endsWith('.js') && !isOther) files.set(join(DIST, path), readFileSync(join(DIST, path), 'utf8'));
}

const chunks = new Set([...closureOf(join(DIST, 'index.js'))].filter(isForAnyRuntime));
const names = uniqueNames();
// A second run finds only the merged file.
if (!chunks.has(MERGED)) {
  await writeMerged();
  for (const [path, text] of files) if (!chunks.has(path)) writeFileSync(path, importFromMerged(path, text));
  for (const path of chunks) rmSync(path);
}

/** The chunks that are loaded with a file. */
function closureOf(path, found = new Set()) {
  for (const specifier of specifiersOf(path)) {
    const chunk = join(dirname(path), specifier);
    if (!specifier.startsWith('.') || found.has(chunk)) continue;
    found.add(chunk);
    closureOf(chunk, found);
  }
  return found;
}

function isForAnyRuntime(path) {
  const loaded = [path, ...closureOf(path)];
  return loaded.every((each) => specifiersOf(each).every((specifier) => specifier.startsWith('.')));
}

function specifiersOf(path) {
  return [...textOf(path).matchAll(IMPORT)].map(([, , specifier]) => specifier);
}

/** The name in the merged file of each export of each chunk. Two chunks may export different things by one name. */
function uniqueNames() {
  const taken = new Set();
  const byChunk = new Map();
  for (const path of chunks) {
    const byName = new Map();
    for (const [, list] of textOf(path).matchAll(EXPORT)) {
      for (const [, name] of parseNames(list)) {
        let unique = name;
        for (let count = 2; taken.has(unique); count++) unique = `${name}$${count}`;
        taken.add(unique);
        byName.set(name, unique);
      }
    }
    byChunk.set(path, byName);
  }
  return byChunk;
}

async function writeMerged() {
  const lines = [...names].map(([path, byName]) => {
    const list = [...byName].map(([name, unique]) => `${name} as ${unique}`);
    return `export { ${list.join(', ')} } from ${JSON.stringify(path)};`;
  });
  await build({
    stdin: { contents: lines.join('\n'), resolveDir: DIST },
    outfile: MERGED,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    logLevel: 'warning',
    plugins: [{ name: 'only-chunks', setup: (bundle) => bundle.onResolve({ filter: /.*/ }, resolve) }],
  });
}

/** What is loaded later stays an import. The merged file is in the folder of the chunks, so that its path is the same. */
function resolve({ path, importer, resolveDir }) {
  const full = importer === '<stdin>' || importer === '' ? path : join(resolveDir, path);
  return chunks.has(full) ? { path: full, sideEffects: false } : { path, external: true };
}

function importFromMerged(path, text) {
  const specifier = relative(dirname(path), MERGED).replaceAll('\\', '/');
  const from = JSON.stringify(specifier.startsWith('.') ? specifier : `./${specifier}`);
  const imported = [];
  const rest = text.replaceAll(IMPORT, (statement, list, target) => {
    const byName = names.get(join(dirname(path), target));
    if (byName === undefined) return statement;
    for (const [name, local] of parseNames(list ?? '')) {
      const unique = byName.get(name);
      if (unique === undefined) throw new Error(`Expected ${target} to export ${name}, which ${path} imports`);
      imported.push(unique === local ? local : `${unique} as ${local}`);
    }
    return '';
  });
  const left = [...chunks].find((chunk) => rest.includes(`/${basename(chunk)}`));
  if (left !== undefined) throw new Error(`Expected ${path} to import ${left} in a form that can be replaced`);
  return imported.length === 0 ? rest : `import { ${imported.join(', ')} } from ${from};\n${rest}`;
}

/** `a as b, c` is [[a, b], [c, c]]. */
function parseNames(list) {
  const parts = list.split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '').map((part) => [part.split(' ')[0], part.split(' ').at(-1)]);
}

function textOf(path) {
  const text = files.get(path);
  if (text === undefined) throw new Error(`Expected a file of the build, got ${path}`);
  return text;
}
