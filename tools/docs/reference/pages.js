/**
 * The pages of the main entry, by the folder of a symbol's source. The main entry exports too much for one page. `first`:
 * what a reader looks for, before the alphabet. The first row that matches decides. `except`: names
 * that the row leaves to the next.
 */
const MAIN_PAGES = [
  {
    file: 'store-port.md',
    title: 'headgate: the port of stores',
    intro: 'What a store implements. Apps do not need it; authors of stores do.',
    sources:
      /^src\/(?:backend\.ts|backend\/|core\/(?:bucket\/(?:decide|holder-rules|portable|resident-buckets)|units))/,
    except: ['DenialReason', 'LimitStatus'],
    first: ['Backend'],
  },
  {
    file: 'error-classes.md',
    title: 'headgate: errors',
    intro: 'The classes of errors. [Errors](errors.md) has their codes and what to do about each.',
    sources: /^src\/core\/(?:errors|error-codes|rate-limit-exceeded)\.ts/,
    first: ['HeadgateError', 'RateLimitExceeded', 'isHeadgateError'],
  },
  {
    file: 'events.md',
    title: 'headgate: events',
    intro: 'What `onEvent` and `onDecision` are called with. [Guide](../guide/events.md).',
    sources: /^src\/limiter\/(?:events\/|acquire\/decision-event)/,
    first: ['LimiterEvent'],
  },
  {
    file: 'administration.md',
    title: 'headgate: administration',
    intro:
      'Configuration, entities, usage, audit, namespaces and limits files: the parts of a limiter such as `limiter.config`. [Guide](../guide/configuration.md).',
    sources: /^src\/(?:limiter\/(?:api|config|manifest)\/|core\/(?:manifest|config|usage)\/|core\/pause)/,
    first: ['ConfigApi', 'EntitiesApi'],
  },
  {
    file: 'headgate.md',
    title: 'headgate',
    intro:
      'The limiter, its limits and its leases. [Getting started](../guide/getting-started.md). All options with their defaults are in [one table](options.md).',
    sources: /^src\//,
    first: ['RateLimiter', 'Limit', 'Lease', 'AcquireRequest', 'Decision'],
  },
];

/** The first sentence of the page of every other entry. */
const INTROS = {
  'headgate/client':
    'The limiter of a server over `fetch`; runs on Node, in workers and in browsers. [Guide](../guide/serve.md).',
  'headgate/cloudwatch':
    'Metrics as lines of the CloudWatch embedded metric format, for Lambda. [Guide](../operate/telemetry.md).',
  'headgate/dynamodb':
    'The store on DynamoDB, for bundlers and for your own client of the SDK. [Page](../backends/dynamodb.md).',
  'headgate/express': 'Middleware for express 4 and 5. [Guide](../guide/web.md).',
  'headgate/fastify': 'A plugin and a hook for fastify. [Guide](../guide/web.md).',
  'headgate/fetch': 'A wrapper for handlers that take a `Request` and return a `Response`. [Guide](../guide/web.md).',
  'headgate/hono': 'Middleware for hono. [Guide](../guide/web.md).',
  'headgate/koa': 'Middleware for koa. [Guide](../guide/web.md).',
  'headgate/lambda':
    'A wrapper for AWS Lambda handlers behind API Gateway or a function URL. [Guide](../guide/web.md).',
  'headgate/llm':
    'Limits for the clients of OpenAI, Anthropic, Google and others, and for the AI SDK. [Guide](../guide/llm.md).',
  'headgate/next':
    'A wrapper for route handlers of Next.js: that of [`headgate/fetch`](fetch.md). [Guide](../guide/web.md).',
  'headgate/reconciler': 'Gives back the slots of crashed callers on DynamoDB. [Page](../operate/reconciler.md).',
  'headgate/server': 'The HTTP server of `headgate serve`, for your own process. [Guide](../guide/serve.md).',
  'headgate/stores':
    'Stores for express-rate-limit, @fastify/rate-limit, hono-rate-limiter and @nestjs/throttler. [Guide](../guide/web.md).',
  'headgate/stream':
    'The worker and the Lambda handler that read the change stream of DynamoDB. [Page](../operate/stream.md).',
  'headgate/telemetry': 'OpenTelemetry and Prometheus. [Page](../operate/telemetry.md).',
  'headgate/testing':
    'Tools for tests of code that uses Headgate: a fake clock and outages. [Guide](../guide/testing.md).',
  'headgate/testing/backend': 'The conformance suite for stores.',
  'headgate/testing/dynamodb':
    'DynamoDB engines for tests, and a proxy that injects faults. [Guide](../guide/testing.md).',
  'headgate/testing/provider': 'A simulated provider of models for tests. [Guide](../guide/llm.md).',
};

/** The pages of an entry. Throws where a new entry has no intro, so that it gets one. */
export function pagesOf({ specifier }) {
  if (specifier === 'headgate') return MAIN_PAGES.map((page) => ({ ...page, specifier }));
  const intro = INTROS[specifier];
  if (intro === undefined) throw new Error(`${specifier} has no row in tools/docs/reference/pages.js`);
  const file = `${specifier.slice('headgate/'.length).replaceAll('/', '-')}.md`;
  return [{ file, title: specifier, intro, sources: /./, first: [], specifier }];
}
