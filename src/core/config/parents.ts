import { ValidationError, VersionConflict } from '../errors.js';
import { MAX_CHAIN } from '../units.js';

/**
 * Refuses a parent that would close a cycle, or that would make a chain longer than `MAX_CHAIN`.
 * `chain`: the entity and the parents between it and `next`. `levelsBelow`: how many levels of children the entity has.
 */
export function refuseBadParent(chain: readonly string[], next: string, levelsBelow: number): void {
  if (chain.includes(next)) throw new ValidationError('parentId', 'above the entity, not below it', [...chain, next]);
  if (levelsBelow + chain.length >= MAX_CHAIN) {
    throw new ValidationError('parentId', `at the end of at most ${MAX_CHAIN} levels`, [...chain, next]);
  }
}

export function missingParent(parentId: string): ValidationError {
  return new ValidationError('parentId', 'the id of an entity that exists', parentId);
}

/** Refuses to change an entity that has another version than the caller saw; null: any version will do. */
export function refuseOtherVersion(
  { id, version }: { readonly id: string; readonly version: number },
  seenVersion: number | null,
): void {
  if (seenVersion === null || version === seenVersion) return;
  throw new VersionConflict(id, `expected version ${seenVersion}, it is at ${version}`);
}
