import { callModel } from './model.js';
// #region ask
import { Limit, RateLimiter, RateLimitExceeded } from 'headgate';

const limiter = new RateLimiter('memory:', { limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000)] });
const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 500 } };
// #endregion ask
export { limiter };

export async function withRun(): Promise<string> {
  // #region run
  const text = await limiter.run(ask, async (lease) => {
    const reply = await callModel('Why is the sky blue?');
    await lease.settle({ tpm: reply.usage.total_tokens }).catch(console.error);
    return reply.text;
  });
  // #endregion run
  return text;
}

export async function withThrow(question: string): Promise<string> {
  // #region on-throw
  const text = await limiter.run(
    ask,
    async () => (await callModel(question)).text,
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

export async function withValue(question: string): Promise<string> {
  // #region try
  const decision = await limiter.tryAcquire(ask);
  if (!decision.granted) {
    return decision.retryAfterMs === null ? 'No wait helps.' : `Try again in ${decision.retryAfterMs} ms.`;
  }
  const { lease } = decision;
  const reply = await callModel(question).catch(async (error: unknown) => {
    await lease.rollback().catch(console.error);
    throw error;
  });
  await lease.commit({ tpm: reply.usage.total_tokens }).catch(console.error);
  return reply.text;
  // #endregion try
}

export async function withoutTaking() {
  // #region reading
  const user = { entityId: 'user-1', resource: 'gpt-4' };
  const left = await limiter.available(user); // { rpm: 58, tpm: 9_000 }
  const limits = await limiter.status(user); // for each limit: its level, `available`, `retryAfterMs`
  const statuses = await limiter.peek({ ...user, consume: { tpm: 9_500 } }); // with `exceeded`
  const waitMs = await limiter.timeUntilAvailable({ ...user, consume: { tpm: 9_500 } }); // 3_000
  // #endregion reading
  return { left, limits, statuses, waitMs };
}
