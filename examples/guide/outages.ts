import { type Backend, Limit, RateLimiter } from 'headgate';

export function openWithPolicy(address: string | Backend): { limiter: RateLimiter<'rpm'>; told: string[] } {
  const told: string[] = [];
  // #region policy
  const limiter = new RateLimiter(address, {
    limits: [Limit.perMinute('rpm', 60)],
    onUnavailable: 'local', // or 'block' (the default), or 'allow'
    timeouts: { callMs: 500, acquireMs: 1_000 },
    onEvent: (event) => {
      if (event.type === 'outage-begin' || event.type === 'outage-end') told.push(event.type);
    },
  });
  // #endregion policy
  return { limiter, told };
}
