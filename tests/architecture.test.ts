import { buildSync, transformSync } from 'esbuild';
import { readdirSync, readFileSync } from 'node:fs';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import {
  awsStaysInItsLayers,
  classesOf,
  classesStayShort,
  coreIsPure,
  entryHasOnlyNamedExports,
  filesStayShort,
  helpLoadsLittle,
  importsOf,
  importsPointDown,
  isTest,
  kindsAreAskedInCore,
  MAX_CLASS_LINES,
  MAX_LINES,
  noCycles,
  noDefaultExports,
  onlyTestsImportTestTools,
  plansKnowNoDialect,
  type SourceFile,
} from './source-rules.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

function filesOf(folder: string): SourceFile[] {
  return readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .toSorted()
    .map((path) => ({ path: path.replaceAll(sep, '/'), text: readFileSync(`${ROOT}${folder}/${path}`, 'utf8') }));
}

const src = filesOf('src');

/** Source files that exist only in this test: the text of each file by its path. */
const planted = (files: Readonly<Record<string, string>>): SourceFile[] =>
  Object.entries(files).map(([path, text]) => ({ path, text }));

describe('the parser of imports', () => {
  test('the parser finds every import that the bundler finds', () => {
    const sources = src.filter((file) => !isTest(file));
    expect(sources.length).toBeGreaterThan(100);
    const { metafile } = buildSync({
      entryPoints: sources.map(({ path }) => `src/${path}`),
      absWorkingDir: ROOT,
      bundle: true,
      // Without splitting, each output contains everything that its file imports.
      splitting: true,
      packages: 'external',
      platform: 'node',
      format: 'esm',
      outdir: 'out',
      write: false,
      metafile: true,
    });
    const seen = sources.map((file) => [
      `src/${file.path}`,
      sorted(importsOf(file).flatMap(({ typeOnly, target, specifier }) => (typeOnly ? [] : [target ?? specifier]))),
    ]);
    const bundled = Object.entries(metafile.inputs).map(([path, { imports }]) => [
      path,
      sorted(imports.map((entry) => entry.path.replace(/^src\//, ''))),
    ]);
    expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(bundled));
  });

  test('the parser reads every form of import, and tells which of them load nothing', () => {
    const text = [
      `import type { A } from './a.js';`,
      `import {\n  type B, // why\n  b,\n} from '../b.js';`,
      `export type * from './c.js';`,
      `export { d } from "./d/d.js";`,
      `import 'e';`,
      `const f = await import('./f.js');`,
      `export const from = 'g';`,
    ].join('\n');
    expect(importsOf({ path: 'x/y.ts', text })).toEqual([
      { specifier: './a.js', typeOnly: true, lazy: false, target: 'x/a.ts' },
      { specifier: '../b.js', typeOnly: false, lazy: false, target: 'b.ts' },
      { specifier: './c.js', typeOnly: true, lazy: false, target: 'x/c.ts' },
      { specifier: './d/d.js', typeOnly: false, lazy: false, target: 'x/d/d.ts' },
      { specifier: 'e', typeOnly: false, lazy: false, target: null },
      { specifier: './f.js', typeOnly: false, lazy: true, target: 'x/f.ts' },
    ]);
  });
});

describe('the direction of imports', () => {
  test('imports of this tree point down only', () => {
    expect(importsPointDown(src)).toEqual([]);
  });

  test.each([
    ['core/a.ts', `import { x } from '../limiter/x.js';`],
    ['core/a.ts', `import type { Clock } from '../clock.js';`],
    ['core/a.ts', `import { randomBytes } from 'node:crypto';`],
    ['backend.ts', `import type { X } from './limiter/x.js';`],
    ['backend/config-store.ts', `import type { X } from '../limiter/x.js';`],
    ['backends/embedded/a.ts', `import { x } from '../dynamodb/x.js';`],
    ['backends/embedded/a.ts', `import type { X } from '../../limiter/x.js';`],
    ['backends/embedded/a.ts', `import { systemClock } from '../../clock.js';`],
    ['limiter/a.ts', `import { memory } from '../backends/embedded/memory.js';`],
    ['limiter/a.ts', `import type { MemoryOptions } from '../backends/embedded/memory.js';`],
    ['limiter/a.ts', `import { tour } from '../cli/tour.js';`],
    ['backends/dynamodb/stream/a.ts', `import { x } from '../../../limiter/x.js';`],
    ['backends/dynamodb/reconciler/a.ts', `import type { X } from '../../../limiter/x.js';`],
    ['integrations/a.ts', `import { memory } from '../backends/embedded/memory.js';`],
    ['testing/a.ts', `export * from '../cli/main.js';`],
    ['testing/a.ts', `import { startLocal } from '../local/local.js';`],
    ['local/a.ts', `import { x } from '../testing/x.js';`],
    ['local/engine/a.ts', `import { x } from '../local.js';`],
    ['limiter/a.ts', `const x = await import('../server/app.js');`],
    ['utils/a.ts', ''],
  ])('an import that points up or sideways is reported, in %s: %s', (path, text) => {
    expect(importsPointDown(planted({ [path]: text }))).toHaveLength(1);
  });

  test('the composition roots may construct a backend, and a backend may name the type of a clock', () => {
    const files = planted({
      'limiter/store-url.ts': `import { memory } from '../backends/embedded/memory.js';`,
      'limiter/store-connection.ts': `import { memory } from '../backends/embedded/memory.js';`,
      'index.ts': `export { memory } from './backends/embedded/memory.js';`,
      'backends/embedded/a.ts': `import type { Clock } from '../../clock.js';`,
      'backends/dynamodb/stream/lambda.ts': `import { x } from '../x.js';`,
      'core/a.test.ts': `import { fakeClock } from '../testing/fake-clock.js';`,
    });
    expect(importsPointDown(files)).toEqual([]);
  });
});

describe('the purity of core', () => {
  test('core reads no clock, no random source and no environment', () => {
    expect(coreIsPure(src)).toEqual([]);
  });

  test.each(['Date.now()', 'Math.random()', 'process.env', 'performance.now()', 'new Date()'])(
    '%s in core is reported',
    (use) => {
      expect(coreIsPure(planted({ 'core/a.ts': `export const a = ${use};` }))).toHaveLength(1);
    },
  );

  test('impure names in comments, strings and other layers are not reported', () => {
    const files = planted({
      'core/a.ts': `/** Not Date.now of this process. */\nexport const a = 'Math.random, process.env';`,
      'core/b.ts': `export const day = (atMs: number) => new Date(atMs);`,
      'clock.ts': 'export const now = () => Date.now();',
    });
    expect(coreIsPure(files)).toEqual([]);
  });
});

describe('comparisons of the kind of a limit', () => {
  test('no file of this tree compares the kind of a limit, or numbers that imply it, more often than it is listed for', () => {
    expect(kindsAreAskedInCore(src)).toEqual([]);
  });

  test.each([
    `limit.kind === 'concurrent'`,
    `'rate' !== account?.limit.kind`,
    `kindOf(level, name)\n  == 'unlimited'`,
    'rate.refillPeriodMs !== 0',
    'limit.refillMilli > 0',
    '0 === limit.rate.refillAmount',
  ])('the comparison %j is reported', (comparison) => {
    const found = kindsAreAskedInCore(planted({ 'limiter/a.ts': `export const a = ${comparison};` }));
    expect(found).toEqual(['limiter/a.ts compares the kind of a limit 1 times, not 0: ask core/limit-kind.ts instead']);
  });

  test('a listed file that has fewer comparisons than its entry is reported, so that the list only shrinks', () => {
    expect(kindsAreAskedInCore(planted({ 'core/bucket/bucket.ts': 'export const a = 1;' }))).toHaveLength(1);
  });

  test('a switch on the kind, a comment and a comparison of two limits are no such comparison', () => {
    const text = [
      `// limit.kind === 'rate'`,
      `export type A = { kind: 'rate' | 'concurrent' };`,
      `export function a(kind: A['kind']) { switch (kind) { case 'rate': return 1; case 'concurrent': return 2; } }`,
      'export const b = (one: Limit, other: Limit) => one.refillPeriodMs === other.refillPeriodMs;',
    ].join('\n');
    expect(kindsAreAskedInCore(planted({ 'limiter/a.ts': text }))).toEqual([]);
  });
});

describe('imports of the AWS SDK', () => {
  test('only the layers that talk to AWS import the AWS SDK', () => {
    expect(awsStaysInItsLayers(src)).toEqual([]);
  });

  test('an import of the AWS SDK in another layer is reported, also of a type', () => {
    const text = `import type { X } from '@aws-sdk/client-dynamodb';`;
    const files = planted({
      'limiter/a.ts': text,
      'index.ts': text,
      'backends/dynamodb/stream/a.ts': text,
      'backends/dynamodb/a.ts': text,
    });
    expect(awsStaysInItsLayers(files)).toEqual(['limiter/a.ts imports the AWS SDK', 'index.ts imports the AWS SDK']);
  });
});

describe('the seam between planning writes and sending them', () => {
  test('plans and the acquire path see the executor only, and name nothing of the dialect of DynamoDB', () => {
    expect(plansKnowNoDialect(src)).toEqual([]);
  });

  test('an import of a sender and a word of its dialect are reported, also in a comment, but not of a test', () => {
    const send = `import { send } from '../client/requests.js';`;
    const files = planted({
      'backends/dynamodb/bucket/a.ts': `import type { Item } from '@aws-sdk/client-dynamodb';\n// On success: ALL_NEW.`,
      'backends/dynamodb/acquire/b.ts': `${send}\nimport { render } from '../expressions/render.js';`,
      'backends/dynamodb/acquire/b.test.ts': send,
      'backends/dynamodb/bucket/c.ts': `import type { Executor } from './executor.js';\nconst ALL_ANSWERED = planInTransaction;`,
      'backends/dynamodb/acquire/c.ts': `// DynamoDB gets a PutItem, never a TransactWriteItems.`,
      'backends/dynamodb/stores/d.ts': send,
    });
    const why = 'plans and the acquire path see the executor only';
    expect(plansKnowNoDialect(files)).toEqual([
      `backends/dynamodb/bucket/a.ts imports @aws-sdk/client-dynamodb: ${why}`,
      'backends/dynamodb/bucket/a.ts contains ALL_NEW: the dialect of the store belongs in expressions/',
      `backends/dynamodb/acquire/b.ts imports ../client/requests.js: ${why}`,
      `backends/dynamodb/acquire/b.ts imports ../expressions/render.js: ${why}`,
      ...['DynamoDB', 'PutItem', 'TransactWriteItems'].map(
        (word) => `backends/dynamodb/acquire/c.ts contains ${word}: the dialect of the store belongs in expressions/`,
      ),
    ]);
  });
});

describe('imports of test tools', () => {
  test('only tests import test tools', () => {
    expect(onlyTestsImportTestTools(src)).toEqual([]);
  });

  test.each(['vitest', 'fast-check', 'node:test', '../limiter/lease.test.js'])(
    'an import of %s in a published file is reported',
    (tool) => {
      const text = `import { test } from '${tool}';`;
      const found = onlyTestsImportTestTools(planted({ 'testing/a.ts': text, 'core/a.test.ts': text }));
      expect(found).toEqual([`testing/a.ts imports ${tool}: that is for tests`]);
    },
  );
});

describe('cycles of imports', () => {
  test('no file of this tree imports itself through others, not even for a type', () => {
    expect(noCycles(src)).toEqual([]);
  });

  test('a cycle of imports is reported as the path from a file back to itself', () => {
    const files = planted({
      'core/a.ts': `import { b } from './b.js';`,
      'core/b.ts': `export { c } from './c.js';`,
      'core/c.ts': `import { type A } from './a.js';`,
    });
    expect(noCycles(files)).toEqual(['core/a.ts -> core/b.ts -> core/c.ts -> core/a.ts']);
  });

  test('a cycle that only type imports close is reported too', () => {
    const files = planted({
      'core/a.ts': `import { b } from './b.js';`,
      'core/b.ts': `import type { A } from './a.js';`,
    });
    expect(noCycles(files)).toEqual(['core/a.ts -> core/b.ts -> core/a.ts']);
  });

  test('two files that import the same third file are no cycle', () => {
    const files = planted({
      'core/a.ts': `import { b } from './b.js';\nimport type { C } from './c.js';`,
      'core/b.ts': `import type { C } from './c.js';`,
      'core/c.ts': 'export type C = 1;',
    });
    expect(noCycles(files)).toEqual([]);
  });
});

describe('default exports', () => {
  test('no file of this tree has a default export', () => {
    expect(noDefaultExports(src)).toEqual([]);
  });

  test.each(['export default 1;', 'const a = 1;\nexport { a as default };'])(
    'the default export %j is reported',
    (text) => {
      expect(noDefaultExports(planted({ 'core/a.ts': text }))).toEqual(['core/a.ts has a default export']);
    },
  );
});

describe('the length of files', () => {
  test(`no file of this tree is longer than ${MAX_LINES} lines`, () => {
    expect(filesStayShort([...src, ...filesOf('tests'), ...filesOf('bench')])).toEqual([]);
  });

  test('a file with one line too many is reported', () => {
    const files = planted({ 'a.ts': 'x\n'.repeat(MAX_LINES), 'b.ts': 'x\n'.repeat(MAX_LINES + 1) });
    expect(filesStayShort(files)).toEqual([`b.ts has ${MAX_LINES + 1} lines`]);
  });
});

describe('the length of classes', () => {
  test(`no class of this tree is longer than ${MAX_CLASS_LINES} lines`, () => {
    expect(classesStayShort([...src, ...filesOf('dashboard/src')])).toEqual([]);
  });

  test('the rule sees every class that the compiler sees', () => {
    const seen = src.map((file) => [file.path, sorted(classesOf(file).map(({ name }) => name))]);
    const printed = src.map(({ path, text }) => {
      const { code } = transformSync(text, { loader: 'ts' });
      const names = Array.from(code.matchAll(/^[^"'`\n]*\bclass\b(?: (?!extends\b)(\w+))?.*\{/gm), ([, name]) => name);
      return [path, sorted(names.map((name) => name ?? '(unnamed)'))];
    });
    expect(seen.flatMap(([, names]) => names).length).toBeGreaterThan(50);
    expect(seen).toEqual(printed);
  });

  test.each([
    ['a class', 'class A {', '}'],
    ['an exported class', 'export class A<T> extends B<T> {', '}'],
    ['an abstract class', 'export abstract class A {', '}'],
    ['a class inside a function', '  class A {', '  }'],
    ['a class expression', 'const b = class A {', '};'],
  ])('%s with one line too many is reported', (_, first, last) => {
    const withLines = (count: number): string =>
      [first, ...Array<string>(count - 2).fill('    // why'), last].join('\n');
    const files = planted({ 'a.ts': withLines(MAX_CLASS_LINES), 'b.ts': withLines(MAX_CLASS_LINES + 1) });
    expect(classesStayShort(files)).toEqual([`b.ts: class A has ${MAX_CLASS_LINES + 1} lines`]);
  });

  test('a comment or a text with the word class is not taken for one', () => {
    const text = [`// class A {`, ` * class B {`, `const c = 'class D {';`, `const e = { class: 1 };`].join('\n');
    expect(classesOf({ path: 'a.ts', text })).toEqual([]);
  });
});

describe('the entry point', () => {
  test('the entry point has only named exports', () => {
    expect(entryHasOnlyNamedExports(src)).toEqual([]);
  });

  test.each([`export * from './clock.js';`, `import './clock.js';`, 'export const a = 1;'])(
    '%s in the entry point is reported',
    (text) => {
      const index = `// why\nexport { b } from './b.js';\n${text}`;
      expect(entryHasOnlyNamedExports(planted({ 'index.ts': index }))).toEqual([
        `index.ts has more than named exports: ${text}`,
      ]);
    },
  );
});

describe('what the help of the command line loads', () => {
  test('the help of no command loads the library, AWS code or the YAML parser', () => {
    expect(helpLoadsLittle(src)).toEqual([]);
  });

  test.each([
    `import { RateLimiter } from '../../limiter/rate-limiter.js';`,
    `import { parse } from 'yaml';`,
    `import { stackTools } from '../run.js';`,
  ])('a command that would load too much for its help is reported: %s', (text) => {
    const run = `import { sdkStackTools } from '../infra/stack/sdk-stack-tools.js';`;
    expect(helpLoadsLittle(planted({ 'cli/commands/a.ts': text, 'cli/run.ts': run }))).toHaveLength(1);
  });

  test('a command may load the library when it runs, and may name its types', () => {
    const text = `import type { Limit } from '../../limiter/a.js';\nconst run = () => import('../../limiter/a.js');`;
    expect(helpLoadsLittle(planted({ 'cli/commands/a.ts': text }))).toEqual([]);
  });
});

function sorted(values: readonly string[]): string[] {
  return [...new Set(values)].toSorted();
}
