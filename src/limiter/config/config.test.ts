import { expect, test } from 'vitest';
import { ASK, LIMITS, openLimiter } from '../../../tests/support/models/open-limiter.js';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../rate-limiter.js';

const reads = (calls: readonly string[]): number => calls.filter((call) => call === 'config.readFor').length;

test('a config field that is left out keeps its stored value', async () => {
  const { limiter } = await openLimiter();
  await limiter.config.setSystem({ limits: LIMITS, onUnavailable: 'local' });
  await limiter.config.setSystem({ limits: [Limit.perDay('rpm', 1)] });
  expect(await limiter.config.get('system')).toEqual({ limits: [Limit.perDay('rpm', 1)], onUnavailable: 'local' });
  await limiter.config.setSystem({ onUnavailable: 'block' });
  expect(await limiter.config.get('system')).toMatchObject({
    limits: [Limit.perDay('rpm', 1)],
    onUnavailable: 'block',
  });
});

test('a config write that changes nothing takes no version and adds no audit record', async () => {
  const { limiter, store, clock } = await openLimiter();
  await limiter.config.delete({ resource: 'gpt-4' });
  await limiter.config.setResource('gpt-4', { limits: LIMITS });
  const call = { namespaceId: (await limiter.namespaces.get('default'))?.id ?? '', nowMs: clock.now(), timeoutMs: 1 };
  const before = await store.backend.config.read(call, { kind: 'resource', resource: 'gpt-4' });
  await limiter.config.setResource('gpt-4', { limits: LIMITS.map((limit) => Limit.parse(String(limit))) });
  expect(await store.backend.config.read(call, { kind: 'resource', resource: 'gpt-4' })).toEqual(before);
  expect((await limiter.audit.list({ resource: 'gpt-4' })).items).toMatchObject([
    { action: 'config.set', before: null },
  ]);
});

test('config.all lists every level that has a config, and no others', async () => {
  const { limiter } = await openLimiter();
  await limiter.config.setSystem({ onUnavailable: 'local' });
  await limiter.config.setResource('gpt-4', { limits: LIMITS });
  await limiter.config.setResource('gone', { limits: LIMITS });
  await limiter.config.delete({ resource: 'gone' });
  await limiter.config.setEntityDefault('user-1', { limits: LIMITS });
  await limiter.config.setEntity('user-1', 'gpt-4', { limits: LIMITS });
  const seen = [];
  for await (const entry of limiter.config.all({ limit: 2 })) seen.push(entry);
  expect(seen).toHaveLength(4);
  expect(seen).toEqual(
    expect.arrayContaining([
      { level: 'system', limits: [], onUnavailable: 'local' },
      { level: { resource: 'gpt-4' }, limits: LIMITS, onUnavailable: null },
      { level: { entityId: 'user-1' }, limits: LIMITS, onUnavailable: null },
      { level: { entityId: 'user-1', resource: 'gpt-4' }, limits: LIMITS, onUnavailable: null },
    ]),
  );
});

test('config.get is null for a level that was never set or was deleted', async () => {
  const { limiter } = await openLimiter();
  expect(await limiter.config.get({ resource: 'gpt-4' })).toBeNull();
  await limiter.config.setResource('gpt-4', { limits: LIMITS });
  await limiter.config.delete({ resource: 'gpt-4' });
  expect(await limiter.config.get({ resource: 'gpt-4' })).toBeNull();
});

test('config.resolve names the level of the limits and the policy that applies', async () => {
  const { limiter } = await openLimiter();
  const source = async () => (await limiter.config.resolve('user-1', 'gpt-4')).configSource;
  expect(await source()).toBe('code');
  await limiter.config.setSystem({ limits: LIMITS, onUnavailable: 'allow' });
  expect(await source()).toBe('system');
  await limiter.config.setResource('gpt-4', { limits: LIMITS });
  expect(await source()).toBe('resource');
  await limiter.config.setEntityDefault('user-1', { limits: LIMITS });
  expect(await source()).toBe('entity_default');
  await limiter.config.setEntity('user-1', 'gpt-4', { limits: LIMITS });
  expect(await limiter.config.resolve('user-1', 'gpt-4')).toEqual({
    limits: LIMITS,
    configSource: 'entity',
    onUnavailable: 'allow',
  });
});

test('config.list pages through the entities that have limits for the resource', async () => {
  const { limiter } = await openLimiter();
  for (const id of ['c', 'a', 'd', 'b']) await limiter.config.setEntity(id, 'gpt-4', { limits: LIMITS });
  await limiter.config.delete({ entityId: 'd', resource: 'gpt-4' });
  expect(await limiter.config.list({ resource: 'gpt-4', limit: 2 })).toEqual({ items: ['a', 'b'], next: 'b' });
  const all: string[] = [];
  for await (const id of limiter.config.list({ resource: 'gpt-4', limit: 1 })) all.push(id);
  expect(all).toEqual(['a', 'b', 'c']);
});

test('the config cache reads once for many acquires, also where nothing is stored', async () => {
  const { limiter, store } = await openLimiter();
  for (let call = 0; call < 10; call++) await limiter.acquire({ ...ASK, consume: { rpm: 1 } });
  expect(reads(store.calls)).toBe(1);
  expect(limiter.config.cache.stats()).toEqual({ entries: 1, hits: 9, misses: 1, refreshes: 0 });
});

test('the config cache refreshes an entry in the background after 80 % of its lifetime, and fetches an expired one first', async () => {
  const { limiter, store, clock } = await openLimiter();
  await limiter.acquire(ASK);
  await clock.advance(47_999);
  await limiter.acquire(ASK);
  expect(reads(store.calls)).toBe(1);
  await clock.advance(1);
  await limiter.acquire(ASK);
  expect([reads(store.calls), limiter.config.cache.stats().refreshes]).toEqual([2, 1]);
  await clock.advance(60_000);
  await limiter.acquire(ASK);
  expect(reads(store.calls)).toBe(3);
});

test('a background refresh that fails reaches onError, and the entry is still used', async () => {
  const { limiter, store, clock, errors } = await openLimiter();
  await limiter.acquire(ASK);
  await clock.advance(50_000);
  store.start({ only: ['config.readFor'] });
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true });
  await clock.advance(0);
  expect(errors).toMatchObject([{ where: 'config refresh', error: { code: 'backend.unavailable' } }]);
});

test('the config cache has one fetch in flight per entity and resource', async () => {
  const { limiter, store, clock } = await openLimiter();
  const { readFor } = store.backend.config;
  const slow: typeof readFor = async (...args) => {
    await clock.sleep(10);
    return readFor(...args);
  };
  Object.assign(store.backend.config, { readFor: slow });
  const asked = Promise.all(Array.from({ length: 20 }, () => limiter.acquire({ ...ASK, consume: { rpm: 1 } })));
  await clock.advance(10);
  expect(await asked).toHaveLength(20);
  expect(reads(store.calls)).toBe(1);
});

test('a config that was fetched before a change of this process is not cached after it', async () => {
  const { limiter, store, clock } = await openLimiter();
  const { readFor } = store.backend.config;
  const slow: typeof readFor = async (...args) => {
    const read = await readFor(...args);
    await clock.sleep(10);
    return read;
  };
  Object.assign(store.backend.config, { readFor: slow });
  const asked = limiter.acquire(ASK);
  await limiter.config.setResource('gpt-4', { limits: [Limit.perDay('rpm', 5)] });
  await clock.advance(10);
  await asked.catch(() => {});
  Object.assign(store.backend.config, { readFor });
  expect((await limiter.config.resolve('user-1', 'gpt-4')).configSource).toBe('resource');
});

test('the config cache shows a change of its own process at once, and of another process within its lifetime', async () => {
  const { limiter, store, clock } = await openLimiter();
  const other = await RateLimiter.open(store.backend, { limits: LIMITS, clock });
  await other.acquire(ASK);
  await limiter.config.setResource('gpt-4', { limits: [Limit.perDay('rpm', 5)] });
  expect((await limiter.config.resolve('user-1', 'gpt-4')).configSource).toBe('resource');
  expect((await other.config.resolve('user-1', 'gpt-4')).configSource).toBe('code');
  await clock.advance(60_000);
  expect((await other.config.resolve('user-1', 'gpt-4')).configSource).toBe('resource');
});

test('a client whose config turns out to be old reads again, at most once a second', async () => {
  const { limiter, store, clock } = await openLimiter();
  const old = await RateLimiter.open(store.backend, { limits: LIMITS, clock });
  await old.acquire(ASK);
  await clock.advance(500);
  await limiter.config.setResource('gpt-4', { limits: [Limit.perMinute('rpm', 90), Limit.perMinute('tpm', 6_000)] });
  await limiter.acquire({ ...ASK, consume: { rpm: 1 } });
  const before = reads(store.calls);
  for (let call = 0; call < 5; call++) await old.acquire({ ...ASK, consume: { rpm: 1 } });
  expect(reads(store.calls) - before).toBe(0);
  await clock.advance(500);
  for (let call = 0; call < 5; call++) await old.acquire({ ...ASK, consume: { rpm: 1 } });
  expect(reads(store.calls) - before).toBe(1);
});

test('a client reads the config again before it refuses an unknown limit, which another process may just have added', async () => {
  const { limiter, store, clock } = await openLimiter();
  const other = await RateLimiter.open(store.backend, { clock });
  await expect(other.acquire(ASK)).rejects.toMatchObject({ code: 'limits.missing' });
  await limiter.config.setResource('gpt-4', { limits: [Limit.perMinute('rpm', 9)] });
  await clock.advance(1_000);
  expect((await other.acquire({ ...ASK, consume: { rpm: 1 } })).state).toBe('open');
  await limiter.config.setResource('gpt-4', { limits: [Limit.perMinute('rpm', 9), Limit.perMinute('new', 9)] });
  await clock.advance(1_000);
  expect((await other.acquire({ ...ASK, consume: { new: 1 } })).consumed).toEqual({ new: 1 });
});

test('the config cache is bounded', async () => {
  const { limiter } = await openLimiter();
  for (let n = 0; n < 10_500; n++) await limiter.acquire({ ...ASK, entityId: `one-shot-${n}` });
  expect(limiter.config.cache.stats().entries).toBe(10_000);
});

test('clearing the config cache removes all entries', async () => {
  const { limiter, store } = await openLimiter();
  await limiter.acquire(ASK);
  limiter.config.cache.clear();
  await limiter.acquire(ASK);
  expect(reads(store.calls)).toBe(2);
});

test('a change whose answer is lost applies to the next call of this process', async () => {
  const { limiter, store } = await openLimiter();
  await limiter.entities.create({ id: 'proj-1' });
  await limiter.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
  await limiter.config.resolve('user-1', 'gpt-4');
  store.start({ afterWrite: true, only: ['config.write', 'entities.update'] });
  const lost = { code: 'backend.unavailable' };
  await expect(limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 5)] })).rejects.toMatchObject(lost);
  expect((await limiter.status(ASK)).map(({ entityId, available }) => [entityId, available])).toEqual([
    ['user-1', 5],
    ['proj-1', 5],
  ]);
  await expect(limiter.entities.update('user-1', { parentId: null, cascade: false })).rejects.toMatchObject(lost);
  expect((await limiter.status(ASK)).map(({ entityId }) => entityId)).toEqual(['user-1']);
});
