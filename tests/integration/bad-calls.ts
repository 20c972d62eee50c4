import { Limit } from '../../src/core/limit.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import type { Random } from '../../src/testing/conformance/kit/random.js';
import { call, type Operation, somewhere } from '../support/models/random-acquires.js';

const KEY = { entityId: 'a', resource: 'gpt-4' };
const never = (value: unknown): never => value as never;
const deep = (levels: number): unknown => (levels === 0 ? {} : { in: deep(levels - 1) });

/** Calls that every store must refuse with the same error. */
const BAD: readonly ((limiter: RateLimiter) => Promise<unknown>)[] = [
  (limiter) => limiter.tryAcquire(never(null)),
  (limiter) => limiter.tryAcquire({ ...KEY, consume: { rpm: -1 } }),
  (limiter) => limiter.tryAcquire({ ...KEY, consume: { rpm: 1.5 } }),
  (limiter) => limiter.tryAcquire({ ...KEY, consume: { rpm: 1e12 + 1 } }),
  (limiter) => limiter.tryAcquire({ ...KEY, consume: { rpm: Number.NaN } }),
  (limiter) => limiter.tryAcquire({ ...KEY, consume: never({ rpm: undefined }) }),
  (limiter) => limiter.tryAcquire({ ...KEY, consume: { nothing: 1 } }),
  (limiter) => limiter.tryAcquire({ ...KEY, consume: {} }),
  (limiter) => limiter.tryAcquire({ ...KEY, consume: never([1]) }),
  (limiter) => limiter.tryAcquire({ ...KEY, limits: [] }),
  (limiter) => limiter.tryAcquire({ ...KEY, limits: never([{ name: 'rpm' }]) }),
  (limiter) => limiter.tryAcquire({ ...KEY, leaseTtlMs: 4_999 }),
  (limiter) => limiter.tryAcquire({ ...KEY, wait: { timeoutMs: -1 } }),
  (limiter) => limiter.tryAcquire({ ...KEY, onUnavailable: never('maybe') }),
  (limiter) => limiter.tryAcquire({ entityId: '$a', resource: 'gpt-4', consume: { rpm: 1 } }),
  (limiter) => limiter.tryAcquire({ entityId: 'a b', resource: 'gpt-4', consume: { rpm: 1 } }),
  (limiter) => limiter.tryAcquire({ entityId: 'a', resource: 'gpt~4', consume: { rpm: 1 } }),
  (limiter) => limiter.tryAcquire({ entityId: 'a', resource: '_gpt', consume: { rpm: 1 } }),
  (limiter) => limiter.run({ ...KEY, consume: { rpm: 1 }, onThrow: never('stop') }, () => 1),
  (limiter) => limiter.status({ entityId: '', resource: 'gpt-4' }),
  (limiter) => limiter.available({ entityId: 'a#b', resource: 'gpt-4' }),
  (limiter) => limiter.timeUntilAvailable({ ...KEY, consume: { nothing: 1 } }),
  (limiter) => limiter.peek({ ...KEY, consume: { nothing: 1 } }),
  (limiter) => limiter.config.setSystem({ limits: [] }),
  (limiter) => limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 1), Limit.perHour('rpm', 1)] }),
  (limiter) => limiter.config.setSystem({ onUnavailable: never('maybe') }),
  (limiter) => limiter.config.setResource('gpt 4', { limits: [Limit.perMinute('rpm', 1)] }),
  (limiter) => limiter.config.setEntity('a', 'gpt-4', never({ onUnavailable: 'allow' })),
  (limiter) => limiter.config.get(never({})),
  (limiter) => limiter.config.delete(never(7)),
  (limiter) => limiter.config.list({ resource: '~' }),
  (limiter) => limiter.config.resolve('$', 'gpt-4'),
  (limiter) => limiter.entities.create({ id: '' }),
  (limiter) => limiter.entities.create({ id: 'new', parentId: 'missing' }),
  (limiter) => limiter.entities.create({ id: 'new', parentId: 'new' }),
  (limiter) => limiter.entities.create({ id: 'new', metadata: never([]) }),
  (limiter) => limiter.entities.create({ id: 'new', metadata: { big: 1n } }),
  (limiter) => limiter.entities.create({ id: 'new', name: never(7) }),
  (limiter) => limiter.entities.update('missing', { name: 'x' }),
  (limiter) => limiter.entities.update('a', { version: 0 }),
  (limiter) => limiter.entities.update('a', { cascade: never('yes') }),
  (limiter) => limiter.entities.update('a', { version: 999_999, metadata: { deep: deep(50) } }),
  (limiter) => limiter.entities.delete('missing'),
  (limiter) => limiter.entities.list({ limit: 0 }),
  (limiter) => limiter.entities.list({ limit: 1_001 }),
  (limiter) => limiter.entities.list({ after: never(7) }),
  (limiter) => limiter.namespaces.register('-'),
  (limiter) => limiter.namespaces.delete('nowhere'),
  (limiter) => limiter.namespaces.recover('nowhere'),
  (limiter) => limiter.namespaces.recover('default'),
  (limiter) => limiter.namespaces.purge('default'),
  (limiter) => limiter.namespaces.purge('nowhere'),
  (limiter) => limiter.namespaces.purge(never(7)),
  (limiter) => limiter.in('nowhere'),
  (limiter) => limiter.in('no where'),
  (limiter) => limiter.usage.query({ resource: 'gpt-4', window: never('yearly') }),
  (limiter) => limiter.usage.query({ resource: 'gpt-4', window: 'daily', from: new Date(Number.NaN) }),
  (limiter) => limiter.usage.summary({ resource: '', window: 'daily' }),
  (limiter) => limiter.buckets.get({ entityId: 'a', resource: 'gpt-4~x' }),
  (limiter) => limiter.buckets.reset(never(null)),
  (limiter) => limiter.buckets.list({ resource: 'gpt 4' }),
  (limiter) => limiter.leases.list({ entityId: 'a', resource: '' }),
  (limiter) => limiter.leases.list({ resource: 'r' }),
  (limiter) => limiter.leases.release('not an id'),
  (limiter) => limiter.audit.list({ entityId: '$SYSTEM' }),
  (limiter) => limiter.audit.list({ limit: 1.5 }),
  (limiter) => limiter.audit.list({ order: never('newest') }),
];

export function badCall(random: Random): Operation {
  const at = random.whole(0, BAD.length - 1);
  return call(`bad call ${at}: ${String(BAD[at])}`, somewhere(random), async (limiter) => BAD[at]!(limiter));
}
