import { expect, test } from 'vitest';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { LimiterMetrics } from './limiter-metrics.js';

test('decisions, verdicts, tokens and ends of leases of a limiter are counted', async () => {
  const metrics = new LimiterMetrics();
  const limiter = await RateLimiter.open('memory:', {
    limits: [Limit.perMinute('rpm', 2), Limit.concurrent('slots', 5)],
    onEvent: metrics.onEvent,
  });
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, slots: 1 } };
  const lease = await limiter.acquire(ask);
  await (await limiter.acquire(ask)).rollback();
  await lease.commit({ rpm: 2 });
  await limiter.tryAcquire(ask);
  const text = metrics.render();
  expect(text).toContain('headgate_decisions_total{outcome="granted",reason="",decided_by="store",resource="gpt-4"} 2');
  expect(text).toContain(
    'headgate_decisions_total{outcome="denied",reason="exhausted",decided_by="store",resource="gpt-4"} 1',
  );
  expect(text).toContain('headgate_limit_verdicts_total{limit="rpm",level="entity",exceeded="true",refused="true"} 1');
  expect(text).toContain('headgate_tokens_total{state="reserved",limit="rpm",resource="gpt-4"} 2');
  expect(text).toContain('headgate_tokens_total{state="settled",limit="rpm",resource="gpt-4"} 2');
  expect(text).toContain('headgate_leases_ended_total{how="rolled-back"} 1');
  expect(text).toContain('headgate_decision_duration_seconds_count{outcome="denied"} 1');
  expect(text).toContain('headgate_store_outage 0');
  await limiter.close();
});

test('a shadow that is exceeded is counted as exceeded, and not as a limit that refused', async () => {
  const metrics = new LimiterMetrics();
  const limits = [Limit.perMinute('rpm', 1), Limit.perMinute('tpm', 1, { shadow: true })];
  const limiter = await RateLimiter.open('memory:', { limits, onEvent: metrics.onEvent });
  const ask = { entityId: 'user-1', resource: 'gpt-4' };
  await limiter.acquire({ ...ask, consume: { tpm: 2 } });
  await limiter.tryAcquire({ ...ask, consume: { rpm: 2, tpm: 2 } });
  const text = metrics.render();
  const verdict = 'headgate_limit_verdicts_total{limit=';
  expect(text).toContain(`${verdict}"tpm",level="entity",exceeded="true",refused="false"} 2`);
  expect(text).toContain(`${verdict}"rpm",level="entity",exceeded="true",refused="true"} 1`);
  await limiter.close();
});
