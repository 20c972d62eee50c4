// #region prometheus
import express from 'express';
import { Limit, RateLimiter } from 'headgate';
import { LimiterMetrics } from 'headgate/telemetry';

const metrics = new LimiterMetrics();
export const limiter = await RateLimiter.open({ limits: [Limit.perMinute('rpm', 60)], onEvent: metrics.onEvent });
export const app = express();
app.get('/metrics', (_request, response) => {
  response.type('text/plain').send(metrics.render());
});
// #endregion prometheus
