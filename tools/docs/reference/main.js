import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { ReflectionKind } from 'typedoc';
import { convert } from './convert.js';
import { readEntries, ROOT } from './entries.js';
import { linksFrom } from './links.js';
import { table } from './markdown.js';
import { buildOptionsPage } from './options-page.js';
import { pagesOf } from './pages.js';
import { findUndocumented } from './undocumented.js';
import { renderPage, sortSymbols } from './render-page.js';

const FOLDER = new URL('docs/reference/', ROOT);
const BANNER = '<!-- Generated from the sources by `npm run docs:reference`: do not edit. -->';

const INDEX_INTRO = 'Generated from the sources. The [guide](../README.md) explains how the parts are used together.';
const OTHER_PAGES = [
  ['[Options](options.md)', 'every option, its type and its default'],
  ['[Errors](errors.md)', 'every code: HTTP status, exit code, meaning, what to do'],
  ['[Environment variables](environment.md)', 'every variable that is read'],
  ['[The HTTP API](http.md)', 'the routes of `headgate serve`'],
  ['[The JSON of the command line](cli-json.md)', 'what each command prints with `--json`'],
];

const entries = readEntries();
const project = await convert(entries);
const pages = entries.flatMap((entry) => pagesWithSymbols(entry));

const missing = findUndocumented(pages.flatMap(({ symbols }) => symbols));
if (missing.length > 0) throw new Error(`Public exports without TSDoc:\n${missing.join('\n')}`);

const texts = new Map();
const anchors = new Map(pages.flatMap(anchorsOf));
const known = knownNames();
for (const page of pages) texts.set(page.file, await renderPage(page, linksFrom(page.file, anchors, known)));
texts.set('options.md', buildOptionsPage(known, linksFrom('options.md', anchors, known)));

mkdirSync(FOLDER, { recursive: true });
texts.set('README.md', buildIndex());

if (process.argv.includes('--check')) refuseStale();
else writeAll();

/** The list of all pages. */
function buildIndex() {
  const rows = pages.toSorted(byEntry).map(({ file, title, intro }) => [`[${title}](${file})`, intro]);
  return ['# Reference', INDEX_INTRO, ...table(['page', 'about'], [...OTHER_PAGES, ...rows])].join('\n\n');
}

/** The main entry first. */
function byEntry(a, b) {
  return Number(b.specifier === 'headgate') - Number(a.specifier === 'headgate') || (a.title < b.title ? -1 : 1);
}

function pagesWithSymbols(entry) {
  const module = project.children.find(({ sources }) => sources.some(({ fileName }) => fileName === entry.source));
  const symbols = new Set(module.children.filter(({ kind }) => kind !== ReflectionKind.Reference));
  const references = module.children.filter(({ kind }) => kind === ReflectionKind.Reference);
  return pagesOf(entry).map((page, at) => {
    const taken = [...symbols].filter(
      ({ name, sources: [source] }) => page.sources.test(source.fileName) && !page.except?.includes(name),
    );
    for (const symbol of taken) symbols.delete(symbol);
    return { ...page, symbols: sortSymbols(taken, page.first), references: at === 0 ? references : [] };
  });
}

/** The file and the anchor of every symbol of a page. A heading that is there already gets a number, as on GitHub. */
function anchorsOf({ file, symbols }) {
  const slugs = symbols.map(({ name }) => name.toLowerCase());
  return symbols.map((symbol, at) => {
    const before = slugs.slice(0, at).filter((slug) => slug === slugs[at]).length;
    return [symbol, { file, anchor: before === 0 ? slugs[at] : `${slugs[at]}-${before}` }];
  });
}

/** The symbol of each exported name. A name that entries use for different things is left out. */
function knownNames() {
  const names = new Map();
  for (const symbol of anchors.keys()) names.set(symbol.name, names.has(symbol.name) ? null : symbol);
  return new Map([...names].filter(([, symbol]) => symbol !== null));
}

function refuseStale() {
  const stale = [...texts].filter(([file, text]) => readIfThere(file) !== withBanner(text)).map(([file]) => file);
  const left = generatedFiles().filter((file) => !texts.has(file));
  if (stale.length + left.length === 0) return;
  throw new Error(
    `docs/reference is not up to date (${[...stale, ...left].join(', ')}): run \`npm run docs:reference\``,
  );
}

function writeAll() {
  for (const file of generatedFiles()) if (!texts.has(file)) rmSync(new URL(file, FOLDER));
  for (const [file, text] of texts) writeFileSync(new URL(file, FOLDER), withBanner(text));
}

/** The pages of this generator; `tools/reference` writes the others. */
function generatedFiles() {
  return readdirSync(FOLDER).filter((file) => readIfThere(file)?.startsWith(BANNER));
}

function readIfThere(file) {
  try {
    return readFileSync(new URL(file, FOLDER), 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function withBanner(text) {
  return `${BANNER}\n\n${text}\n`;
}
