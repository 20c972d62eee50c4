import { MAX_CHAIN } from '../../../core/units.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { PausedByShape, PauseShape } from '../../run/common-shapes.js';
import { pauseShape } from '../manage/pause-view.js';

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

/** The pause with the latest end that would deny an ask of the entity; null: no level of its chain is paused. */
export async function findPaused(
  limiter: RateLimiter,
  { entityId, resource }: { readonly entityId: string; readonly resource: string },
  now: Date,
): Promise<PausedByShape | null> {
  let found: PausedByShape | null = null;
  const consider = (id: string, of: string | null, paused: PauseShape | null): void => {
    if (paused !== null && (found === null || endOf(paused) > endOf(found)))
      found = { entityId: id, resource: of, ...paused };
  };
  for (const id of await readChain(limiter, entityId)) {
    consider(id, null, pauseShape((await limiter.entities.get(id))?.paused, now));
    consider(id, resource, pauseShape((await limiter.buckets.get({ entityId: id, resource }))?.paused, now));
  }
  return found;
}

function endOf({ until }: PauseShape): number {
  return until === null ? Number.POSITIVE_INFINITY : Date.parse(until);
}
