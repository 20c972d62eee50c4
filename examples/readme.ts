import { callModel } from './guide/model.js';

const answers: unknown[] = [];
const respond = (text: string): number => answers.push(text);
const respond429 = (...denial: readonly unknown[]): number => answers.push(denial);

// #region example
import { Limit, RateLimiter, RateLimitExceeded } from 'headgate';

const limiter = await RateLimiter.open({
  limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000), Limit.concurrent('slots', 4)],
});

const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 500, slots: 1 } };
try {
  const text = await limiter.run(ask, async (lease) => {
    const reply = await callModel('Why is the sky blue?');
    await lease.settle({ tpm: reply.usage.total_tokens }); // the real total, in place of the estimate of 500
    return reply.text;
  }); // the lease ends here: committed, or rolled back if the function threw
  respond(text);
} catch (error) {
  if (!(error instanceof RateLimitExceeded)) throw error;
  respond429(error.retryAfterMs, error.violations); // nothing was taken, so there is no lease to end
}
// #endregion example

export { answers, limiter };
