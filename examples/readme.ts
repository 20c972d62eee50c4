// #region example
import { Limit, RateLimiter, RateLimitExceeded } from 'headgate';

const callModel = async () => ({ text: 'Blue light scatters most.', usage: { total_tokens: 700 } }); // your vendor's client
const limits = [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000), Limit.concurrent('slots', 4)];
const limiter = await RateLimiter.open({ limits });
const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 500, slots: 1 } }; // 500: an estimate
try {
  const answer = await limiter.run(ask, async (lease) => {
    const { text, usage } = await callModel();
    await lease.settle({ tpm: usage.total_tokens }).catch(console.error); // the real total. If this fails, 500 stay taken
    return text;
  }); // the lease has ended: committed, or rolled back if `callModel` threw
  console.log(answer);
} catch (error) {
  if (!(error instanceof RateLimitExceeded)) throw error;
  console.log(error.message); // the limit that refused, and the wait. Nothing was taken
}
await limiter.close();
// #endregion example
