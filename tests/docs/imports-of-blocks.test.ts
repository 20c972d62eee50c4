import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blocksOf, ROOT, userPages } from '../support/docs/code-blocks.js';

interface Package {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
}

/** The names of values that the entry points of the package export. */
function exportedValues(): ReadonlySet<string> {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Package;
  const entries = Object.values(exports).flatMap((entry) => (typeof entry === 'string' ? [] : [entry.types]));
  return new Set(entries.flatMap((types) => valuesOf(readFileSync(join(ROOT, types), 'utf8'))));
}

function valuesOf(declarations: string): readonly string[] {
  const listed = Array.from(declarations.matchAll(/^export \{([^}]*)\}/gm), ([, names = '']) =>
    names.split(','),
  ).flat();
  const declared = declarations.matchAll(/^export declare (?:async )?(?:function|class|const) (\w+)/gm);
  return [
    ...listed.map((name) => name.trim()).filter((name) => /^\w+$/.test(name)),
    ...Array.from(declared, ([, name = '']) => name),
  ];
}

const VALUES = exportedValues();

/** The values of the package that blocks call or construct, and that no block of the same page imports. */
function missingImports(blocks: readonly string[]): readonly string[] {
  const code = blocks.join('\n').replaceAll(/\/\/.*|\/\*[^]*?\*\//g, '');
  const imported = new Set(
    Array.from(code.matchAll(/^import (?:type )?\{([^}]*)\}/gm), ([, names = '']) => names.split(','))
      .flat()
      .map((name) => name.trim().replace(/^type /, '')),
  );
  const used = new Set(Array.from(code.matchAll(/(?<![\w.])([A-Za-z]\w*)(?=[.(])/g), ([, name = '']) => name));
  const declared = new Set(
    Array.from(code.matchAll(/\b(?:const|function|class|let) (?:\{[^}]*\}|(\w+))/g), ([, name = '']) => name),
  );
  return [...used].filter((name) => VALUES.has(name) && !imported.has(name) && !declared.has(name));
}

test('the blocks of a page import every value of the package that they use', () => {
  const missing = userPages().flatMap((page) => {
    const blocks = blocksOf(page).filter(({ language }) => language === 'ts');
    return missingImports(blocks.map(({ text }) => text)).map((name) => `${page}: ${name}`);
  });
  expect(missing).toEqual([]);
});

test('a value that no block imports is found', () => {
  expect(VALUES).toContain('RateLimiter');
  expect(missingImports(["const limiter = new RateLimiter('memory:');"])).toEqual(['RateLimiter']);
  expect(missingImports(["import { RateLimiter } from 'headgate';", 'new RateLimiter();'])).toEqual([]);
});
