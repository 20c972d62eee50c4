import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { resolveOptions } from '../../src/limiter/options.js';
import { VARIABLES } from '../../tools/reference/environment-page.js';
import { INFRASTRUCTURE } from '../../tools/reference/error-advice.js';
import { buildPages } from '../../tools/reference/pages.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

function page(file: string): string {
  return readFileSync(join(ROOT, 'docs/reference', file), 'utf8');
}

const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => readFileSync(join(ROOT, 'src', name), 'utf8'));

test.each(buildPages())('docs/reference/$file is what the sources say (npm run docs:reference writes it)', (built) => {
  expect(page(built.file)).toBe(built.text);
});

/** `env['NAME']`, and every name that begins with the prefix of Headgate or AWS. Names are in capitals on the page. */
function variablesIn(text: string): readonly string[] {
  const read = Array.from(text.matchAll(/\benv\['(\w+)'\]/g), ([, name = '']) => name.toUpperCase());
  return [...read, ...(text.match(/\b(?:HEADGATE|AWS)_[A-Z0-9_]+\b/g) ?? [])];
}

test('the page of environment variables lists every variable that the sources read', () => {
  const read = new Set(sources.flatMap(variablesIn));
  expect([...read].filter((name) => !VARIABLES.includes(name))).toEqual([]);
});

test('the page of environment variables lists no variable that the sources do not name', () => {
  const all = sources.join('\n');
  expect(VARIABLES.filter((name) => !all.includes(name))).toEqual([]);
});

test('a variable that is read under any of its spellings is found', () => {
  expect(variablesIn(`env['NO_COLOR'] || process.env['no_proxy']; isTrue(env, 'AWS_NEW_ONE')`)).toEqual([
    'NO_COLOR',
    'NO_PROXY',
    'AWS_NEW_ONE',
  ]);
});

test('the page of errors lists every code of infrastructure that the sources throw, and no other', () => {
  const thrown = sources.flatMap((text) =>
    Array.from(text.matchAll(/'infrastructure\.([a-z-]+)'/g), ([, code = '']) => code),
  );
  expect([...new Set(thrown)].toSorted()).toEqual(Object.keys(INFRASTRUCTURE).toSorted());
});

/** The rows of the first table of the page of options: the name and the default of each option of a limiter. */
function documentedDefaults(): ReadonlyMap<string, string> {
  const [, section = ''] = page('options.md').split(/^## .*$/m);
  const rows = Array.from(section.matchAll(/^\| `([\w.]+)` \|(?:[^|\\]|\\.)*\|((?:[^|\\]|\\.)*)\|/gm));
  return new Map(rows.map(([, name = '', fallback = '']) => [name, fallback.trim()]));
}

test('the page of options has the defaults that the limiter uses', () => {
  const { timeouts, ...others } = resolveOptions({}, {});
  const used = { ...others, ...Object.fromEntries(Object.entries(timeouts).map(([k, v]) => [`timeouts.${k}`, v])) };
  const documented = documentedDefaults();
  expect([...documented.keys()].toSorted()).toEqual(Object.keys(used).toSorted());
  const plain = Object.entries(used).filter(([, value]) => typeof value === 'number' || typeof value === 'string');
  expect(plain.length).toBeGreaterThan(8);
  for (const [name, value] of plain) {
    const said = documented
      .get(name)
      ?.replace(/^.*, else /, '')
      .replaceAll(/[`\s]/g, '');
    expect(said, name).toBe(`${value as string | number}`);
  }
});

/** The names that an entry exports, from its lists of exports and its own declarations. */
function exportsOf(source: string): readonly string[] {
  const text = readFileSync(join(ROOT, source), 'utf8');
  const listed = Array.from(text.matchAll(/^export (?:type )?\{([^}]*)\}/gm), ([, names = '']) => names.split(','));
  const declared = text.matchAll(/^export (?:async )?(?:function|const|class|interface|type) (\w+)/gm);
  const names = listed.flat().map((name) =>
    name
      .trim()
      .replace(/^type /, '')
      .replace(/^.* as /, ''),
  );
  return [...names.filter(Boolean), ...Array.from(declared, ([, name = '']) => name)];
}

test('the reference describes every export of every entry', () => {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, { readonly types?: string }>>;
  };
  const ofMain = ['headgate', 'administration', 'events', 'error-classes', 'store-port'];
  const missing = Object.entries(exports).flatMap(([path, { types }]) => {
    if (types === undefined) return [];
    const files = path === '.' ? ofMain : [path.slice(2).replaceAll('/', '-')];
    const text = files.map((file) => page(`${file}.md`)).join('\n');
    const names = exportsOf(types.replace('./dist', 'src').replace(/\.d\.ts$/, '.ts'));
    return names.filter((name) => !new RegExp(`^## ${name}$|^Also exported.*\`${name}\``, 'm').test(text));
  });
  expect(missing).toEqual([]);
});
