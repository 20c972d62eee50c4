import { hasBalance } from '../../core/limit-kind.js';
import type { BucketsApi } from './buckets-api.js';

/** One limit of a resource, added up over all entities that have a bucket. */
export interface LimitCapacity {
  readonly capacity: number;
  readonly available: number;
  /** The number of these entities. */
  readonly entities: number;
}

/** `limiter.resources`: resources over all entities. */
export class ResourcesApi {
  readonly #buckets: BucketsApi;

  constructor(buckets: BucketsApi) {
    this.#buckets = buckets;
  }

  /** The capacity and the available tokens of a resource over all entities, without per-call and unlimited limits. */
  async capacity(resource: string): Promise<Record<string, LimitCapacity>> {
    const sums = new Map<string, LimitCapacity>();
    for await (const bucket of this.#buckets.list({ resource, limit: 1_000 })) {
      if (bucket.resource !== resource) continue;
      for (const { limit, available } of bucket.limits) {
        if (!hasBalance(limit.kind)) continue;
        const sum = sums.get(limit.name) ?? { capacity: 0, available: 0, entities: 0 };
        sums.set(limit.name, {
          capacity: sum.capacity + limit.capacity,
          available: sum.available + available,
          entities: sum.entities + 1,
        });
      }
    }
    return Object.fromEntries(sums);
  }
}
