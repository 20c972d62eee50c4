import { proseOf, table } from './markdown.js';
import { printType, withoutUndefined } from './print-type.js';

/** What is described, in the order of the page: where the options go, and the types that declare them. */
const SECTIONS = [
  { title: 'RateLimiter.open', types: ['LimiterOptions'] },
  { title: 'acquire, tryAcquire, run', types: ['AcquireRequest', 'RunOptions'] },
  { title: 'Limit.perMinute and the other rates', types: ['RateOptions', 'LimitOptions'] },
  { title: 'limiter.close', types: ['CloseOptions'] },
  { title: 'file', types: ['FileOptions'] },
  { title: 'dynamodb, createTable', types: ['SdkOptions'] },
  { title: 'Middleware', types: ['HttpLimitOptions', 'IpKeyOptions'] },
  { title: 'limitFetch, limitModel', types: ['LlmOptions', 'LimitFetchOptions'] },
  { title: 'serve, createServer', types: ['ServerOptions', 'ServeOptions'] },
  { title: 'HeadgateClient', types: ['ClientOptions'] },
  { title: 'runReconciler', types: ['ReconcileOptions', 'ReconcilerOptions'] },
  { title: 'runWorker', types: ['WorkerOptions'] },
];

/** All options with their defaults on one page. The defaults are those that the comments state; a test compares them. */
export function buildOptionsPage(known, links) {
  const sections = SECTIONS.flatMap(({ title, types }) => {
    const symbols = types.map((name) => known.get(name) ?? fail(`no export is called ${name}`));
    const own = symbols.flatMap(({ children }) => children.filter(({ inheritedFrom }) => inheritedFrom === undefined));
    const declared = symbols.map((symbol) => `[\`${symbol.name}\`](${links.hrefOf(symbol)})`).join(', ');
    return [
      `## ${title}`,
      `Declared by ${declared}.`,
      ...table(
        HEAD,
        own.flatMap((option) => rowsOf(option, links)),
      ),
    ];
  });
  return ['# Options', INTRO, ...sections].join('\n\n');
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

/** Separates `Default: 1 000.` from the rest of a comment. Defaults may contain points, in code and in numbers. */
function splitDefault(text) {
  const found = /(?:^|\s)Default: ((?:`[^`]*`|[^.`]|\.(?=\S))+)\./.exec(text);
  if (found === null) return { text, fallback: '' };
  return { text: text.replace(found[0], '').trim(), fallback: found[1] };
}

function fail(message) {
  throw new Error(`tools/docs/reference/options-page.js: ${message}`);
}
