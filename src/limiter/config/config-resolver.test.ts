import { expect, test } from 'vitest';
import type { Awaitable, Backend, ConfigRead, ConfigStore } from '../../backend.js';
import { memory } from '../../backends/embedded/memory.js';
import { Limit } from '../../core/limit.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { RateLimiter } from '../rate-limiter.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

/** A store that records each config read, and whether the shared levels were passed in. */
function telling(): { readonly backend: Backend; readonly reads: string[] } {
  const inner = memory();
  const reads: string[] = [];
  const readFor: ConfigStore['readFor'] = (call, entityId, resource, known) => {
    reads.push(`${entityId} ${known === undefined ? 'whole' : String(known.system?.limits)}`);
    return inner.config.readFor(call, entityId, resource, known);
  };
  return { backend: { ...inner, config: { ...inner.config, readFor } }, reads };
}

test('a parent is read without the shared levels if its child was read just now, and with them otherwise', async () => {
  const { backend, reads } = telling();
  const clock = fakeClock();
  const limiter = await RateLimiter.open(backend, { clock });
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 10)] });
  await limiter.entities.create({ id: 'company' });
  await limiter.entities.create({ id: 'team', parentId: 'company', cascade: true });
  await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
  await limiter.acquire(ASK);
  expect(reads.splice(0)).toEqual(['user-1 whole', 'team rpm:10/min', 'company rpm:10/min']);
  limiter.config.cache.clear();
  await limiter.config.resolve('user-1', 'gpt-4');
  await clock.advance(1);
  await limiter.acquire(ASK);
  expect(reads).toEqual(['user-1 whole', 'team whole', 'company rpm:10/min']);
});

test('entities that share a config get the new one, also if a restored store uses the same version again', async () => {
  const inner = memory();
  let limit = Limit.perMinute('rpm', 10);
  const readFor: ConfigStore['readFor'] = async (...args) => {
    const read = await inner.config.readFor(...args);
    return { ...read, levels: { ...read.levels, system: { limits: [limit], onUnavailable: null, v: 7 } } };
  };
  const clock = fakeClock();
  const limiter = await RateLimiter.open({ ...inner, config: { ...inner.config, readFor } }, { clock });
  const limitsOf = async (entityId: string): Promise<string> =>
    String((await limiter.config.resolve(entityId, 'gpt-4')).limits);
  expect([await limitsOf('a'), await limitsOf('b')]).toEqual(['rpm:10/min', 'rpm:10/min']);
  limit = Limit.perMinute('rpm', 20);
  expect([await limitsOf('a'), await limitsOf('c')]).toEqual(['rpm:10/min', 'rpm:20/min']);
  await clock.advance(60_000);
  expect(await limitsOf('a')).toBe('rpm:20/min');
});

test('a config that was written again with the same limits gets its new version', async () => {
  const inner = memory();
  let v = 7;
  const readFor: ConfigStore['readFor'] = async (...args) => {
    const read = await inner.config.readFor(...args);
    const system = { limits: [Limit.perMinute('rpm', 10)], onUnavailable: null, v };
    return { ...read, levels: { ...read.levels, system } };
  };
  const versions: number[] = [];
  const consume: Backend['consume'] = (call, request) => {
    versions.push(...request.levels.map(({ version }) => version.sequence));
    return inner.consume(call, request);
  };
  const backend = { ...inner, consume, config: { ...inner.config, readFor } };
  const limiter = await RateLimiter.open(backend, { clock: fakeClock() });
  await limiter.acquire(ASK);
  v = 8;
  await limiter.acquire({ ...ASK, entityId: 'user-2' });
  expect(versions).toEqual([7, 8]);
});

/** A replica that answers what it first returned, until it is asked exactly. */
function lagging(inner: Backend): Backend {
  const stale = new Map<string, Awaitable<ConfigRead>>();
  const readFor: ConfigStore['readFor'] = (call, entityId, resource, known, isExact) => {
    const key = `${entityId} ${resource}`;
    const old = stale.get(key);
    if (isExact !== true && old !== undefined) return old;
    const read = inner.config.readFor(call, entityId, resource, known, isExact);
    if (!stale.has(key)) stale.set(key, read);
    return read;
  };
  return { ...inner, close: () => {}, config: { ...inner.config, readFor } };
}

test('after cache.clear() no read returns what was stored before it, although reads of the store lag', async () => {
  const [inner, clock] = [memory(), fakeClock()];
  const limits = [Limit.perMinute('rpm', 10)];
  const admin = await RateLimiter.open({ ...inner, close: () => {} }, { clock, limits });
  const other = await RateLimiter.open(lagging(inner), { clock, limits });
  await admin.entities.create({ id: 'team' });
  await admin.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
  await other.acquire(ASK);
  await admin.pause({ entityId: 'team', forMs: 'forever', reason: 'unpaid' });
  await other.acquire(ASK);
  other.config.cache.clear();
  // The first ask of an entity may come seconds later.
  await clock.advance(9_999);
  expect(await other.tryAcquire(ASK)).toMatchObject({ granted: false, reason: 'paused' });
});

test('a charge that the cached config refuses is decided by an exact read', async () => {
  const [inner, clock] = [memory(), fakeClock()];
  const admin = await RateLimiter.open({ ...inner, close: () => {} }, { clock });
  const limits: readonly Limit[] = [Limit.perMinute('rpm', 10)];
  const other: RateLimiter = await RateLimiter.open(lagging(inner), { clock, limits });
  await other.acquire(ASK);
  await admin.config.setSystem({ limits: [Limit.perMinute('rpm', 10), Limit.perDay('usd', 50)] });
  await clock.advance(2_000);
  await other.charge({ entityId: 'user-1', resource: 'gpt-4', amounts: { usd: 8 } });
  expect(await other.available(ASK)).toEqual({ rpm: 9, usd: 42 });
});

test('a pause that has ended costs no exact reads', async () => {
  const [inner, clock] = [memory(), fakeClock()];
  const reads: (boolean | undefined)[] = [];
  const readFor: ConfigStore['readFor'] = (call, entityId, resource, known, isExact) => {
    reads.push(isExact);
    return inner.config.readFor(call, entityId, resource, known, isExact);
  };
  const limits = [Limit.perMinute('rpm', 10)];
  const limiter = await RateLimiter.open({ ...inner, config: { ...inner.config, readFor } }, { clock, limits });
  await limiter.pause({ entityId: 'user-1', forMs: 5_000, reason: 'vendor' });
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: false, reason: 'paused' });
  await clock.advance(61_000);
  await limiter.acquire(ASK);
  await clock.advance(60_000);
  await limiter.acquire(ASK);
  // The first read after the end is exact, because the cached entry has the pause.
  expect(reads).toEqual([false, true, false]);
});
