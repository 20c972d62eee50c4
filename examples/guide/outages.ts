// #region policy
import { Limit, RateLimiter } from 'headgate';

// Nothing listens at this address, so that you see the policy decide.
const limiter = new RateLimiter('dynamodb://limits?endpoint=http://127.0.0.1:9', {
  limits: [Limit.perHour('rph', 6)],
  onUnavailable: 'local', // or 'block' (the default), or 'allow'
  timeouts: { callMs: 500, acquireMs: 1_000 },
  onEvent: ({ type }) => {
    if (type === 'outage-begin' || type === 'outage-end') console.log(type);
  },
});
const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rph: 1 } };
for (let call = 1; call <= 7; call++) {
  const { granted, decidedBy } = await limiter.tryAcquire(ask);
  console.log(call, granted ? 'granted' : 'denied', 'by', decidedBy);
}
await limiter.close();
// #endregion policy
