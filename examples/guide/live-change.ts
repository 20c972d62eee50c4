// #region watch
import { setTimeout } from 'node:timers/promises';
import { Limit, RateLimiter } from 'headgate';

const limiter = await RateLimiter.open('file:./limits.db', {
  limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000)],
  configCacheMs: 5_000, // 60_000 if it is left out
});
for (;;) {
  const { limits, configSource } = await limiter.config.resolve('ada', 'gpt-4');
  console.log(limits.join(' '), 'from', configSource);
  await setTimeout(1_000);
}
// #endregion watch
