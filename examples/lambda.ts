// #region handler
import { Limit, RateLimiter } from 'headgate';
import { withRateLimit } from 'headgate/lambda';

// Outside of the handler: the connection outlives one invocation.
export const limiter = new RateLimiter(process.env['HEADGATE_URL'] ?? 'memory:');

interface Event {
  readonly headers: Readonly<Record<string, string>>;
  readonly requestContext: { readonly http: { readonly sourceIp: string } };
}

export const handler = withRateLimit(
  async (event: Event) => ({ statusCode: 200, body: `Hello, ${event.headers['x-api-key'] ?? 'anonymous'}` }),
  {
    limiter,
    resource: 'api',
    limits: [Limit.perMinute('requests', 60)],
    key: ({ headers }) => headers['x-api-key'] ?? 'anonymous',
    // A limiter that does not answer must not stop the API.
    onUnavailable: 'allow',
  },
);
// #endregion handler
