import { readFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';

const KEY = 'key-7f3a';
const BLOCKED = ['rpm:0/min', 'tpm:0/min'];

/** docs/operate/multi-tenant.md says what revokes a key, and what it does not cover. */
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
const block = async (limits: readonly string[], resource?: string): Promise<void> => {
  const config = { limits: limits.map((text) => Limit.parse(text)) };
  await (resource === undefined
    ? limiter.config.setEntityDefault(KEY, config)
    : limiter.config.setEntity(KEY, resource, config));
};

test('a key with every limit at 0, as default and for its own resources, is refused whatever it asks for', async () => {
  await block(BLOCKED);
  expect(await isGranted('gpt-4', { rpm: 1 })).toBe(true);
  await block(BLOCKED, 'gpt-4');
  for (const resource of ['gpt-4', 'other']) {
    for (const consume of [{ rpm: 1 }, { tpm: 1 }, { rpm: 1, tpm: 1 }]) {
      expect(await isGranted(resource, consume), `${resource} ${JSON.stringify(consume)}`).toBe(false);
    }
  }
});

test('blocking a key does not cover what the page lists: another limit, an ask for 0, per-call limits', async () => {
  await block(['rpm:0/min']);
  expect(await isGranted('other', { tpm: 1 })).toBe(true);
  await block(BLOCKED);
  expect(await isGranted('other', { rpm: 0 })).toBe(true);
  expect(await isGranted('other', { rpm: 1 }, { limits: [Limit.perMinute('rpm', 5)] })).toBe(true);
});

test('deleting the entity does not revoke the key', async () => {
  await limiter.entities.delete(KEY);
  expect(await isGranted('other', { rpm: 1 })).toBe(true);
});

test('the page on tenants has the commands for both levels', () => {
  const page = readFileSync(new URL('../../docs/operate/multi-tenant.md', import.meta.url), 'utf8');
  for (const scope of ['', ' --resource gpt-4']) {
    expect(page).toContain(`\nheadgate entity set ${KEY} -l ${BLOCKED.join(' -l ')}${scope}\n`);
  }
});
