// #region example
import { Limit, RateLimiter } from 'headgate';

const callModel = async () => ({ text: 'Blue light scatters most.', usage: { total_tokens: 700 } }); // your vendor's client
const limits = [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000), Limit.concurrent('slots', 4)];
const limiter = await RateLimiter.open({ limits });
const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 500, slots: 1 } }; // 500: an estimate
const answer = await limiter.run(ask, async (lease) => {
  const { text, usage } = await callModel(); // if this throws, `run` rolls the lease back
  await lease.settle({ tpm: usage.total_tokens }).catch(console.error); // the real total. If this fails, 500 stay taken
  return text;
}); // the lease is committed
console.log(answer);
await limiter.close();
// #endregion example
