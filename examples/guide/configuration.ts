// #region levels
import { Limit, RateLimiter } from 'headgate';
// #endregion levels

export async function configuration(): Promise<readonly string[]> {
  // #region levels
  const limiter = new RateLimiter('memory:', { limits: [Limit.perMinute('rpm', 10)] }); // 5. in code
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 20)] }); // 4. the whole namespace
  await limiter.config.setResource('gpt-4', { limits: [Limit.perMinute('rpm', 30)] }); // 3. every entity on gpt-4
  await limiter.config.setEntityDefault('ada', { limits: [Limit.perMinute('rpm', 40)] }); // 2. ada on everything
  await limiter.config.setEntity('ada', 'gpt-4', { limits: [Limit.perMinute('rpm', 50)] }); // 1. ada on gpt-4

  const { limits, configSource } = await limiter.config.resolve('ada', 'gpt-4'); // rpm:50/min, from 'entity'
  // #endregion levels
  const found = [`${String(limits[0])} ${configSource}`];
  for (const [entity, resource] of [
    ['ada', 'gpt-5'],
    ['bob', 'gpt-4'],
    ['bob', 'gpt-5'],
  ] as const) {
    const other = await limiter.config.resolve(entity, resource);
    found.push(`${String(other.limits[0])} ${other.configSource}`);
  }
  await limiter.close();
  return found;
}
