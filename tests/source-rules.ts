import { transformSync } from 'esbuild';

/** A file of `src/`; its path is relative to that folder, with forward slashes. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

export interface Import {
  readonly specifier: string;
  readonly typeOnly: boolean;
  /** `import()`: loaded when the expression is evaluated. */
  readonly lazy: boolean;
  /** The imported file of `src/`; null for a package. */
  readonly target: string | null;
}

/** Sentences, each naming the file that breaks the rule. */
export type Rule = (files: readonly SourceFile[]) => string[];

const STATIC = /^[ \t]*(?:import|export)\s+(type\s+(?!from\b))?(?:[^'";=()]*?\bfrom\s+)?['"]([^'"]+)['"]/gm;
const DYNAMIC = /\b(?:import|require)\s*\(\s*['"]([^'"]+)['"]/g;

/**
 * `import { type A } from` is not type-only: under `verbatimModuleSyntax` the compiler keeps it as an import without
 * names, which loads the file.
 */
export function importsOf({ path, text }: SourceFile): Import[] {
  const found = [
    ...Array.from(text.matchAll(STATIC), ([, type, specifier]) => ({
      specifier: specifier!,
      typeOnly: type !== undefined,
      lazy: false,
    })),
    ...Array.from(text.matchAll(DYNAMIC), ([, specifier]) => ({
      specifier: specifier!,
      typeOnly: false,
      lazy: true,
    })),
  ];
  return found.map((entry) => ({ ...entry, target: resolve(path, entry.specifier) }));
}

function resolve(from: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null;
  return new URL(specifier, `file:///${from}`).pathname.slice(1).replace(/\.js$/, '.ts');
}

export const isTest = ({ path }: SourceFile): boolean => path.endsWith('.test.ts');

/** What each layer may import, besides itself. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  'machine-time': ['core'],
  clock: ['machine-time', 'core'],
  backend: ['core'],
  'backends/embedded': ['backend', 'machine-time', 'core'],
  'backends/dynamodb': ['backend', 'machine-time', 'core'],
  limiter: ['backend', 'clock', 'core'],
  'backends/dynamodb/stream': ['backends/dynamodb', 'clock', 'machine-time', 'core'],
  'backends/dynamodb/reconciler': ['backends/dynamodb', 'clock', 'machine-time', 'core'],
  infra: ['backends/dynamodb', 'machine-time', 'core'],
  visualize: ['core'],
  integrations: ['limiter', 'backend', 'clock', 'core'],
  client: ['core'],
  server: [
    'integrations',
    'visualize',
    'limiter',
    'backends/embedded',
    'backends/dynamodb',
    'backend',
    'clock',
    'core',
  ],
  index: ['limiter', 'backends/embedded', 'backend', 'clock', 'core'],
  'local/engine': [],
  local: ['local/engine', 'backends/dynamodb', 'core'],
  testing: ['local/engine', 'index', 'limiter', 'backends/embedded', 'backends/dynamodb', 'backend', 'clock', 'core'],
  cli: [
    'server',
    'integrations',
    'visualize',
    'infra',
    'local',
    'backends/dynamodb/stream',
    'backends/dynamodb/reconciler',
    'testing',
    'index',
    'limiter',
    'backends/embedded',
    'backends/dynamodb',
    'backend',
    'clock',
    'core',
  ],
};

/** The folders that plan and send writes through the executor, and know no dialect of a store. */
const NEUTRAL = /^backends\/dynamodb\/(?:bucket|acquire)\//;
const DIALECT =
  /GSI|\bALL_(?:NEW|OLD)\b|\b(?:Put|Get|Update|Delete|BatchGet|BatchWrite|TransactGet|TransactWrite)Items?\b|ConditionCheckFailed|attribute_(?:not_)?exists|DynamoDB/g;

/** A second store with conditional writes then needs an executor, not a second planner. */
export const plansKnowNoDialect: Rule = (files) =>
  files
    .filter((file) => NEUTRAL.test(file.path) && !isTest(file))
    .flatMap((file) => [
      ...importsOf(file)
        .filter(({ target, specifier }) =>
          target === null
            ? specifier.startsWith('@aws-sdk')
            : /^backends\/dynamodb\/(?:client|expressions)\//.test(target),
        )
        .map(({ specifier }) => `${file.path} imports ${specifier}: plans and the acquire path see the executor only`),
      ...[...new Set(file.text.match(DIALECT))].map(
        (word) => `${file.path} contains ${word}: the dialect of the store belongs in expressions/`,
      ),
    ]);

/** The files of the limiter that may construct a backend. */
const COMPOSITION_ROOTS = ['limiter/store-url.ts', 'limiter/store-connection.ts'];

/**
 * Backends get the time with each call, and read the machine's clocks only to tell the time of their store; the clock's
 * type may be part of their options. The stream programs write and archive records that the port names.
 */
const TYPES_ONLY: Readonly<Record<string, readonly string[]>> = {
  'backends/dynamodb/stream': ['backend'],
  'backends/embedded': ['clock'],
  'backends/dynamodb': ['clock'],
};

/** The longest name of a layer that the path begins with; else its first folder, which is then in no layer. */
function layerOf(path: string): string {
  const parts = path.replace(/\.ts$/, '').split('/');
  const prefixes = parts.map((_, at) => parts.slice(0, at + 1).join('/'));
  return prefixes.findLast((prefix) => Object.hasOwn(LAYERS, prefix)) ?? parts[0] ?? '';
}

export const importsPointDown: Rule = (files) =>
  files
    .filter((file) => !isTest(file))
    .flatMap((file) => {
      const from = layerOf(file.path);
      const allowed = LAYERS[from];
      if (allowed === undefined) return [`${file.path} is in no layer that the rule knows`];
      return importsOf(file).flatMap(({ target, specifier, typeOnly }) => {
        if (target === null)
          return from === 'core' ? [`${file.path} imports ${specifier}: core imports only itself`] : [];
        const to = layerOf(target);
        const mayConstruct = COMPOSITION_ROOTS.includes(file.path) && to.startsWith('backends/');
        const mayName = typeOnly && (TYPES_ONLY[from]?.includes(to) ?? false);
        return to === from || allowed.includes(to) || mayConstruct || mayName
          ? []
          : [`${file.path} imports ${target}: ${from} must not know ${to}`];
      });
    });

const IMPURE = ['Date.now', 'Math.random', 'performance', 'process'];

/** The compiler replaces each impure expression by a mark, so that comments, strings and types do not count. */
export const coreIsPure: Rule = (files) =>
  files
    .filter((file) => layerOf(file.path) === 'core' && !isTest(file))
    .flatMap(({ path, text }) => {
      const define = Object.fromEntries(IMPURE.map((name, index) => [name, `IMPURE_${index}`]));
      const { code } = transformSync(text, { loader: 'ts', define });
      const used = IMPURE.filter((_, index) => code.includes(`IMPURE_${index}`));
      if (/\bnew Date\(\)/.test(code)) used.push('new Date()');
      return used.map((name) => `${path} uses ${name}: core has no clock, no randomness, no environment`);
    });

/** In printed code, where every string has double quotes. */
const KIND_COMPARISON =
  /[!=]==? "(?:rate|concurrent|unlimited)"|"(?:rate|concurrent|unlimited)" [!=]==?|\brefill(?:PeriodMs|Milli|Amount) (?:[!=]==?|[<>]=?) 0\b|\b0 (?:[!=]==?|[<>]=?) (?:\w+\.)*refill(?:PeriodMs|Milli|Amount)\b/g;

/** How many comparisons a file has, where it needs them. */
const KIND_COMPARISONS: Readonly<Record<string, number>> = {
  // A rate that denies on purpose has no refill.
  'core/bucket/bucket.ts': 1,
  // The kind of a settled limit, not of a limit.
  'backends/dynamodb/bucket/writes/write-settlement.ts': 1,
};

/**
 * A comparison with one kind gives every other kind the same answer, also one that is added later. A switch without a
 * default does not compile then, so code asks the functions of `core/limit-kind.ts` or has such a switch.
 */
export const kindsAreAskedInCore: Rule = (files) =>
  files
    .filter((file) => !isTest(file))
    .flatMap(({ path, text }) => {
      const found = transformSync(text, { loader: 'ts' }).code.match(KIND_COMPARISON)?.length ?? 0;
      const listed = KIND_COMPARISONS[path] ?? 0;
      return found === listed
        ? []
        : [`${path} compares the kind of a limit ${found} times, not ${listed}: ask core/limit-kind.ts instead`];
    });

const AWS_LAYERS = ['backends/dynamodb', 'backends/dynamodb/stream', 'backends/dynamodb/reconciler', 'infra'];

export const awsStaysInItsLayers: Rule = (files) =>
  files
    .filter((file) => !AWS_LAYERS.includes(layerOf(file.path)))
    .filter((file) => importsOf(file).some(({ specifier }) => specifier.startsWith('@aws-sdk')))
    .map(({ path }) => `${path} imports the AWS SDK`);

const RUNNERS = /^(?:vitest|fast-check|node:test|@vitest\/.*)(?:\/|$)/;

export const onlyTestsImportTestTools: Rule = (files) =>
  files
    .filter((file) => !isTest(file))
    .flatMap((file) =>
      importsOf(file)
        .filter(({ specifier, target }) => RUNNERS.test(specifier) || target?.endsWith('.test.ts') === true)
        .map(({ specifier }) => `${file.path} imports ${specifier}: that is for tests`),
    );

/**
 * Type imports count too: files whose types refer to each other cannot be read, moved or tested apart. A cycle is
 * reported as a path that ends where it began. Each group of files that import each other gives at least one path.
 */
export const noCycles: Rule = (files) => {
  const edges = new Map(files.map((file) => [file.path, importsOf(file).flatMap(({ target }) => target ?? [])]));
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '));
      return;
    }
    if (done.has(path)) return;
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) visit(path, []);
  return cycles;
};

export const noDefaultExports: Rule = (files) =>
  files
    .filter(({ text }) => /^[ \t]*export\s+default\b|^[ \t]*export\s*\{[^}]*\bas\s+default\b/m.test(text))
    .map(({ path }) => `${path} has a default export`);

export const MAX_LINES = 400;

export const filesStayShort: Rule = (files) =>
  files.flatMap(({ path, text }) => {
    const lines = text.trimEnd().split('\n').length;
    return lines > MAX_LINES ? [`${path} has ${lines} lines`] : [];
  });

export const MAX_CLASS_LINES = 149;

/** A line of code that begins a class, with its indentation and its name. Comments and text begin otherwise. */
const CLASS = /^([ \t]*)(?:[\w$<>[\]:, ]+ = |return |export |default |abstract )*class\b(?: (?!extends\b)(\w+))?/;

interface ClassText {
  readonly name: string;
  /** From the line of the keyword to the closing brace, comments included. */
  readonly lines: number;
}

/** Relies on the formatter: the closing brace of a class is the first one with the indentation of the line that begins it. */
export function classesOf({ text }: SourceFile): ClassText[] {
  const lines = text.split('\n');
  return lines.flatMap((line, at) => {
    const [, indent, name = '(unnamed)'] = CLASS.exec(line) ?? [];
    if (indent === undefined) return [];
    if (line.trimEnd().endsWith('}')) return [{ name, lines: 1 }];
    const length = lines.slice(at + 1).findIndex((later) => later.startsWith(`${indent}}`));
    return [{ name, lines: length + 2 }];
  });
}

export const classesStayShort: Rule = (files) =>
  files
    .filter((file) => !isTest(file))
    .flatMap((file) =>
      classesOf(file)
        .filter(({ lines }) => lines > MAX_CLASS_LINES)
        .map(({ name, lines }) => `${file.path}: class ${name} has ${lines} lines`),
    );

export const entryHasOnlyNamedExports: Rule = (files) =>
  files
    .filter(({ path }) => path === 'index.ts')
    .flatMap(({ path, text }) => {
      const rest = text
        .replace(/^\/\/.*$/gm, '')
        .replace(/\/\*[\s\S]*?\*\//g, '')
        .replace(/^export\s+(?:type\s+)?\{[^}]*\}\s+from\s+'[^']+';$/gm, '')
        .trim();
      return rest === '' ? [] : [`${path} has more than named exports: ${rest.split('\n')[0]}`];
    });

/** What the help of a command may load. The library, AWS code and the YAML parser take far longer than the rest. */
const LIGHT_LAYERS = ['cli', 'visualize', 'clock', 'machine-time', 'core'];
const LIGHT_FILES = [
  'backends/dynamodb/address.ts',
  'backends/dynamodb/table/table-name.ts',
  'infra/stack/change-set/change-set.ts',
  'infra/stack/status/stack-status.ts',
  'infra/template/names.ts',
];
const LIGHT_PACKAGES = /^(?:node:.*|commander|picocolors)$/;

/** The program and the definitions of its commands load the rest only when a command runs. */
export const helpLoadsLittle: Rule = (files) => {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const heavy: string[] = [];
  const visit = (path: string): void => {
    const file = byPath.get(path);
    if (file === undefined || seen.has(path)) return;
    seen.add(path);
    for (const { specifier, target, typeOnly, lazy } of importsOf(file)) {
      if (typeOnly || lazy) continue;
      const isLight =
        target === null
          ? LIGHT_PACKAGES.test(specifier)
          : LIGHT_LAYERS.includes(layerOf(target)) || LIGHT_FILES.includes(target);
      if (!isLight) heavy.push(`${path} imports ${target ?? specifier}: the help would load it`);
      else if (target !== null) visit(target);
    }
  };
  for (const { path } of files.filter((file) => !isTest(file))) {
    if (path === 'cli/main.ts' || path.startsWith('cli/commands/')) visit(path);
  }
  return heavy;
};
