import { callModel } from './model.js';
// #region all
import { Limit, RateLimiter } from 'headgate';

const limiter = await RateLimiter.open('file:./limits.db', {
  limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000)],
});

export async function answer(user: string, question: string): Promise<string> {
  // 500 tokens are an estimate: the real number is known after the call.
  const decision = await limiter.tryAcquire({ entityId: user, resource: 'gpt-4', consume: { rpm: 1, tpm: 500 } });
  if (!decision.granted) return `Please try again in ${decision.retryAfterMs} ms.`;
  try {
    const reply = await callModel(question);
    await decision.lease.commit({ tpm: reply.usage.total_tokens });
    return reply.text;
  } catch (error) {
    await decision.lease.rollback();
    throw error;
  }
}
// #endregion all
export { limiter };
