import type { BucketView } from '../api/types.js';

/** The slots of one limit of a resource, over the buckets that were read. */
export interface SlotSum {
  readonly resource: string;
  readonly limit: string;
  readonly used: number;
  readonly capacity: number;
}

/** The slots in use, over the buckets that use any. */
export function sumSlots(buckets: readonly BucketView[]): SlotSum[] {
  const sums = new Map<string, SlotSum>();
  for (const { resource, limits } of buckets) {
    for (const { limit, available } of limits) {
      if (limit.kind !== 'concurrent' || limit.capacity === null || available === null || available >= limit.capacity)
        continue;
      const key = `${resource}\n${limit.name}`;
      const sum = sums.get(key) ?? { resource, limit: limit.name, used: 0, capacity: 0 };
      sums.set(key, { ...sum, used: sum.used + limit.capacity - available, capacity: sum.capacity + limit.capacity });
    }
  }
  return [...sums.values()];
}
