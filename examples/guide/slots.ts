import { Limit, RateLimiter } from 'headgate';

export async function slots(address: string): Promise<number> {
  // #region slots
  const limiter = await RateLimiter.open(address, { limits: [Limit.concurrent('slots', 4)], leaseTtlMs: 30_000 });

  const done = await limiter.run({ entityId: 'gpu-1', resource: 'render', consume: { slots: 1 } }, async (lease) => {
    // `run` extends the lease while the function runs. If the lease is lost anyway, the work should end.
    return renderFrame(lease.signal);
  });
  // #endregion slots
  const { items } = await limiter.leases.list({ entityId: 'gpu-1', resource: 'render' });
  await limiter.close();
  return done + items.length;
}

async function renderFrame(signal: AbortSignal): Promise<number> {
  signal.throwIfAborted();
  return 1;
}
