import { build } from 'esbuild';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILE = join(ROOT, 'THIRD-PARTY-LICENSES.txt');

/** The packages whose code is bundled. */
async function bundledPackages(): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/index.ts', 'src/testing/index.ts', 'src/testing/backend.ts', 'src/cli/main.ts'],
    external: ['libsql', '@aws-sdk/*'],
    outdir: 'out',
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
  const dashboard = await build({
    absWorkingDir: ROOT,
    entryPoints: ['dashboard/src/main.tsx', 'dashboard/src/style.css'],
    outdir: 'out',
    bundle: true,
    format: 'esm',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
  // The page also contains files of packages that its build inserts as they are.
  const inserted = readFileSync(join(ROOT, 'tools/build-dashboard.js'), 'utf8').match(/node_modules\/[^']+/g) ?? [];
  const names = [...Object.keys(metafile.inputs), ...Object.keys(dashboard.metafile.inputs), ...inserted].map(
    (path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1],
  );
  return [...new Set(names.filter((name) => name !== undefined))].toSorted();
}

function licenceOf(name: string): string {
  const folder = join(ROOT, 'node_modules', name);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name} has no licence to pass on: it cannot be bundled`);
  return `${name}\n\n${readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n').trim()}\n`;
}

test('the licence file has the licence of every bundled package (RECORD_LICENSES=1 rewrites the file)', async () => {
  const packages = await bundledPackages();
  expect(packages).toEqual(expect.arrayContaining(['commander', 'preact', 'uplot']));
  const rule = `\n${'-'.repeat(80)}\n\n`;
  const text = ['Code of these packages is part of this one.\n', ...packages.map(licenceOf)].join(rule);
  if (process.env['RECORD_LICENSES'] === '1') writeFileSync(FILE, text);
  expect(readFileSync(FILE, 'utf8')).toBe(text);
});
