import { readFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';

const KEY = 'key-7f3a';
const FOREVER = { entityId: KEY, forMs: 'forever', reason: 'the key was leaked' } as const;

/** docs/operate/multi-tenant.md says what revokes a key, and what does not. */
let limiter: RateLimiter;
beforeEach(async () => {
  limiter = await RateLimiter.open('memory:', { configCacheMs: 0 });
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 100), Limit.perMinute('tpm', 1_000)] });
  await limiter.config.setEntity(KEY, 'gpt-4', { limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 500)] });
  await limiter.entities.create({ id: 'account' });
  await limiter.entities.create({ id: KEY, parentId: 'account', cascade: true });
});

const isGranted = async (resource: string, consume: Record<string, number>, own = {}) =>
  (await limiter.tryAcquire({ entityId: KEY, resource, consume, ...own })).granted;

test('a key that is paused forever is refused whatever it asks for, and open leases end as before', async () => {
  const lease = await limiter.acquire({ entityId: KEY, resource: 'gpt-4', consume: { rpm: 1, tpm: 100 } });
  await limiter.pause(FOREVER);
  for (const resource of ['gpt-4', 'other']) {
    for (const consume of [{ rpm: 1 }, { tpm: 1 }, { rpm: 1, tpm: 1 }, { rpm: 0 }]) {
      expect(await isGranted(resource, consume), `${resource} ${JSON.stringify(consume)}`).toBe(false);
      expect(await isGranted(resource, consume, { limits: [Limit.perMinute('rpm', 5)] })).toBe(false);
    }
  }
  await lease.settle({ tpm: 300 });
  await lease.commit();
});

test('a key stays revoked when limits are applied that do not mention the pause', async () => {
  const file = (more: object) => ({ namespace: 'default', entities: { [KEY]: { parent: 'account', ...more } } });
  await limiter.manifest.apply(file({ cascade: true, default: { limits: ['rpm:60/min'] } }));
  await limiter.pause(FOREVER);
  await limiter.manifest.apply(file({ cascade: true, default: { limits: ['rpm:600/min'] } }));
  await limiter.manifest.apply({ namespace: 'default' });
  expect(await limiter.entities.get(KEY)).toMatchObject({ parentId: null, paused: { until: null } });
  expect(await isGranted('other', { rpm: 1 })).toBe(false);
});

test('limits of 0 do not cover what the page lists: another limit, an ask for 0, per-call limits', async () => {
  await limiter.config.setEntityDefault(KEY, { limits: [Limit.parse('rpm:0/min')] });
  expect(await isGranted('other', { tpm: 1 })).toBe(true);
  expect(await isGranted('other', { rpm: 0 })).toBe(true);
  expect(await isGranted('other', { rpm: 1 }, { limits: [Limit.perMinute('rpm', 5)] })).toBe(true);
});

test('deleting the entity does not revoke the key, and a revoked key cannot be deleted', async () => {
  await limiter.pause(FOREVER);
  await expect(limiter.entities.delete(KEY)).rejects.toMatchObject({ code: 'entity.conflict' });
  await limiter.resume({ entityId: KEY });
  await limiter.entities.delete(KEY);
  expect(await isGranted('other', { rpm: 1 })).toBe(true);
});

test('the page on tenants has the command that revokes a key', () => {
  const page = readFileSync(new URL('../../docs/operate/multi-tenant.md', import.meta.url), 'utf8');
  expect(page).toContain(`\n$ headgate pause ${KEY} --namespace acme --forever --reason 'the key was leaked'\n`);
});
