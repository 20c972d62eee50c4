import { Limit, RateLimiter } from 'headgate';

export async function hierarchy(): Promise<readonly string[]> {
  const limiter = new RateLimiter('memory:');
  // #region hierarchy
  await limiter.entities.create({ id: 'acme', name: 'Acme Corp' });
  await limiter.entities.create({ id: 'acme/ada', parentId: 'acme', cascade: true });
  await limiter.entities.create({ id: 'acme/bob', parentId: 'acme', cascade: true });

  await limiter.config.setEntity('acme', 'gpt-4', { limits: [Limit.perMinute('tpm', 1_000)] });
  await limiter.config.setResource('gpt-4', { limits: [Limit.perMinute('tpm', 800)] }); // each user

  const ask = (entityId: string) => limiter.tryAcquire({ entityId, resource: 'gpt-4', consume: { tpm: 600 } });
  const ada = await ask('acme/ada'); // granted: 600 of 800, and 600 of the 1,000 of acme
  const bob = await ask('acme/bob'); // denied: bob has 800, but acme has 400 left
  // #endregion hierarchy
  const refused = bob.granted ? [] : bob.violations.map(({ entityId, limit }) => `${limit.name} of ${entityId}`);
  await limiter.close();
  return [String(ada.granted), String(bob.granted), ...refused];
}
