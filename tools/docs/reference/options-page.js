import { proseOf, table } from './markdown.js';
import { printType, withoutUndefined } from './print-type.js';

/** What is described, in the order of the page: where the options go, and the types that declare them. */
const SECTIONS = [
  { title: 'RateLimiter.open', types: ['LimiterOptions'] },
  { title: 'acquire, tryAcquire, run', types: ['AcquireRequest', 'RunOptions'] },
  { title: 'Limit.perMinute and the other rates', types: ['RateOptions', 'LimitOptions'] },
  { title: 'lease.adjust', types: ['AdjustOptions'] },
  { title: 'limiter.close', types: ['CloseOptions'] },
  { title: 'Lists', types: ['ListOptions'] },
  { title: 'limiter.manifest.apply', types: ['ApplyOptions'] },
  { title: 'memory', types: ['MemoryOptions'] },
  { title: 'file', types: ['FileOptions'] },
  { title: 'dynamodb, createTable', types: ['DynamoDBOptions', 'CreateTableOptions', 'SdkOptions'] },
  { title: 'Middleware', types: ['HttpLimitOptions', 'IpKeyOptions'] },
  { title: 'Middleware for express', types: ['ExpressLimitOptions'] },
  { title: 'Middleware for fastify', types: ['FastifyLimitOptions'] },
  { title: 'Middleware for koa', types: ['KoaLimitOptions'] },
  { title: 'Middleware for hono', types: ['HonoLimitOptions'] },
  { title: 'Middleware for fetch and Next.js', types: ['FetchLimitOptions'] },
  { title: 'Middleware for Lambda', types: ['LambdaLimitOptions'] },
  { title: 'Stores for other limiters', types: ['HitStoreOptions', 'ExpressStoreOptions'] },
  { title: 'limitFetch, limitModel', types: ['LlmOptions', 'LimitFetchOptions'] },
  { title: 'serve, createServer', types: ['ServerOptions', 'ServeOptions'] },
  { title: 'HeadgateClient', types: ['ClientOptions'] },
  { title: 'runReconciler', types: ['ReconcileOptions', 'ReconcilerOptions'] },
  { title: 'runWorker', types: ['WorkerOptions'] },
  { title: 'createStreamHandler', types: ['StreamHandlerOptions'] },
  { title: 's3Archive', types: ['S3ArchiveOptions'] },
  { title: 'rebuildUsage', types: ['RebuildOptions'] },
  { title: 'openTelemetry', types: ['OpenTelemetryOptions'] },
  { title: 'CloudWatchMetrics', types: ['CloudWatchOptions'] },
  { title: 'Tests: findEngine, startEngine', types: ['EngineOptions'] },
  { title: 'Tests: startFaultProxy', types: ['FaultProxyOptions'] },
  { title: 'Tests: startProvider', types: ['ProviderOptions'] },
  { title: 'Clock.sleep', types: ['SleepOptions'] },
];

/**
 * All options with their defaults on one page. The defaults are those that the comments state; a test compares them with
 * the code. Throws for an exported type of options without a section, and for an option without a meaning.
 */
export function buildOptionsPage(known, links) {
  const shown = SECTIONS.flatMap(({ types }) => types);
  const missing = [...known.keys()].filter((name) => name.endsWith('Options') && !shown.includes(name));
  if (missing.length > 0) fail(`no section has ${missing.join(', ')}`);
  const sections = SECTIONS.flatMap(({ title, types }) => {
    const symbols = types.map((name) => known.get(name) ?? fail(`no export is called ${name}`));
    const rows = onceEach(symbols.flatMap((symbol) => optionsOf(symbol, links))).flatMap((option) =>
      rowsOf(option, links),
    );
    const bare = rows.filter(([, , , meaning]) => meaning === '').map(([name]) => name);
    if (bare.length > 0) fail(`options without a meaning in ${types.join(', ')}: ${bare.join(', ')}`);
    return [`## ${title}`, introOf(symbols, links), ...table(HEAD, rows)];
  });
  return ['# Options', INTRO, ...sections].join('\n\n');
}

function introOf(symbols, links) {
  const linkTo = (symbol) => `[\`${symbol.name}\`](${links.hrefOf(symbol)})`;
  const parents = symbols
    .flatMap(({ extendedTypes = [] }) => extendedTypes.map(({ reflection }) => reflection))
    .filter((parent) => parent !== undefined && links.isKnown(parent.name) && !symbols.includes(parent));
  const declared = `Declared by ${symbols.map(linkTo).join(', ')}.`;
  return parents.length === 0 ? declared : `${declared} The options of ${parents.map(linkTo).join(', ')} apply too.`;
}

/** One field of each name: the one with a comment. */
function onceEach(fields) {
  const byName = new Map();
  for (const field of fields) if (byName.get(field.name)?.comment === undefined) byName.set(field.name, field);
  return [...byName.values()];
}

/** A field that not every member of a union has. */
function asOptional(field) {
  return Object.assign(Object.create(field), { flags: { isOptional: true } });
}

/** The options that a symbol declares, and those of parents that are not exported. */
function optionsOf(symbol, links) {
  return fieldsOf(symbol).filter(({ inheritedFrom }) => {
    const [parent] = inheritedFrom?.name.split('.') ?? [];
    return parent === undefined || !links.isKnown(parent);
  });
}

function fieldsOf({ children, type }) {
  return children ?? (type === undefined ? [] : fieldsOfType(type));
}

function fieldsOfType(type) {
  if (type.type === 'reference') return type.reflection === undefined ? [] : fieldsOf(type.reflection);
  if (type.type === 'intersection') return type.types.flatMap(fieldsOfType);
  if (type.type === 'union') return onceEach(type.types.flatMap(fieldsOfType)).map(asOptional);
  return type.type === 'reflection' ? (type.declaration.children ?? []) : [];
}

const HEAD = ['option', 'type', 'default', 'meaning'];
const INTRO = [
  'A value in the call wins over the [environment variable](environment.md), which wins over the default.',
  '`RateLimiter.open` refuses an unknown option, so that a misspelt name is noticed. Names that end in `Ms` are milliseconds.',
].join(' ');

function rowsOf(option, links, prefix = '') {
  const type = withoutUndefined(option);
  const name = prefix + option.name;
  const fields = type?.type === 'reflection' ? (type.declaration.children ?? []) : [];
  if (fields.length > 0) return fields.flatMap((field) => rowsOf(field, links, `${name}.`));
  const { text, fallback } = splitDefault(proseOf(option.comment ?? option.signatures?.[0]?.comment));
  const isRequired = !option.flags.isOptional && prefix === '';
  const shown = option.signatures === undefined ? links.linked(printType(type)) : '`function`';
  return [[`\`${name}\``, shown, isRequired ? 'required' : fallback, text]];
}

/** Separates `Default: 1,000.` from the rest of a comment. Defaults may contain points, in code and in numbers. */
function splitDefault(text) {
  const found = /(?:^|\s)Default: ((?:`[^`]*`|[^.`]|\.(?=\S))+)\./.exec(text);
  if (found === null) return { text, fallback: '' };
  return { text: text.replace(found[0], '').trim(), fallback: found[1] };
}

function fail(message) {
  throw new Error(`tools/docs/reference/options-page.js: ${message}`);
}
