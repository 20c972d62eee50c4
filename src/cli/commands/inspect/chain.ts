import { MAX_CHAIN } from '../../../core/units.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';

/** The chain of an entity: the entity itself, then the parents that its spending cascades to. */
export async function readChain(limiter: RateLimiter, entityId: string): Promise<readonly string[]> {
  const chain: string[] = [];
  for (let next: string | null = entityId; next !== null && chain.length < MAX_CHAIN;) {
    chain.push(next);
    const entity = await limiter.entities.get(next);
    next = entity?.cascade === true ? entity.parentId : null;
  }
  return chain;
}
