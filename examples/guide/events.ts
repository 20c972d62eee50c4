// #region listener
import { Limit, RateLimiter } from 'headgate';
// #endregion listener

export async function openWithListener(
  log: { warn(...values: readonly unknown[]): void },
  alarm: (error: unknown) => void,
): Promise<RateLimiter> {
  // #region listener
  const limiter = await RateLimiter.open({
    limits: [Limit.perMinute('rpm', 60)],
    onEvent: (event) => {
      if (event.type === 'decision' && !event.granted) log.warn(event.entityId, event.violations);
      if (event.type === 'outage-begin') alarm(event.error);
    },
  });
  // #endregion listener
  return limiter;
}
