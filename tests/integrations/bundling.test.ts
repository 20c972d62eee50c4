import { build } from 'esbuild';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));
/** An import of a name that is computed, up to its name. */
const COMPUTED = /\bimport\(((?:\s|\/\*.*?\*\/)*)[a-z]/g;

test('bundlers of applications leave the imports of optional packages alone: those of Next.js fail where one is not installed', () => {
  const files = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter((path) =>
    /^(?:index|chunks\/[^/]+)\.js$/.test(path),
  );
  const imports = files.flatMap((path) =>
    Array.from(readFileSync(`${DIST}${path}`, 'utf8').matchAll(COMPUTED), ([, comments = '']) => comments),
  );
  expect(imports.length).toBeGreaterThanOrEqual(3);
  for (const comments of imports) {
    expect(comments).toContain('webpackIgnore: true');
    expect(comments).toContain('turbopackIgnore: true');
  }
});

test.each([
  'client/index',
  ...['express', 'fastify', 'fetch', 'hono', 'koa', 'lambda', 'next'].map((name) => `integrations/http/${name}`),
])('%s is bundled for a runtime without the modules of node, also what it imports later', async (entry) => {
  const { metafile } = await build({
    entryPoints: [`${DIST}${entry}.js`],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    metafile: true,
    logLevel: 'silent',
  });
  const external = Object.values(metafile.outputs).flatMap(({ imports }) => imports.filter((one) => one.external));
  expect(external).toEqual([]);
});
