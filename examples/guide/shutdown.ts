// #region shutdown
import { Limit, RateLimiter } from 'headgate';
// #endregion shutdown

export async function startService(server: { stop(): Promise<void> }): Promise<() => Promise<void>> {
  // #region shutdown
  const limiter = await RateLimiter.open({ limits: [Limit.concurrent('slots', 4)] });
  const stopping = new AbortController();

  async function shutDown(): Promise<void> {
    stopping.abort(); // ends the waits: each call gets `stopping.signal.reason`
    await server.stop(); // takes no new calls, and waits for those under way
    await limiter.close(); // gives back the slots of leases that are still open
  }
  const onSignal = (): void => void shutDown();
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, onSignal);

  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { slots: 1 } };
  await limiter.acquire({ ...ask, wait: { timeoutMs: 30_000 }, signal: stopping.signal });
  // #endregion shutdown
  for (const signal of ['SIGTERM', 'SIGINT']) process.off(signal, onSignal);
  return shutDown;
}
