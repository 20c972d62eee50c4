// #region slots
import { setTimeout } from 'node:timers/promises';
import { Limit, RateLimiter } from 'headgate';

const limiter = await RateLimiter.open('file:./limits.db', {
  limits: [Limit.concurrent('slots', 4)],
  leaseTtlMs: 10_000,
});
const ask = { entityId: 'gpu-1', resource: 'render', consume: { slots: 1 }, wait: { timeoutMs: 60_000 } };

await limiter.run(ask, async (lease) => {
  console.log('has a slot');
  // Stands for your work. `run` extends the lease meanwhile. If the lease is lost anyway, its signal aborts: end the work.
  await setTimeout(60_000, undefined, { signal: lease.signal });
});
await limiter.close();
// #endregion slots
