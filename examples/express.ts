// #region app
import express, { type Request } from 'express';
import { Limit, RateLimiter } from 'headgate';
import { rateLimit } from 'headgate/express';

export const limiter = new RateLimiter(process.env['HEADGATE_URL'] ?? 'memory:');
export const app = express();

// Every client: 100 requests a minute, by its address.
app.use(rateLimit({ limiter, limits: [Limit.perMinute('requests', 100)] }));

// Reports are expensive: 5 an hour for each user, and only those that succeed count.
app.get(
  '/report',
  rateLimit<Request>({
    limiter,
    resource: 'report',
    limits: [Limit.perHour('reports', 5)],
    key: (request) => request.get('x-user') ?? 'anonymous',
    skipFailedRequests: true,
  }),
  (request, response) => {
    if (request.query['broken'] === 'yes') response.status(500).send('The report failed');
    else response.send('The report');
  },
);
// #endregion app
