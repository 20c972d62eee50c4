// #region cloudwatch
import { Limit, RateLimiter } from 'headgate';
import { CloudWatchMetrics } from 'headgate/cloudwatch';

const metrics = new CloudWatchMetrics({ dimensions: { service: 'chat' } });
export const limiter = await RateLimiter.open({ limits: [Limit.perMinute('rpm', 60)], onEvent: metrics.onEvent });

export const handler = metrics.flushAfter(async (event: { readonly user: string }) => {
  const { granted } = await limiter.tryAcquire({ entityId: event.user, resource: 'chat', consume: { rpm: 1 } });
  return { statusCode: granted ? 200 : 429 };
});
// #endregion cloudwatch
