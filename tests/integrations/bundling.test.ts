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
