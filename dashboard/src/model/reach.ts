import type { Level, LevelView } from '../api/types.js';
import { kindOf, levelsOf } from './levels.js';

/** Who has the limits of a level now. */
export interface Reach {
  readonly buckets: number;
  readonly entities: number;
}

interface BucketName {
  readonly entityId: string;
  /** `{resource}~{hash}` for a bucket of limits that its calls name themselves: no level concerns it. */
  readonly resource: string;
}

const keyOf = ({ entityId, resource }: Level): string => JSON.stringify([entityId ?? null, resource ?? null]);

/** Counts the buckets for which no stronger level has limits. `all`: every level that has limits. */
export function reachOf(level: Level, buckets: readonly BucketName[], all: readonly LevelView[]): Reach {
  const own = keyOf(level);
  const filled = new Set([own, ...all.filter(({ limits }) => limits.length > 0).map((one) => keyOf(one.level))]);
  const reached = buckets.filter(({ entityId, resource }) => {
    const first = levelsOf(entityId, resource)
      .map(keyOf)
      .find((key) => filled.has(key));
    return first === own && !resource.includes('~');
  });
  return { buckets: reached.length, entities: new Set(reached.map(({ entityId }) => entityId)).size };
}

/** The list that has every bucket of a level; null: the store has no such list for the system. */
export function bucketQueryOf(level: Level): Level | null {
  if (kindOf(level) === 'system') return null;
  return level.entityId === undefined ? { resource: level.resource ?? '' } : { entityId: level.entityId };
}
