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
      .replaceAll(/[`,\s]/g, '');
    expect(said, name).toBe(`${value as string | number}`);
  }
});

interface DocumentedDefault {
  readonly section: string;
  readonly option: string;
  /** A number, a word or a boolean, as the source writes it; null: another value, described in words. */
  readonly plain: string | null;
}

function defaultsOfPage(): readonly DocumentedDefault[] {
  const [, , ...sections] = page('options.md').split(/^## /m);
  return sections.flatMap((text) =>
    Array.from(
      text.matchAll(/^\| `([\w.]+)` \|(?:[^|\\]|\\.)*\| ((?:[^|\\]|\\.)*) \|/gm),
      ([, name = '', said = '']) => {
        const [plain] = /^(?:\d[\d,.]*\d|\d|`(?![A-Z_]+`)[\w-]+`|true|false)(?=$|, )/.exec(said) ?? [null];
        const option = name.split('.').at(-1) ?? name;
        return { section: text.split('\n')[0] ?? '', option, plain: plain?.replaceAll(/[`,]/g, '') ?? null };
      },
    ),
  );
}

/** The sources that give options their defaults, by the section of the page. */
const SOURCES_OF_DEFAULTS: Readonly<Record<string, readonly string[]>> = {
  'acquire, tryAcquire, run': ['limiter/lease/run.ts'],
  'limiter.close': ['limiter/store-connection.ts'],
  Lists: ['limiter/api/listing.ts'],
  memory: ['backends/embedded/memory.ts'],
  file: ['backends/embedded/file/file.ts'],
  Middleware: ['integrations/http/admission/admission.ts', 'integrations/http/admission/ip-key.ts'],
  'Middleware for hono': ['integrations/http/hono.ts'],
  'Middleware for fetch and Next.js': ['integrations/http/admission/limit-handler.ts'],
  'Middleware for Lambda': ['integrations/http/lambda.ts'],
  'Stores for other limiters': ['integrations/http/stores/hit-counter.ts'],
  'limitFetch, limitModel': ['integrations/llm/call/llm-options.ts', 'integrations/llm/fetch/limit-fetch.ts'],
  'serve, createServer': ['server/server.ts', 'server/serve.ts'],
  HeadgateClient: ['client/http.ts'],
  runReconciler: ['backends/dynamodb/reconciler/loop.ts'],
  runWorker: ['backends/dynamodb/stream/worker/worker-options.ts'],
  CloudWatchMetrics: ['integrations/telemetry/cloudwatch.ts'],
  'Tests: startFaultProxy': ['testing/dynamodb/fault-proxy.ts'],
  'Tests: startProvider': ['testing/provider/provider.ts'],
};

/** The values that a source gives an option where the caller gives none: `name = 5`, `name ?? FIVE`, `name: 5`. */
function defaultsInSource(source: string, option: string): readonly string[] {
  const code = source.replaceAll(/\/\*\*[^]*?\*\//g, '');
  const given = code.matchAll(new RegExp(`\\b${option}(?:: \\w+)? ?(?:=|\\?\\?|:)(?!=) ?\\[?([\\w.'-]+)`, 'g'));
  return Array.from(given, ([, value = '']) => {
    const [, constant = value] = new RegExp(`const ${value.replaceAll(/\W/g, '.')} = ([\\w.'-]+);`).exec(code) ?? [];
    return constant.replaceAll(/['_]/g, '');
  });
}

test('every other default of the page of options that is a number or a word is the one in the code', () => {
  const plain = defaultsOfPage().filter((one) => one.plain !== null && one.option !== 'refusal');
  expect(plain.length).toBeGreaterThan(30);
  const wrong = plain.filter(({ section, option, plain: value }) => {
    const code = (SOURCES_OF_DEFAULTS[section] ?? []).map((file) => readFileSync(join(ROOT, 'src', file), 'utf8'));
    return !defaultsInSource(code.join('\n'), option).includes(value ?? '');
  });
  expect(wrong).toEqual([]);
});

test('a default that differs from the code is found', () => {
  const source = 'const CLOSE_MS = 5_000;\nconst { timeoutMs = CLOSE_MS, leases } = options;\n/** leases = keep */';
  expect(defaultsInSource(source, 'timeoutMs')).toEqual(['5000']);
  expect(defaultsInSource(source, 'leases')).toEqual([]);
});

test('every exported type of options is on the page of options, and every option has a meaning', () => {
  const text = page('options.md');
  const names = Object.values(entryTypes()).flatMap((source) => {
    // An alias such as `NextLimitOptions` is described under its own name.
    const aliases: readonly string[] = readFileSync(join(ROOT, source), 'utf8').match(/(?<= as )\w+/g) ?? [];
    return exportsOf(source).filter((name) => !aliases.includes(name));
  });
  const types = [...new Set(names.filter((name) => name.endsWith('Options')))];
  expect(types.length).toBeGreaterThan(30);
  expect(types.filter((name) => !new RegExp(`^Declared by .*\\[\`${name}\`\\]`, 'm').test(text))).toEqual([]);
  expect(text.match(/^\| .*\|\s*\|$/gm)).toBeNull();
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

/** The source of each entry of the package, by its path in `exports`. */
function entryTypes(): Readonly<Record<string, string>> {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, { readonly types?: string }>>;
  };
  const sourceOf = (types: string): string => types.replace('./dist', 'src').replace(/\.d\.ts$/, '.ts');
  return Object.fromEntries(
    Object.entries(exports).flatMap(([path, { types }]) => (types === undefined ? [] : [[path, sourceOf(types)]])),
  );
}

test('the reference describes every export of every entry', () => {
  const ofMain = ['headgate', 'administration', 'events', 'error-classes', 'store-port'];
  const missing = Object.entries(entryTypes()).flatMap(([path, source]) => {
    const files = path === '.' ? ofMain : [path.slice(2).replaceAll('/', '-')];
    const text = files.map((file) => page(`${file}.md`)).join('\n');
    return exportsOf(source).filter((name) => !new RegExp(`^## ${name}$|^Also exported.*\`${name}\``, 'm').test(text));
  });
  expect(missing).toEqual([]);
});
