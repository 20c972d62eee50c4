import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { filesStayShort, noDefaultExports, type SourceFile } from './source-rules.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = `${ROOT}dashboard/src`;

const files: readonly SourceFile[] = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path))
  .map((path) => ({ path: `dashboard/src/${path}`, text: readFileSync(`${FOLDER}/${path}`, 'utf8') }));

/** Ways to make markup or code from text. */
const MARKUP = /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/;

const makesMarkup = (all: readonly SourceFile[]): string[] =>
  all.filter(({ text }) => MARKUP.test(text)).map(({ path }) => path);

/** A model is pure: it reads no document, no address and no clock. */
const IMPURE =
  /\b(?:document|window|location|history|performance|sessionStorage|localStorage)\.\w|\bfetch\(|Date\.now\(/;

const impureModels = (all: readonly SourceFile[]): string[] =>
  all.filter(({ path, text }) => path.includes('/model/') && IMPURE.test(text)).map(({ path }) => path);

/** The dashboard uses the HTTP API. Of the library it shares pure text functions only. */
const importsOfLibrary = (all: readonly SourceFile[]): string[] =>
  all
    .filter(({ text }) =>
      Array.from(text.matchAll(/from '[^']*\/src\/([^']+)'/g)).some(([, to]) => to !== 'visualize/format.js'),
    )
    .map(({ path }) => path);

describe('the sources of the dashboard', () => {
  test('files are short, and have no default exports', () => {
    expect(files.length).toBeGreaterThan(40);
    expect([...filesStayShort(files), ...noDefaultExports(files)]).toEqual([]);
  });

  test('no file makes markup from text', () => {
    expect(makesMarkup(files)).toEqual([]);
    expect(makesMarkup([{ path: 'a.tsx', text: '<p dangerouslySetInnerHTML={x} />' }])).toEqual(['a.tsx']);
  });

  test('models read no document, no address and no clock', () => {
    const own = files.filter(({ path }) => !path.endsWith('.test.ts'));
    expect(impureModels(own)).toEqual([]);
    expect(impureModels([{ path: 'x/model/a.ts', text: 'const now = Date.now();' }])).toEqual(['x/model/a.ts']);
  });

  test('the dashboard imports nothing of the library but pure text functions', () => {
    expect(importsOfLibrary(files)).toEqual([]);
    const planted = { path: 'a.ts', text: `import { Limit } from '../../src/core/limit.js';` };
    expect(importsOfLibrary([planted])).toEqual(['a.ts']);
  });

  test('the built page is smaller than 60 KB compressed, and names no other host', () => {
    const out = '.tmp/dashboard-size';
    execFileSync(process.execPath, ['tools/build-dashboard.js', out], { cwd: ROOT });
    const built = readdirSync(`${ROOT}${out}`).map((name) => readFileSync(`${ROOT}${out}/${name}`));
    const bytes = built.reduce((sum, content) => sum + gzipSync(content, { level: 9 }).length, 0);
    expect(built).toHaveLength(3);
    expect(bytes).toBeLessThan(60_000);
    const hosts = built.flatMap((content) => String(content).match(/https?:\/\/[^\s"'`)]+/g) ?? []);
    // Names of XML namespaces, and the comment that names the authors of uPlot: nothing loads them.
    const isName = (host: string): boolean =>
      /^http:\/\/www\.w3\.org\/|^https:\/\/github\.com\/leeoniya\/uPlot$/.test(host);
    expect(hosts.filter((host) => !isName(host))).toEqual([]);
  });
});
