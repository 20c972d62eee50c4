// #region handler
import { createHash } from 'node:crypto';
import { Limit, RateLimiter } from 'headgate';
import { withRateLimit } from 'headgate/lambda';

// Outside of the handler: the connection outlives one invocation.
export const limiter = new RateLimiter(process.env['HEADGATE_URL'] ?? 'memory:');

interface Event {
  readonly headers: Readonly<Record<string, string>>;
  readonly requestContext: { readonly http: { readonly sourceIp: string } };
}

export const handler = withRateLimit(
  async (event: Event) => ({ statusCode: 200, body: `Hello, ${event.requestContext.http.sourceIp}` }),
  {
    limiter,
    resource: 'api',
    limits: [Limit.perMinute('requests', 60)],
    // A hash, because the id of an entity is in the store, in the audit and in logs.
    key: ({ headers }) =>
      createHash('sha256')
        .update(headers['x-api-key'] ?? 'anonymous')
        .digest('base64url'),
    // A limiter that does not answer must not stop the API.
    onUnavailable: 'allow',
  },
);
// #endregion handler
