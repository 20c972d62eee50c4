import type { Page, PageRequest } from '../../backend.js';
import { pageOf } from '../../core/paging.js';
import type { TwoKeyMap } from '../../core/two-key-map.js';
import type { Bucket } from './bucket.js';
import type { OwnedBucket } from './storage.js';

export function* bucketsWhere(
  buckets: TwoKeyMap<Bucket>,
  wanted: (entityId: string, resource: string) => boolean,
): Generator<OwnedBucket> {
  for (const [entityId, resource, bucket] of buckets.entries()) {
    if (wanted(entityId, resource)) yield { entityId, resource, bucket };
  }
}

/** A page in the order of entity and key part. */
export function pageByOwner(buckets: Iterable<OwnedBucket>, page: PageRequest): Page<OwnedBucket> {
  // A space sorts before every character of a name, and "#" does not: "a" must come before "a!".
  const from = { ...page, after: page.after?.replace('#', ' ') ?? null };
  const { items, next } = pageOf(buckets, from, (owned) => `${owned.entityId} ${owned.resource}`);
  return { items, next: next?.replace(' ', '#') ?? null };
}
