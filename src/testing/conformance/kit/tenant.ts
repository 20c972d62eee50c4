import assert from 'node:assert/strict';
import type { Awaitable, Page, PageRequest } from '../../../backend.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, USER, listUsage } from './asking.js';
import { type Fixture, limits } from './fixture.js';

/** Every item of all pages. */
export async function collect<T>(listing: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of listing) items.push(item);
  return items;
}

/** Every item of all pages of a list of the port, read in pages of the given size. */
export async function collectPages<T>(limit: number, read: (page: PageRequest) => Awaitable<Page<T>>): Promise<T[]> {
  const found: T[] = [];
  for (let after: string | null = null; ;) {
    const { items, next }: Page<T> = await read({ limit, after });
    assert.ok(items.length <= limit, `${items.length} items in a page of ${limit}`);
    found.push(...items);
    if (next === null) return found;
    after = next;
  }
}

/** Creates records of every kind in a namespace. */
export async function createRecords(limiter: RateLimiter): Promise<void> {
  await limiter.config.setSystem({ limits: limits('rpd:10/day', 'slots:3/concurrent'), onUnavailable: 'local' });
  await limiter.config.setEntity('user-2', USER.resource, { limits: limits('rpd:20/day') });
  await limiter.entities.create({ id: 'team', name: 'Team', metadata: { tier: 'gold' } });
  await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
  await limiter.acquire(ask({ rpd: 4, slots: 1 }, { leaseTtlMs: 3_600_000 }));
  await limiter.acquire(ask({ rpd: 7 }, { entityId: 'user-2' }));
}

/** How many records `createRecords` creates at least: two configs and two entities, their audit records, and three buckets. */
export const CREATED_RECORDS = 2 + 2 + 4 + 3;

/** All data of a namespace that the API shows. */
export async function pictureOf(fixture: Fixture, limiter: RateLimiter): Promise<Record<string, unknown>> {
  await fixture.catchUp();
  return {
    balances: await limiter.status(USER),
    config: await limiter.config.resolve(USER.entityId, USER.resource),
    entitiesWithLimits: await collect(limiter.config.list(USER)),
    entities: await collect(limiter.entities.list()),
    children: await collect(limiter.entities.children('team')),
    usage: await listUsage(fixture, limiter),
    audit: await collect(limiter.audit.list()),
    buckets: await collect(limiter.buckets.list({ entityId: USER.entityId })),
    leases: await collect(limiter.leases.list(USER)),
  };
}
