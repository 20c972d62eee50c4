import type { BucketView, LeaseView } from '../api/types.js';
import { holdsSlots } from './limit-kind.js';

/** The slots of one limit of one bucket. */
export interface SlotUse {
  readonly entityId: string;
  readonly resource: string;
  readonly limit: string;
  readonly used: number;
  readonly capacity: number;
}

/**
 * The slots that are in use, those of the fullest limit first. They are not added up: a lease that cascades has a slot in the
 * bucket of each of its levels.
 */
export function fullestSlots(buckets: readonly BucketView[]): SlotUse[] {
  return buckets
    .flatMap(({ entityId, resource, limits }) =>
      limits.flatMap(({ limit, available }) => {
        const { name, capacity } = limit;
        const isUsed = holdsSlots(limit) && capacity !== null && available !== null && available < capacity;
        return isUsed ? [{ entityId, resource, limit: name, used: capacity - available, capacity }] : [];
      }),
    )
    .toSorted((a, b) => b.used / b.capacity - a.used / a.capacity);
}

type BucketName = Pick<LeaseView, 'entityId' | 'resource'>;

/** The buckets with the most leases, at most `count` of them. */
export function busiestBuckets(leases: readonly LeaseView[], count: number): readonly BucketName[] {
  const found = new Map<string, { readonly bucket: BucketName; leases: number }>();
  for (const { entityId, resource } of leases) {
    const key = `${entityId}\n${resource}`;
    const known = found.get(key) ?? { bucket: { entityId, resource }, leases: 0 };
    known.leases += 1;
    found.set(key, known);
  }
  const sorted = [...found.values()].toSorted((a, b) => b.leases - a.leases);
  return sorted.slice(0, count).map(({ bucket }) => bucket);
}
