import type { Limit } from '../../../core/limit.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';

interface Listening {
  readonly url: string;
  readonly dashboard: string | null;
  readonly store: string;
  readonly tokens: number;
}

/** An option of curl, with a leading space; empty on a server without tokens. */
export function tokenOption(tokens: number, which = 'a token'): string {
  return tokens === 0 ? '' : ` -H 'authorization: Bearer <secret of ${which}>'`;
}

/** What the server prints when it listens. */
export function describeServe({ url, dashboard, store, tokens }: Listening, examples: readonly string[]): string {
  const access =
    tokens === 0
      ? 'no tokens: it listens on this machine only, and every caller may do everything'
      : `${tokens} ${tokens === 1 ? 'token' : 'tokens'}`;
  return [
    ...(dashboard === null ? [] : [`Dashboard: ${dashboard}`, '']),
    `Headgate serves ${store} at ${url} (${access})`,
    `  API           ${url}/docs`,
    `  OpenAPI 3.1   ${url}/openapi.json`,
    '',
    'Try it from another terminal:',
    ...examples.map((line) => `  ${line}`),
    '',
  ].join('\n');
}

/** Commands that work as printed: if there are no limits yet, the first one sets some. */
export async function examplesOf(
  limiter: RateLimiter,
  given: readonly Limit[],
  { url, tokens }: Pick<Listening, 'url' | 'tokens'>,
): Promise<readonly string[]> {
  const [stored] = (await limiter.config.all({ limit: 1 })).items;
  const level = stored === undefined || typeof stored.level === 'string' ? {} : stored.level;
  const [limit] = stored === undefined || stored.limits.length === 0 ? given : stored.limits;
  const ask = { entityId: 'user-1', resource: 'gpt-4', ...level, consume: { [limit?.name ?? 'rpm']: 1 } };
  const acquire = `curl -s ${url}/v1/acquire${tokenOption(tokens)} -d '${JSON.stringify(ask)}'`;
  if (limit !== undefined) return [acquire];
  const limits = JSON.stringify({ limits: ['rpm:100/min'] });
  return [
    `curl -s -X PUT ${url}/v1/config${tokenOption(tokens, 'an admin token')} -d '${limits}'   # the store has no limits yet`,
    acquire,
  ];
}
