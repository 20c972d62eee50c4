// #region hierarchy
import { Limit, RateLimiter } from 'headgate';

const limiter = await RateLimiter.open('memory:');
await limiter.entities.create({ id: 'acme', name: 'Acme Corp' });
await limiter.entities.create({ id: 'acme/ada', parentId: 'acme', cascade: true });
await limiter.entities.create({ id: 'acme/bob', parentId: 'acme', cascade: true });

await limiter.config.setEntity('acme', 'gpt-4', { limits: [Limit.perMinute('tpm', 1_000)] });
await limiter.config.setResource('gpt-4', { limits: [Limit.perMinute('tpm', 800)] }); // each user

for (const entityId of ['acme/ada', 'acme/bob']) {
  const decision = await limiter.tryAcquire({ entityId, resource: 'gpt-4', consume: { tpm: 600 } });
  // ada has 800, and acme has 1,000. bob has 800, but acme has 400 left.
  console.log(entityId, decision.granted ? 'granted' : `denied by ${decision.violations[0]?.entityId}`);
}
await limiter.close();
// #endregion hierarchy
