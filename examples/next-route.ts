// #region route
// The file "route" of the folder app/api/chat
import { Limit, RateLimiter } from 'headgate';
import { withRateLimit } from 'headgate/next';

export const limiter = new RateLimiter(process.env['HEADGATE_URL'] ?? 'memory:');

export const POST = withRateLimit(
  async (request: Request) => {
    const { text } = (await request.json()) as { readonly text: string };
    return Response.json({ reply: text.toUpperCase() });
  },
  {
    limiter,
    resource: 'chat',
    limits: [Limit.perMinute('requests', 10), Limit.concurrent('slots', 2)],
    // One load balancer is before the app, so the last entry of X-Forwarded-For is the client.
    trustedProxies: 1,
  },
);
// #endregion route
