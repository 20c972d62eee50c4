// #region all
import { Limit, RateLimiter, RateLimitExceeded } from 'headgate';

// Stands for the client of a vendor, so that this program runs as it is.
const callModel = async () => ({ text: 'Blue light scatters most.', usage: { total_tokens: 700 } });

const limiter = await RateLimiter.open('file:./limits.db', {
  limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000)],
});

// 500 tokens are an estimate: the real number is known after the call.
const ask = { entityId: 'ada', resource: 'gpt-4', consume: { rpm: 1, tpm: 500 } };
try {
  const answer = await limiter.run(ask, async (lease) => {
    const reply = await callModel();
    await lease.settle({ tpm: reply.usage.total_tokens }).catch(console.error);
    return reply.text;
  });
  console.log(answer);
} catch (error) {
  if (!(error instanceof RateLimitExceeded)) throw error;
  const { retryAfterMs } = error;
  console.log(retryAfterMs === null ? 'No wait helps: ask for less.' : `Please try again in ${retryAfterMs} ms.`);
}
await limiter.close();
// #endregion all
