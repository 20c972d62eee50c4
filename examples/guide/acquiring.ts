import { Limit, RateLimitExceeded, RateLimiter } from 'headgate';
import { callModel } from './model.js';

export const limiter = new RateLimiter('memory:', {
  limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000)],
});
const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 500 } };

export async function withRun(): Promise<string> {
  // #region run
  const text = await limiter.run(ask, async (lease) => {
    const reply = await callModel('Why is the sky blue?');
    await lease.settle({ tpm: reply.usage.total_tokens });
    return reply.text;
  });
  // #endregion run
  return text;
}

export async function withThrow(): Promise<string> {
  // #region on-throw
  const text = await limiter.run(
    ask,
    async () => (await callModel('fail')).text,
    // The vendor has counted a call that timed out. One that it refused has cost nothing.
    { onThrow: (error) => (error instanceof Error && error.name === 'TimeoutError' ? 'commit' : 'rollback') },
  );
  // #endregion on-throw
  return text;
}

export async function withUsing(): Promise<number> {
  // #region using
  await using lease = await limiter.acquire(ask);
  const reply = await callModel('Why is the sky blue?');
  await lease.settle({ tpm: reply.usage.total_tokens });
  // The end of the block commits the lease, also if it was left by an error: settle or roll back before.
  // #endregion using
  return reply.text.length;
}

export async function withError(): Promise<string> {
  // #region error
  try {
    const lease = await limiter.acquire({ ...ask, consume: { rpm: 1, tpm: 9_000 } });
    await lease.commit();
    return 'granted';
  } catch (error) {
    if (!(error instanceof RateLimitExceeded)) throw error;
    const [violation] = error.violations;
    return `${violation?.limit.name} of ${violation?.entityId}: wait ${error.retryAfterMs} ms`;
  }
  // #endregion error
}
